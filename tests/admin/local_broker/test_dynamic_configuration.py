"""Settings that change while the broker runs, over REST, and what they change (rule 11.2.4)."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from magnetar.config.dynamic_settings import dynamic_names
from magnetar.protocol.commands import SubType
from magnetar.testing.rawclient import RawClientError
from tests.support.real_broker import TOPIC, RealBroker, run_on_broker

CONFIGURATION = "/admin/v2/brokers/configuration"
T = "persistent://public/default/"
OK = (200, "")
DONE = (204, "")


async def change(broker: RealBroker, name: str, value: str) -> None:
    assert await broker.ask("POST", f"{CONFIGURATION}/{name}/{quote(value, safe='')}") == OK


async def forget(broker: RealBroker, name: str) -> None:
    assert await broker.ask("DELETE", f"{CONFIGURATION}/{name}") == OK


def test_the_four_routes(tmp_path: Path) -> None:
    """Names, values, changes and deletions answer as Apache Pulsar does; a wrong type is refused here."""

    async def steps(broker: RealBroker) -> None:
        assert await broker.ask("GET", CONFIGURATION) == (200, dynamic_names())
        assert await broker.ask("GET", f"{CONFIGURATION}/values") == (200, {})
        await change(broker, "allowAutoSubscriptionCreation", "true")
        await change(broker, "loadBalancerSheddingExcludedNamespaces", "my-tenant/my-namespace")
        kept = {
            "allowAutoSubscriptionCreation": "true",
            "loadBalancerSheddingExcludedNamespaces": "my-tenant/my-namespace",
        }
        assert await broker.ask("GET", f"{CONFIGURATION}/values") == (200, kept)
        refused = (412, {"reason": "Can't update non-dynamic configuration"})
        assert await broker.ask("POST", f"{CONFIGURATION}/webServicePort/1") == refused
        assert await broker.ask("POST", f"{CONFIGURATION}/nope/1") == refused
        refused = (412, {"reason": "Can't delete non-dynamic configuration"})
        assert await broker.ask("DELETE", f"{CONFIGURATION}/nope") == refused
        await forget(broker, "dispatcherMinReadBatchSize")  # dynamic for Apache Pulsar; there is nothing to forget
        status, said = await broker.ask("POST", f"{CONFIGURATION}/maxTenants/x")
        assert status == 412 and "whole number" in said["reason"]
        for name in kept:
            await forget(broker, name)
        await forget(broker, "maxTenants")
        assert await broker.ask("GET", f"{CONFIGURATION}/values") == (200, {})

    run_on_broker(tmp_path, steps)


def test_changes_have_their_effect_at_once_and_after_a_restart(tmp_path: Path) -> None:
    """They are stronger than the file, until they are forgotten."""

    async def first(broker: RealBroker) -> None:
        client = await broker.client()
        await client.producer(f"{T}before")
        await change(broker, "allowAutoTopicCreation", "false")
        with pytest.raises(RawClientError):
            await client.producer(f"{T}refused")
        status, runtime = await broker.ask("GET", f"{CONFIGURATION}/runtime")
        assert status == 200 and runtime["allowAutoTopicCreation"] == "false"

    async def second(broker: RealBroker) -> None:
        client = await broker.client()
        with pytest.raises(RawClientError):
            await client.producer(f"{T}refused")
        await forget(broker, "allowAutoTopicCreation")
        await client.producer(f"{T}allowed")

    run_on_broker(tmp_path, first)
    run_on_broker(tmp_path, second)


def test_loaded_topics_obey(tmp_path: Path) -> None:
    """Policies of the broker and settings of dispatch reach topics and subscriptions that are open."""

    async def steps(broker: RealBroker) -> None:
        client = await broker.client()
        await client.producer(f"{T}t")
        await client.subscribe(f"{T}t", "s")
        service = broker.node.broker.service
        topic = service.topics[f"{T}t"]
        await change(broker, "dispatcherMaxReadBatchSize", "7")
        await change(broker, "maxPublishRatePerTopicInMessages", "11")
        await change(broker, "autoSkipNonRecoverableData", "true")
        assert topic.policies.publish_rate.messages == 11
        reads = topic.subscriptions["s"].settings
        assert reads.dispatcher_max_read_batch_size == 7 and reads.auto_skip_non_recoverable_data
        await forget(broker, "maxPublishRatePerTopicInMessages")
        assert topic.policies.publish_rate.messages <= 0

    run_on_broker(tmp_path, steps)


def test_names_of_new_subscriptions_are_looked_at_before_all_else(tmp_path: Path) -> None:
    """By REST also where the topic is not persistent, its namespace missing, or the subscription there."""

    async def steps(broker: RealBroker) -> None:
        client = await broker.client()
        await client.producer(f"{T}t")
        await client.subscribe(f"{T}t", "a/b", SubType.Shared)
        paths = ("persistent/public/default/t", "non-persistent/public/default/n", "persistent/public/none/t")
        await change(broker, "strictlyVerifySubscriptionName", "true")
        text = "Please let the subscription only contains '/w(a-zA-Z_0-9)' or '_', the current value is a/b"
        for path in paths:
            answer = await broker.ask("PUT", f"/admin/v2/{path}/subscription/a%2Fb")
            assert answer == (400, {"reason": text})
        assert await broker.ask("PUT", f"/admin/v2/{paths[0]}/subscription/a-b") == DONE
        await (await broker.client()).subscribe(f"{T}t", "a/b", SubType.Shared)
        await change(broker, "strictlyVerifySubscriptionName", "false")
        assert await broker.ask("PUT", f"/admin/v2/{paths[0]}/subscription/c%2Fd") == DONE

    run_on_broker(tmp_path, steps)


def test_limits_of_what_there_may_be(tmp_path: Path) -> None:
    """Tenants, namespaces, partitions, topics and bundles follow; so do flags that routes read."""

    async def steps(broker: RealBroker) -> None:
        tenant = {"adminRoles": [], "allowedClusters": ["standalone"]}
        for name, value in (
            ("maxTenants", "3"), ("maxNamespacesPerTenant", "1"), ("maxNumPartitionsPerPartitionedTopic", "2"),
            ("defaultNumberOfNamespaceBundles", "8"), ("maxTopicsPerNamespace", "1"), ("managedLedgerCacheSizeMB", "1"),
            ("maxMessagePublishBufferSizeInMB", "9"), ("forceDeleteTenantAllowed", "true"),
            ("subscriptionTypesEnabled", "Exclusive"), ("subscriptionKeySharedEnable", "false"),
        ):  # fmt: skip
            await change(broker, name, value)
        assert (await broker.ask("PUT", "/admin/v2/tenants/one", tenant))[0] == 204
        assert (await broker.ask("PUT", "/admin/v2/tenants/two", tenant))[0] == 412
        assert (await broker.ask("PUT", "/admin/v2/namespaces/one/a"))[0] == 204
        assert (await broker.ask("PUT", "/admin/v2/namespaces/one/b"))[0] == 412
        status, bundles = await broker.ask("GET", "/admin/v2/namespaces/one/a/bundles")
        assert status == 200 and bundles["numBundles"] == 8
        partitioned = f"{TOPIC}/p/partitions"
        await change(broker, "maxTopicsPerNamespace", "9")
        assert await broker.ask("PUT", partitioned, 3) == (
            406,
            {"reason": "Number of partitions should be less than or equal to 2"},
        )
        await change(broker, "maxTopicsPerNamespace", "1")
        assert (await broker.ask("PUT", "/admin/v2/persistent/one/a/first"))[0] == 204
        assert (await broker.ask("PUT", "/admin/v2/persistent/one/a/second"))[0] == 409
        client = await broker.client()
        with pytest.raises(RawClientError):
            await client.subscribe("persistent://one/a/first", "s", sub_type=SubType.Shared)
        service = broker.node.broker.service
        assert service.store.cache.bytes_max == 1 << 20 and service.pending_bytes_high == 9 << 20
        assert (await broker.ask("DELETE", "/admin/v2/tenants/one?force=true"))[0] == 204
        await forget(broker, "maxTenants")
        assert (await broker.ask("PUT", "/admin/v2/tenants/two", tenant))[0] == 204

    run_on_broker(tmp_path, steps)
