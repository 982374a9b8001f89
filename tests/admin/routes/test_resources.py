"""Clusters, tenants, namespaces over REST: rules 11.1, 11.2, 11.3 and the reasons Apache Pulsar gave."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.names import TopicName
from tests.admin.conftest import World
from tests.admin.fake_broker import FakeBroker
from tests.admin.rest_client import RestClient
from tests.support.at_once import at_once

STANDALONE = {"adminRoles": [], "allowedClusters": ["standalone"]}


def test_clusters_tenants_and_namespaces_are_shown(rest: RestClient) -> None:
    """Clusters, tenants and namespaces are listed and shown with their policies (rule 11.3.1)."""
    assert rest.get("/admin/v2/clusters").json() == ["standalone"]
    assert rest.get("/admin/v2/tenants").json() == ["public", "pulsar", "ref"]
    assert rest.get("/admin/v2/tenants/public").json() == STANDALONE
    assert rest.get("/admin/v2/namespaces/ref").json() == ["ref/main"]
    bundles = rest.get("/admin/v2/namespaces/ref/main/bundles").json()
    assert bundles == {
        "boundaries": ["0x00000000", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff"],
        "numBundles": 4,
    }
    policies = rest.get("/admin/v2/namespaces/ref/main").json()
    assert policies["bundles"] == bundles
    assert policies["replication_clusters"] == ["standalone"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("PUT", "/admin/v2/clusters/c2", {"serviceUrl": "http://127.0.0.1:1"}, 200),
        ("POST", "/admin/v2/clusters/standalone", {"serviceUrl": "http://127.0.0.1:1"}, 200),
        ("DELETE", "/admin/v2/clusters/standalone", None, 204),
        ("PUT", "/admin/v2/tenants/e1", STANDALONE, 204),
        ("POST", "/admin/v2/tenants/ref", STANDALONE, 204),
        ("PUT", "/admin/v2/namespaces/ref/e1", {}, 204),
        ("PUT", "/admin/v2/namespaces/ref/e2", {"nope": 1}, 204),
        ("PUT", "/admin/v2/namespaces/ref/e3", {"bundles": {"numBundles": 0, "boundaries": []}}, 204),
        ("DELETE", "/admin/v2/namespaces/ref/main", None, 204),
    ],
)
def test_mutators_succeed_with_an_empty_answer(
    rest: RestClient, method: str, path: str, body: object, status: int
) -> None:
    """A change that succeeds is answered without a body (rule 11.1.1)."""
    done = rest.request(method, path, json=body)
    assert (done.status_code, done.content) == (status, b"")


@pytest.mark.parametrize("content", [b"", b"null", b"{}"])
def test_bodies_may_be_empty_or_null(rest: RestClient, content: bytes) -> None:
    """Bodies of PUT may be empty or null, which Pulsar's Go test suite sends (rule 11.1.4)."""
    sent = rest.put("/admin/v2/namespaces/ref/n", content=content, headers={"content-type": "application/json"})
    assert sent.status_code == 204
    assert "ref/n" in rest.get("/admin/v2/namespaces/ref").json()


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "reason"),
    [
        ("PUT", "/admin/v2/clusters/standalone", {}, 409, "Cluster already exists"),
        ("PUT", "/admin/v2/clusters/e@1", {"serviceUrl": "http://127.0.0.1:1"}, 412, "Cluster name is not valid"),
        (
            "PUT",
            "/admin/v2/clusters/e1",
            {"serviceUrl": "nope"},
            400,
            "Illegal service url, example: http://pulsar.example.com:8080",
        ),
        ("GET", "/admin/v2/clusters/nope", None, 404, "Cluster does not exist"),
        ("DELETE", "/admin/v2/clusters/nope", None, 404, "Cluster does not exist"),
        ("PUT", "/admin/v2/tenants/public", STANDALONE, 409, "Tenant already exist"),
        ("PUT", "/admin/v2/tenants/e@1", STANDALONE, 412, "Tenant name is not valid"),
        ("PUT", "/admin/v2/tenants/e1", None, 412, "TenantInfo is null"),
        ("GET", "/admin/v2/tenants/nope", None, 404, "Tenant does not exist"),
        ("DELETE", "/admin/v2/tenants/nope", None, 404, "Tenant doesn't exist"),
        ("DELETE", "/admin/v2/tenants/ref", None, 409, "The tenant still has active namespaces"),
        ("DELETE", "/admin/v2/tenants/ref?force=true", None, 405, "Broker doesn't allow forced deletion of tenants"),
        ("POST", "/admin/v2/tenants/nope", STANDALONE, 404, "Tenant nope not found"),
        ("GET", "/admin/v2/namespaces/nope", None, 404, "Tenant not found"),
        ("GET", "/admin/v2/namespaces/ref/nope", None, 404, "Namespace does not exist"),
        ("GET", "/admin/v2/namespaces/ref/nope/topics", None, 404, "Namespace does not exist"),
        ("PUT", "/admin/v2/namespaces/public/default", {}, 409, "Namespace already exists"),
        ("PUT", "/admin/v2/namespaces/nope/ns", {}, 404, "Tenant does not exist"),
        ("PUT", "/admin/v2/namespaces/ref/b@d", {}, 412, "Namespace name is not valid"),
        ("DELETE", "/admin/v2/namespaces/ref/nope", None, 404, "Namespace ref/nope does not exist."),
        (
            "DELETE",
            "/admin/v2/namespaces/ref/main?force=true",
            None,
            405,
            "Broker doesn't allow forced deletion of namespaces",
        ),
        (
            "PUT",
            "/admin/v2/namespaces/ref/e4",
            {"replication_clusters": ["nope"]},
            403,
            "Cluster [nope] is not in the list of allowed clusters list for tenant [ref]",
        ),
    ],
)
def test_refusals_have_pulsars_status_and_reason(
    shared_world: World, method: str, path: str, body: object, status: int, reason: str
) -> None:
    """Refusals of clusters, tenants and namespaces have the status and the reason of Apache Pulsar (rules 11.1.2,
    11.1.3, 11.2.1, 11.2.3, 11.3.9)."""
    refused = shared_world.rest.request(method, path, json=body)
    assert (refused.status_code, refused.json()) == (status, {"reason": reason})


