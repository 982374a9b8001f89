"""Policies of namespaces that name clusters or bookies, and resource quotas: kept, checked, shown, or refused."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.config.settings import Settings
from magnetar.model.policies import JsonObject
from tests.admin.conftest import World, world
from tests.admin.rest_client import RestClient
from tests.support.at_once import at_once

NS = "/admin/v2/namespaces"
MAIN = NS + "/ref/main"
DEFAULT: JsonObject = {
    "msgRateIn": 40.0, "msgRateOut": 120.0, "bandwidthIn": 100000.0, "bandwidthOut": 300000.0, "memory": 80.0,
    "dynamic": True,
}  # fmt: skip


@pytest.fixture(scope="module")
def shared() -> World:
    """One application for all tests here; the tenant ref may use the cluster c2, too."""
    made = world(Settings())
    at_once(made.resources.clusters.create("c2", {}))
    at_once(made.resources.tenants.update("ref", {"adminRoles": [], "allowedClusters": ["standalone", "c2"]}))
    return made


@pytest.fixture
def two(shared: World) -> RestClient:
    """The namespace ref/main is as new, and so is the default quota."""
    shared.broker.topics = {}
    at_once(shared.resources.placement.set_default_quota(DEFAULT))
    for path in (MAIN, NS + "/ref/new", NS + "/ref/other"):
        shared.rest.delete(path)
    assert shared.rest.put(MAIN).status_code == 204
    return shared.rest


def said(rest: RestClient, method: str, path: str, body: object = None) -> tuple[int, Any]:
    """Status, and the reason or the whole answer."""
    answered = rest.request(method, path, json=body)
    found: Any = answered.json() if answered.content else None
    return answered.status_code, found["reason"] if answered.status_code >= 400 else found


def test_namespaces_of_an_anti_affinity_group(two: RestClient) -> None:
    path = NS + "/standalone/antiAffinity"
    two.put(NS + "/ref/other")
    two.post(MAIN + "/antiAffinity", content="GrouP")
    assert said(two, "GET", f"{path}/group?tenant=ref") == (200, ["ref/main"])
    assert said(two, "GET", f"{path}/else?tenant=ref") == (200, [])
    assert said(two, "GET", f"{path}/group?tenant=nope") == (200, [])
    assert said(two, "GET", f"{path}/group") == (400, "Tenant should not be null")
    assert said(two, "GET", f"{path}/%20?tenant=ref") == (412, "anti-affinity group can't be empty.")
    assert said(two, "GET", f"{NS}/nope/antiAffinity/group?tenant=ref") == (412, "Cluster nope does not exist.")
    # where pulsar-admin of Apache Pulsar 4.0.8 asks
    old = "/admin/namespaces/standalone/antiAffinity/group"
    assert said(two, "GET", f"{old}?property=ref") == (200, ["ref/main"])
    assert said(two, "GET", f"{old}?tenant=ref") == (400, "Tenant should not be null")


def test_anti_affinity_groups_are_shown_to_administrators_of_the_tenant() -> None:
    guarded = world(Settings(authorizationEnabled=True, superUserRoles="root"))
    at_once(guarded.resources.tenants.update("ref", {"adminRoles": ["admin"], "allowedClusters": ["standalone"]}))
    path = NS + "/standalone/antiAffinity/group?tenant="
    asked = {
        (role, tenant): guarded.rest.as_caller(role).get(path + tenant).status_code
        for role in ("admin", "root", "stranger")
        for tenant in ("ref", "pulsar")
    }
    allowed = {one for one, status in asked.items() if status == 200}
    assert allowed == {("admin", "ref"), ("root", "ref"), ("root", "pulsar")}
    assert set(asked.values()) == {200, 401}
    old = "/admin/namespaces/standalone/antiAffinity/group?property=ref"
    assert [guarded.rest.as_caller(role).get(old).status_code for role in ("admin", "stranger")] == [200, 401]


def test_allowed_clusters(two: RestClient) -> None:
    path = MAIN + "/allowedClusters"
    assert said(two, "GET", path) == (200, [])
    assert said(two, "POST", path, ["standalone", "c2", "c2"]) == (200, None)
    replicated = (
        "Allowed clusters do not contain the replication cluster [standalone]. Please remove the replication cluster "
        "if the cluster is not allowed for this namespace"
    )
    tenant = "Cluster [nope] is not in the list of allowed clusters list for tenant [ref]"
    for body, status, reason in (
        (["nope"], 403, tenant),
        (["c2"], 400, replicated),
        ([], 400, replicated),
        (["standalone", "global"], 412, "Cannot specify global in the list of allowed clusters"),
        (None, 400, "expected a list of clusters, got null"),
        ("c2", 400, 'expected a list of clusters, got "c2"'),
    ):
        assert said(two, "POST", path, body) == (status, reason)
    assert said(two, "GET", path) == (200, ["standalone", "c2"])
    assert said(two, "GET", NS + "/ref/nope/allowedClusters") == (404, "Namespace does not exist")


def test_replication_to_another_cluster_is_refused_wherever_it_is_asked_for(two: RestClient) -> None:
    path = MAIN + "/replication"
    wrong: list[tuple[object, int, str]] = [
        (None, 412, "ClusterIds should not be null or empty"),
        ([], 412, "ClusterIds should not be null or empty"),
        (["global"], 412, "Cannot specify global in the list of replication clusters"),
        (["nope"], 403, "Invalid cluster id: nope"),
    ]
    for body, status, reason in wrong:
        assert said(two, "POST", path, body) == (status, reason)
    two.put("/admin/v2/persistent/ref/main/t")
    topic = "/admin/v2/persistent/ref/main/t/replication"
    other: list[tuple[str, str, object]] = [
        ("POST", path, ["standalone", "c2"]),
        ("POST", topic, ["standalone", "c2"]),
        ("PUT", NS + "/ref/new", {"replication_clusters": ["standalone", "c2"]}),
    ]
    for method, where, named in other:
        status, reason = said(two, method, where, named)
        assert (status, "no message would arrive in cluster c2" in reason) == (501, True), where
    nothing: list[str] | None
    for nothing in (None, []):
        assert said(two, "POST", topic, nothing) == (412, "ClusterIds should not be null or empty")
    status, reason = said(two, "POST", topic, ["c2"])
    assert (status, "Can not remove local cluster" in reason) == (412, True)
    status, reason = said(two, "POST", topic + "?isGlobal=true", ["standalone"])
    assert (status, "namespace-level replication is not enabled" in reason) == (412, True)
    assert said(two, "GET", path) == (200, ["standalone"])
    assert said(two, "GET", NS + "/ref/new")[0] == 404
    assert two.get(topic).content == b""
    assert said(two, "POST", path, ["standalone"]) == (200, None)
    two.post(MAIN + "/allowedClusters", json=["standalone"])
    allowed = "Cluster [c2] is not in the list of allowed clusters list for namespace [ref/main]"
    assert said(two, "POST", path, ["standalone", "c2"]) == (400, allowed)


def test_a_namespace_is_marked_as_migrated(two: RestClient) -> None:
    assert said(two, "POST", MAIN + "/migration", True) == (204, None)
    assert said(two, "GET", MAIN)[1]["migrated"] is True
    for body, reason in ((None, "got null"), ("x", 'got "x"'), ({}, "got {}")):
        status, refused = said(two, "POST", MAIN + "/migration", body)
        assert (status, refused) == (400, "expected true or false, " + reason)
    assert said(two, "GET", MAIN)[1]["migrated"] is True
    assert said(two, "POST", NS + "/ref/nope/migration", True) == (404, "Namespace does not exist")


def test_bookie_affinity_is_data(two: RestClient) -> None:
    path = MAIN + "/persistence/bookieAffinity"
    assert said(two, "GET", path) == (204, None)
    group = {"bookkeeperAffinityGroupPrimary": "g1", "bookkeeperAffinityGroupSecondary": "g2"}
    assert said(two, "POST", path, {**group, "more": 1}) == (204, None)
    assert said(two, "GET", path) == (200, group)
    assert said(two, "POST", path, [])[0] == 400
    assert said(two, "GET", path) == (200, group)
    assert said(two, "POST", path, {"bookkeeperAffinityGroupPrimary": 5}) == (204, None)
    assert said(two, "GET", path) == (200, {"bookkeeperAffinityGroupPrimary": "5"})
    assert said(two, "DELETE", path) == said(two, "DELETE", path) == said(two, "GET", path) == (204, None)
    for method in ("GET", "POST", "DELETE"):
        missing = said(two, method, NS + "/ref/nope/persistence/bookieAffinity", {})
        assert missing == (404, "Namespace not found")


def test_resource_quotas(two: RestClient) -> None:
    base = "/admin/v2/resource-quotas"
    one = base + "/ref/main/0x00000000_0x40000000"
    assert said(two, "GET", base) == said(two, "GET", one) == (200, DEFAULT)
    assert said(two, "POST", base, {"msgRateIn": "7", "memory": 1e30, "dynamic": False, "more": 1}) == (204, None)
    changed = {**dict.fromkeys(DEFAULT, 0.0), "msgRateIn": 7.0, "memory": 1e30, "dynamic": False}
    assert said(two, "GET", base) == said(two, "GET", one) == (200, changed)
    bodies: list[object] = [None, [], {"msgRateIn": "x"}, {"dynamic": "perhaps"}]
    for body in bodies:
        assert said(two, "POST", base, body)[0] == said(two, "POST", one, body)[0] == 400
    assert said(two, "POST", one, DEFAULT) == (204, None)
    assert said(two, "GET", one) == (200, DEFAULT)
    assert said(two, "DELETE", one) == (204, None)
    gone = "path /loadbalance/resource-quota/ref/main/0x00000000_0x40000000 not found."
    assert said(two, "DELETE", one) == (404, gone)
    assert said(two, "GET", base + "/ref/nope/0x00000000_0x40000000") == (404, "Namespace does not exist")
    assert said(two, "GET", base + "/ref/main/x") == (412, "Invalid bundle range: x")


def test_a_namespace_of_the_same_name_does_not_find_what_was_said_about_an_earlier_one(two: RestClient) -> None:
    bundle = "/admin/v2/resource-quotas/ref/new/0x00000000_0x40000000"
    affinity = NS + "/ref/new/persistence/bookieAffinity"
    assert said(two, "PUT", NS + "/ref/new")[0] == 204
    assert said(two, "POST", affinity, {"bookkeeperAffinityGroupPrimary": "g"})[0] == 204
    assert said(two, "POST", bundle, {})[0] == 204
    assert said(two, "DELETE", NS + "/ref/new")[0] == said(two, "PUT", NS + "/ref/new")[0] == 204
    assert said(two, "GET", affinity) == (204, None)
    assert said(two, "GET", bundle) == (200, DEFAULT)


def test_there_are_no_bookies(two: RestClient) -> None:
    base = "/admin/v2/bookies"
    assert said(two, "GET", base + "/all") == (200, {"bookies": []})
    assert said(two, "GET", base + "/racks-info") == (200, {})
    missing = "Bookie rack placement configuration not found: a:1"
    assert said(two, "GET", base + "/racks-info/a:1") == said(two, "DELETE", base + "/racks-info/a:1") == (404, missing)
    status, reason = said(two, "POST", base + "/racks-info/a:1?group=g", {"rack": "r"})
    assert (status, "needs BookKeeper, which this broker's embedded store replaces" in reason) == (501, True)
