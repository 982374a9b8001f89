"""Tenants, namespaces, partition counts: rules 11.2, 11.3, 11.4.1, 14.16 and the texts of the reference table."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.metadata.store import MetadataStore
from magnetar.model.errors import MagnetarError, MetadataError
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.policies import AutoTopicCreation, JsonObject, PartitionedTopic, Retention, bundles
from magnetar.storage.backends.files import OsFileSystem
from magnetar.storage.metadata_log.metadata_log import MetadataLog
from magnetar.testing.memory_metadata import MemoryMetadataStore
from tests.support.at_once import at_once

STANDALONE: JsonObject = {"adminRoles": [], "allowedClusters": ["standalone"]}
DEFAULT = NamespaceName.parse("public/default")


@pytest.fixture
def resources() -> Resources:
    return opened(MemoryMetadataStore())


def opened(store: MetadataStore, settings: Settings | None = None) -> Resources:
    resources = Resources(store, settings or Settings())
    at_once(resources.ensure_defaults())
    return resources


def refused(action: Callable[[], object]) -> tuple[int, str]:
    with pytest.raises(MagnetarError) as caught:
        done = action()
        if inspect.iscoroutine(done):
            at_once(done)
    return caught.value.status, str(caught.value)


def test_standalone_comes_with(resources: Resources) -> None:
    assert resources.clusters.names() == ["standalone"]
    assert resources.tenants.names() == ["public", "pulsar"]
    assert resources.tenants.get("public") == STANDALONE
    assert [name.text for name in resources.namespaces.all()] == ["public/default", "pulsar/system"]


@pytest.mark.parametrize(
    ("authorization", "plugin", "tenants"),
    [
        (True, "", ["pulsar"]),
        (True, "org.apache.pulsar.client.impl.auth.AuthenticationDisabled", ["pulsar"]),
        (True, "org.apache.pulsar.client.impl.auth.AuthenticationToken", ["public", "pulsar"]),
        (False, "", ["public", "pulsar"]),
    ],
)
def test_an_authorized_broker_without_a_login_of_its_own_makes_no_public_tenant(
    authorization: bool, plugin: str, tenants: list[str]
) -> None:
    """Apache Pulsar's standalone makes it through its own REST interface and is refused; clients' suites rely on it."""
    settings = Settings(
        authorizationEnabled=authorization, brokerClientAuthenticationPlugin=plugin, superUserRoles="root, admin"
    )
    found = opened(MemoryMetadataStore(), settings)
    assert found.tenants.names() == tenants
    assert {tuple(found.tenants.get(name)["adminRoles"]) for name in tenants} == {("root", "admin")}  # type: ignore[arg-type]


def test_defaults_do_not_depend_on_the_limits() -> None:
    limited = opened(MemoryMetadataStore(), Settings(maxTenants=1))
    assert limited.tenants.names() == ["public", "pulsar"]
    assert refused(lambda: limited.tenants.create("x", STANDALONE))[0] == 412


def test_reopening_finds_everything_and_writes_nothing(tmp_path: Path) -> None:
    def again() -> tuple[MetadataLog, Resources]:
        store = MetadataLog(OsFileSystem(str(tmp_path)))
        return store, opened(store)

    store, first = again()
    at_once(first.tenants.create("acme", {"adminRoles": ["boss"], "allowedClusters": ["standalone"]}))
    at_once(first.namespaces.create("acme", "main"))
    at_once(first.namespaces.update(NamespaceName.parse("acme/main"), deduplicationEnabled=True))
    odd = TopicName.parse("non-persistent://acme/main/with space é%2F")
    at_once(first.partitioned.create(odd, 3, {"a": "ü"}))
    at_once(first.announce(serviceUrl="http://127.0.0.1:1", brokerServiceUrl="pulsar://127.0.0.1:2"))
    at_once(store.close())
    store, second = again()
    written: list[str] = []
    store.watch("/", written.append)
    at_once(second.announce(serviceUrl="http://127.0.0.1:1", brokerServiceUrl="pulsar://127.0.0.1:2"))
    assert written == []
    assert second.tenants.get("acme")["adminRoles"] == ["boss"]
    assert second.namespaces.view(NamespaceName.parse("acme/main")).deduplication is True
    assert second.partitioned.get(odd) == PartitionedTopic(3, {"a": "ü"})
    assert second.clusters.get("standalone")["brokerServiceUrl"] == "pulsar://127.0.0.1:2"

    at_once(store.close())


def test_the_clusters_record_names_open_ports_only() -> None:
    """A port that was open in an earlier life leaves the record; what an administrator wrote stays."""
    resources = opened(MemoryMetadataStore())
    at_once(resources.announce(serviceUrl="http://a:1", brokerServiceUrl="pulsar://a:2", brokerServiceUrlTls=""))
    at_once(resources.clusters.update("standalone", {**resources.clusters.get("standalone"), "proxyServiceUrl": "p"}))
    at_once(resources.announce(serviceUrl="", brokerServiceUrl="", brokerServiceUrlTls="pulsar+ssl://a:3"))
    found = resources.clusters.get("standalone")
    assert (found["brokerServiceUrlTls"], found["proxyServiceUrl"]) == ("pulsar+ssl://a:3", "p")
    assert not {"serviceUrl", "brokerServiceUrl"} & set(found)


def test_reads_never_touch_the_store(resources: Resources) -> None:
    topic = TopicName.parse("t")
    at_once(resources.partitioned.create(topic, 4))
    at_once(resources.close())  # the memory store is empty now
    assert resources.partitioned.count(topic) == 4
    assert resources.namespaces.exists(DEFAULT)
    resources.require_namespace(topic)


def test_a_damaged_record_is_named() -> None:
    store = MemoryMetadataStore()
    at_once(store.put("/tenants/acme", b"{"))
    with pytest.raises(MetadataError, match="metadata record /tenants/acme is not JSON"):
        Resources(store, Settings())


def test_a_failed_write_changes_nothing(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: str, data: bytes, expected: int | None = None) -> int:
        raise MetadataError("disk full")

    monkeypatch.setattr(resources._store, "put", fail)
    topic = TopicName.parse("t")
    for action in (
        lambda: resources.partitioned.create(topic, 2),
        lambda: resources.tenants.create("acme", STANDALONE),
        lambda: resources.namespaces.update(DEFAULT, deduplicationEnabled=True),
    ):
        assert refused(action) == (500, "disk full")
    assert resources.partitioned.count(topic) == 0
    assert not resources.tenants.exists("acme")
    assert "deduplicationEnabled" not in resources.namespaces.policies(DEFAULT)


def test_tenant_refusals(resources: Resources) -> None:
    create, update = resources.tenants.create, resources.tenants.update
    none: JsonObject = {"adminRoles": [], "allowedClusters": []}
    unknown: JsonObject = {"adminRoles": [], "allowedClusters": ["nope"]}
    assert refused(lambda: create("public", STANDALONE)) == (409, "Tenant already exist")
    assert refused(lambda: create("e@1", STANDALONE)) == (412, "Tenant name is not valid")
    assert refused(lambda: create("e1", None)) == (412, "TenantInfo is null")
    assert refused(lambda: create("e1", none)) == (412, "Clusters cannot be empty or blank")
    assert refused(lambda: create("e1", unknown)) == (412, "Clusters do not exist")
    for role in ("", " ", " a", "a "):
        blank: JsonObject = {"adminRoles": ["a", role], "allowedClusters": ["standalone"]}
        refusal = refused(partial(create, "e1", blank))
        assert refusal == (412, "AdminRoles contains whitespace in the beginning or end.")
    assert refused(lambda: update("nope", STANDALONE)) == (404, "Tenant nope not found")
    assert refused(lambda: update("public", none)) == (412, "Clusters cannot be empty or blank")
    assert refused(lambda: resources.tenants.get("nope")) == (404, "Tenant does not exist")
    assert refused(lambda: resources.tenants.delete("nope", False)) == (404, "Tenant doesn't exist")
    assert refused(lambda: resources.tenants.delete("public", True)) == (409, "The tenant still has active namespaces")


def test_tenant_life(resources: Resources) -> None:
    at_once(resources.tenants.create("acme", {"adminRoles": ["a", "a"], "allowedClusters": ["standalone"], "x": 1}))
    assert resources.tenants.get("acme") == {"adminRoles": ["a"], "allowedClusters": ["standalone"]}
    at_once(resources.tenants.update("acme", STANDALONE))
    assert resources.tenants.get("acme") == STANDALONE
    at_once(resources.tenants.delete("acme", False))
    assert not resources.tenants.exists("acme")


def test_cluster_life_and_refusals(resources: Resources) -> None:
    clusters = resources.clusters
    data: JsonObject = {"serviceUrl": "http://127.0.0.1:1", "brokerServiceUrl": "pulsar://127.0.0.1:2", "nope": 1}
    at_once(clusters.create("c2", data))
    assert clusters.get("c2") == {
        "serviceUrl": "http://127.0.0.1:1",
        "brokerServiceUrl": "pulsar://127.0.0.1:2",
        "brokerClientTlsEnabled": False,
        "tlsAllowInsecureConnection": False,
        "brokerClientTlsEnabledWithKeyStore": False,
    }
    assert refused(lambda: clusters.create("c2", data)) == (409, "Cluster already exists")
    assert refused(lambda: clusters.create("e@1", data)) == (412, "Cluster name is not valid")
    assert refused(lambda: clusters.create("c3", {"serviceUrl": "nope"})) == (
        400,
        "Illegal service url, example: http://pulsar.example.com:8080",
    )
    at_once(clusters.delete("c2"))
    assert refused(lambda: clusters.get("c2")) == (404, "Cluster does not exist")
    assert refused(lambda: clusters.delete("c2")) == (404, "Cluster does not exist")
    assert refused(lambda: clusters.update("c2", data)) == (404, "Cluster does not exist")


def test_the_own_cluster_shows_what_a_client_of_brokers_takes(resources: Resources) -> None:
    """As Apache Pulsar 4.0.8 does of its own cluster, also where an older version wrote the record."""
    clusters, shown = resources.clusters, "brokerClientTlsKeyStoreType"
    own = {
        "brokerClientTlsEnabled": False,
        "tlsAllowInsecureConnection": False,
        "brokerClientTlsEnabledWithKeyStore": False,
        "brokerClientTlsTrustStoreType": "JKS",
        "brokerClientTlsKeyStoreType": "JKS",
        "brokerClientSslFactoryPlugin": "org.apache.pulsar.common.util.DefaultPulsarSslFactory",
    }
    assert clusters.get("standalone") == own
    at_once(clusters.update("standalone", {shown: "PKCS12"}))
    assert clusters.get("standalone") == {**own, shown: "PKCS12"}
    at_once(clusters.create("c2", {"serviceUrl": "http://127.0.0.1:1"}))
    assert shown not in clusters.get("c2")


def test_namespace_refusals(resources: Resources) -> None:
    namespaces = resources.namespaces
    nope = NamespaceName.parse("public/nope")
    assert refused(lambda: namespaces.create("public", "default")) == (409, "Namespace already exists")
    assert refused(lambda: namespaces.create("nope", "ns")) == (404, "Tenant does not exist")
    assert refused(lambda: namespaces.create("public", "b@d")) == (412, "Namespace name is not valid")
    assert refused(lambda: namespaces.create("public", "n", {"replication_clusters": ["nope"]})) == (
        403,
        "Cluster [nope] is not in the list of allowed clusters list for tenant [public]",
    )
    assert refused(lambda: namespaces.policies(nope)) == (404, "Namespace does not exist")
    assert refused(lambda: namespaces.update(nope, deleted=True)) == (404, "Namespace does not exist")
    assert refused(lambda: namespaces.delete(nope, False)) == (404, "Namespace public/nope does not exist.")
    assert refused(lambda: namespaces.delete(DEFAULT, True)) == (409, "Cannot delete non empty namespace")
    assert refused(lambda: namespaces.of_tenant("nope")) == (404, "Tenant not found")
    assert refused(lambda: resources.require_namespace(nope.topic("t"))) == (404, "Namespace not found")


@pytest.mark.parametrize(
    ("wanted", "number"),
    [(None, 4), ({}, 4), ({"bundles": {"numBundles": 0, "boundaries": []}}, 4), ({"bundles": {"numBundles": 16}}, 16)],
)
def test_bundles_of_a_new_namespace(resources: Resources, wanted: JsonObject | None, number: int) -> None:
    name = at_once(resources.namespaces.create("public", "n", wanted))
    assert resources.namespaces.policies(name)["bundles"] == bundles(number)


def test_bundle_boundaries() -> None:
    assert bundles(4) == {
        "boundaries": ["0x00000000", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff"],
        "numBundles": 4,
    }


def test_policies_given_at_creation_are_kept_and_unknown_fields_are_not(resources: Resources) -> None:
    """A namespace keeps the policies that it was created with; unknown fields are dropped (rule 11.3.2)."""
    wanted: JsonObject = {"message_ttl_in_seconds": 5, "nope": 1, "deleted": None}
    name = at_once(resources.namespaces.create("public", "n", wanted))
    policies = resources.namespaces.policies(name)
    assert policies["message_ttl_in_seconds"] == 5
    assert "nope" not in policies
    assert policies["deleted"] is False


def test_policies_the_broker_acts_on(resources: Resources) -> None:
    namespaces = resources.namespaces
    before = namespaces.view(DEFAULT)
    assert namespaces.view(DEFAULT) is before
    assert (before.auto_topic_creation, before.auto_subscription_creation, before.retention, before.deduplication) == (
        None,
        None,
        None,
        None,
    )
    at_once(
        namespaces.update(
            DEFAULT,
            autoTopicCreationOverride={
                "allowAutoTopicCreation": True,
                "topicType": "partitioned",
                "defaultNumPartitions": 3,
            },
            autoSubscriptionCreationOverride={"allowAutoSubscriptionCreation": False},
            retention_policies={"retentionTimeInMinutes": 10, "retentionSizeInMB": -1},
            deduplicationEnabled=True,
        )
    )
    after = namespaces.view(DEFAULT)
    assert after.auto_topic_creation == AutoTopicCreation(True, 3)
    assert after.auto_subscription_creation is False
    assert after.retention == Retention(10, -1)
    assert after.deduplication is True
    at_once(
        namespaces.update(
            DEFAULT, deduplicationEnabled=None, autoTopicCreationOverride={"allowAutoTopicCreation": False}
        )
    )
    assert namespaces.view(DEFAULT).deduplication is None
    assert namespaces.view(DEFAULT).auto_topic_creation == AutoTopicCreation(False, 0)
    assert "deduplicationEnabled" not in namespaces.policies(DEFAULT)


def test_partitions_only_grow(resources: Resources) -> None:
    """The number of partitions can only grow (rules 2.14, 11.4.1)."""
    topics, topic = resources.partitioned, TopicName.parse("t")
    assert topics.count(topic) == 0
    assert refused(lambda: topics.create(topic, 0)) == (406, "Number of partitions should be more than 0")
    assert refused(lambda: topics.grow(topic, 0)) == (406, "Number of partitions should be more than 0")
    assert refused(lambda: topics.grow(topic, 2)) == (
        409,
        "Topic persistent://public/default/t is not the partitioned topic.",
    )
    at_once(topics.create(topic, 4, {"k": "v"}))
    assert refused(lambda: topics.create(topic, 4)) == (409, "This topic already exists")
    assert refused(lambda: topics.grow(topic, 1)) == (
        422,
        "Desired partitions 1 can't be less than the current partitions 4.",
    )
    at_once(topics.grow(topic, 4))
    at_once(topics.grow(topic, 6))
    assert topics.get(topic) == PartitionedTopic(6, {"k": "v"})
    assert topics.count(topic.partition(0)) == 0
    at_once(resources.delete_partitioned(topic, with_schema=True))
    assert topics.count(topic) == 0
    assert refused(lambda: resources.delete_partitioned(topic, with_schema=True)) == (
        404,
        "Topic persistent://public/default/t not found.",
    )


def test_partitions_that_are_to_be_made_are_noted_until_they_are() -> None:
    """The record of a topic notes the partitions that are to be made, so that the note outlives the process (rule
    2.14)."""
    store = MemoryMetadataStore()
    topic, unstored = TopicName.parse("t"), TopicName.parse("non-persistent://public/default/n")

    def noted() -> int | None:
        fresh = opened(store).partitioned
        assert fresh.unmade(topic) == topics.unmade(topic)
        return topics.unmade(topic)

    resources = opened(store)
    topics = resources.partitioned
    at_once(topics.create(topic, 4, to_make=True))
    assert noted() == 0
    at_once(topics.grow(topic, 6))
    at_once(topics.set_properties(topic, {"a": "b"}))
    assert noted() == 0, "the lower of the two"
    at_once(topics.made(topic, 4))
    assert noted() == 4, "somebody made what he knew of"
    at_once(topics.made(topic, 3))
    assert noted() == 4
    at_once(topics.made(topic, 6))
    assert noted() is None
    at_once(topics.grow(topic, 6))
    assert noted() is None
    at_once(topics.grow(topic, 7))
    assert (noted(), topics.all_unmade()) == (6, {topic: 6})
    at_once(resources.forget_topic(topic))
    assert (noted(), topics.count(topic)) == (None, 7), "none is made any more while it goes"
    at_once(resources.delete_partitioned(topic, with_schema=True))
    assert (noted(), topics.all_unmade()) == (None, {})
    at_once(topics.create(topic, 2))
    assert noted() is None, "they come with their first use"
    at_once(topics.create(unstored, 2, to_make=True))
    assert topics.unmade(unstored) is None, "nothing of a non-persistent topic is made beforehand"


def test_partitioned_refusals(resources: Resources) -> None:
    topics = resources.partitioned
    assert refused(lambda: topics.create(TopicName.parse("x-partition-1"), 2)) == (
        412,
        "Partitioned Topic Name should not contain '-partition-'",
    )
    assert refused(lambda: topics.create(TopicName.parse("persistent://a/us/ns/t"), 2)) == (404, "Namespace not found")
    limited = opened(MemoryMetadataStore(), Settings(maxNumPartitionsPerPartitionedTopic=3)).partitioned
    assert refused(lambda: limited.create(TopicName.parse("t"), 4))[0] == 406


def test_partitioned_topics_of_a_namespace(resources: Resources) -> None:
    for name in ("b", "a", "non-persistent://public/default/n", "pulsar/system/s"):
        at_once(resources.partitioned.create(TopicName.parse(name), 1))
    listed = resources.partitioned.of_namespace
    assert [t.local_name for t in listed(DEFAULT)] == ["n", "a", "b"]
    assert [t.local_name for t in listed(DEFAULT, "persistent")] == ["a", "b"]


def test_what_was_granted_on_a_topic_goes_with_it_and_nothing_else_does(resources: Resources) -> None:
    namespace = NamespaceName.parse("public/default")
    gone, other = (TopicName.parse(f"persistent://public/default/{name}") for name in ("gone", "other"))
    grants: JsonObject = {
        "namespace_auth": {"app": ["produce"]},
        "destination_auth": {gone.fqn: {"app": ["consume"]}, other.fqn: {"app": ["consume"]}},
    }
    at_once(resources.namespaces.change(namespace, lambda policies: {"auth_policies": grants}))
    at_once(resources.forget_topic(gone))
    assert resources.namespaces.policies(namespace)["auth_policies"] == {
        "namespace_auth": {"app": ["produce"]},
        "destination_auth": {other.fqn: {"app": ["consume"]}},
    }