def test_a_namespace_with_topics_is_not_deleted(rest: RestClient, broker: FakeBroker) -> None:
    broker.topics[TopicName.parse("ref/main/t")] = {}
    refused = rest.delete("/admin/v2/namespaces/ref/main")
    assert (refused.status_code, refused.json()["reason"]) == (409, "Cannot delete non empty namespace")


def test_a_namespace_with_only_a_partitioned_name_is_not_empty(rest: RestClient, resources: Resources) -> None:
    at_once(resources.partitioned.create(TopicName.parse("ref/main/t"), 2))
    assert rest.delete("/admin/v2/namespaces/ref/main").status_code == 409


class TestForced:
    """Forced deletion, with the two settings that allow it."""

    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(forceDeleteNamespaceAllowed=True, forceDeleteTenantAllowed=True)

    @pytest.mark.parametrize("path", ["namespaces/ref/main", "tenants/ref"])
    def test_force_removes_everything(
        self, rest: RestClient, broker: FakeBroker, resources: Resources, path: str
    ) -> None:
        partitioned = TopicName.parse("ref/main/p")
        at_once(resources.partitioned.create(partitioned, 2))
        busy = partitioned.partition(1)
        broker.topics = {busy: {}, TopicName.parse("ref/main/t"): {}, TopicName.parse("public/default/other"): {}}
        broker.clients[busy] = 1
        assert rest.delete(f"/admin/v2/{path}?force=true").status_code == 204
        assert [topic.local_name for topic in broker.topics] == ["other"]
        assert resources.partitioned.count(partitioned) == 0
        assert rest.get("/admin/v2/namespaces/ref/main").status_code == 404
        assert rest.delete("/admin/v2/namespaces/ref/main?force=true").status_code == 404


def test_lists_of_topics_have_internal_names(rest: RestClient, broker: FakeBroker) -> None:
    """Lists of topics have internal names, and system topics only if asked for (rules 11.3.3, 11.4.2)."""
    names = ("ref/main/b-partition-0", "ref/main/a", "ref/main/__change_events", "non-persistent://ref/main/n")
    broker.topics = {TopicName.parse(name): {} for name in names}
    persistent = ["persistent://ref/main/a", "persistent://ref/main/b-partition-0"]
    path = "/admin/v2/namespaces/ref/main/topics"
    assert rest.get(path).json() == persistent
    assert rest.get(path + "?mode=NON_PERSISTENT").json() == ["non-persistent://ref/main/n"]
    assert rest.get(path + "?mode=ALL").json() == ["non-persistent://ref/main/n", *persistent]
    assert len(rest.get(path + "?includeSystemTopic=true").json()) == 3
    assert rest.get("/admin/v2/persistent/ref/main").json() == persistent
    assert rest.get("/admin/v2/non-persistent/ref/main").json() == ["non-persistent://ref/main/n"]


def test_deduplication_policy(rest: RestClient, resources: Resources) -> None:
    """The deduplication policy is set, shown and removed; unset, GET answers an empty 200 (rule 11.6.1)."""
    path = "/admin/v2/namespaces/public/default/deduplication"
    assert (rest.get(path).status_code, rest.get(path).content) == (200, b"")
    assert rest.post(path, content=b"true", headers={"content-type": "application/json"}).status_code == 204
    assert rest.get(path).json() is True
    assert rest.delete(path).status_code == 204
    assert rest.get(path).content == b""
    assert rest.post(path, json="x").status_code == 400
    assert rest.post("/admin/v2/namespaces/ref/nope/deduplication", json=True).json() == {
        "reason": "Namespace does not exist"
    }


@pytest.mark.parametrize("body", [{"adminRoles": "x"}, {"allowedClusters": {}}, {"adminRoles": [None]}])
def test_roles_and_clusters_have_to_be_lists_of_texts(rest: RestClient, body: dict[str, Any]) -> None:
    wanted = {"allowedClusters": ["standalone"], **body}
    assert rest.put("/admin/v2/tenants/odd", json=wanted).status_code == 400
    assert rest.get("/admin/v2/tenants/odd").status_code == 404
