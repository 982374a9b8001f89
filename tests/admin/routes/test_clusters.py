"""Clusters: peers, migration, failure domains, isolation policies, and what one record may hold.

Statuses and reasons are those of Apache Pulsar 4.0.8, asked the same; where they differ, docs/differences.md says so.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from magnetar.config.settings import Settings
from magnetar.metadata.placement import RECORD_BYTES_MAX
from tests.admin.conftest import World, world
from tests.admin.fake_broker import FakeBroker
from tests.admin.rest_client import RestClient
from tests.support.at_once import at_once
from tests.support.isolation_policy import isolation_policy

BASE = "/admin/v2/clusters"
DATA = {"serviceUrl": "http://127.0.0.1:1", "brokerServiceUrl": "pulsar://127.0.0.1:1"}


@pytest.fixture(scope="module")
def shared() -> World:
    """One application for all tests here, which make the clusters c2 and c3 anew."""
    return world(Settings())


@pytest.fixture
def broker(shared: World) -> FakeBroker:
    return shared.broker


@pytest.fixture
def two(shared: World) -> RestClient:
    """Make a world with the clusters c2 and c3."""
    rest = shared.rest
    for name in ("c2", "c3"):
        at_once(shared.resources.change_together(partial(shared.resources.placement.without_cluster, name)))
        rest.delete(f"{BASE}/{name}")
        assert rest.put(f"{BASE}/{name}", json=DATA).status_code == 200
    return rest


def said(rest: RestClient, method: str, path: str, body: object = None) -> tuple[int, Any]:
    """Status, and the reason or the whole answer."""
    answered = rest.request(method, BASE + path, json=body)
    found: Any = answered.json() if answered.content else None
    return answered.status_code, found["reason"] if answered.status_code >= 400 else found


def test_peers_are_other_clusters_that_exist(two: RestClient) -> None:
    assert said(two, "GET", "/c2/peers") == (200, None)
    assert said(two, "POST", "/c2/peers", ["c3", "c3", "standalone"]) == (204, None)
    refused = {
        "itself": (["c3", "C2"], 412, "c2 itself can't be part of peer-list"),
        "unknown": (["c3", "nope"], 412, "Peer cluster nope does not exist"),
        "number": ([1], 412, "Peer cluster 1 does not exist"),
        "null": ([None], 400, "expected the name of a cluster, got null"),
        "object": ({"a": 1}, 400, 'expected a list of clusters, got {"a": 1}'),
    }
    for body, status, reason in refused.values():
        assert said(two, "POST", "/c2/peers", body) == (status, reason)
    assert said(two, "POST", "/nope/peers", []) == (404, "Cluster does not exist")
    assert said(two, "GET", "/c2/peers") == (200, ["c3", "standalone"])
    assert said(two, "GET", "/c2")[1]["peerClusterNames"] == ["c3", "standalone"]
    assert said(two, "GET", "/c2")[1]["serviceUrl"] == DATA["serviceUrl"]
    assert said(two, "POST", "/c2/peers") == (204, None)
    assert said(two, "GET", "/c2/peers") == (200, None)


def test_a_cluster_needs_data(two: RestClient) -> None:
    for method, path in (("PUT", "/c4"), ("POST", "/c2")):
        assert said(two, method, path) == (400, "cluster data is required")
    assert said(two, "GET", "/c2")[1]["serviceUrl"] == DATA["serviceUrl"]


def test_the_global_cluster_is_in_no_list_and_every_tenant_may_name_it(two: RestClient) -> None:
    tenant = "/admin/v2/tenants/worldwide"
    assert two.put(tenant, json={"allowedClusters": ["global"]}).status_code == 204
    assert two.delete(tenant).status_code == 204
    assert two.put(f"{BASE}/global", json=DATA).status_code == 200
    assert two.get(f"{BASE}/global").json()["serviceUrl"] == DATA["serviceUrl"]
    assert two.get(BASE).json() == ["c2", "c3", "standalone"]
    assert two.delete(f"{BASE}/global").status_code == 204


def test_another_clusters_migration_is_data_and_the_own_ones_refused(two: RestClient) -> None:
    assert said(two, "GET", "/c2/migrate") == (404, "Cluster does not exist")
    url = {"brokerServiceUrl": "pulsar://x:1"}
    assert said(two, "POST", "/c2/migrate?migrated=true", {**url, "more": 1}) == (200, None)
    shown = {"migrated": True, "migratedClusterUrl": {**url, "empty": False}}
    assert said(two, "GET", "/c2/migrate") == (200, shown)
    assert said(two, "POST", "/c2/migrate?migrated=true", {}) == (400, "Cluster url must not be empty")
    assert said(two, "POST", "/nope/migrate", {}) == (404, "Cluster does not exist")
    status, reason = said(two, "POST", "/standalone/migrate?migrated=true", url)
    assert status == 501
    assert "standalone" in reason
    assert said(two, "GET", "/standalone/migrate") == (404, "Cluster does not exist")
    assert said(two, "GET", "/c2/migrate") == (200, shown)
    assert said(two, "POST", "/c2/migrate") == (200, None)
    assert said(two, "GET", "/c2/migrate") == (200, {"migrated": False})


def test_a_broker_is_in_one_failure_domain(two: RestClient) -> None:
    base = "/c2/failureDomains"
    assert said(two, "GET", base) == (200, {})
    assert said(two, "POST", base + "/d", {"brokers": ["a:1", "b:1", "a:1"]}) == (204, None)
    assert said(two, "POST", base + "/e", {"brokers": ["c:1", "b:1", "a:1"]}) == (
        409,
        "[a:1, b:1] already exists in d",
    )
    assert said(two, "GET", base + "/e") == (404, "Domain e for cluster c2 does not exist")
    assert said(two, "POST", base + "/d", {"brokers": ["b:1"]}) == (204, None)  # its own are free
    assert said(two, "POST", base + "/x%2Fy", {}) == (204, None)
    assert said(two, "GET", base) == (200, {"d": {"brokers": ["b:1"]}, "x/y": {}})
    for body, reason in (
        (None, 'expected a failure domain such as {"brokers": ["host:8080"]}, got nothing'),
        ({"brokers": "x"}, 'expected brokers as a list of texts, got "x"'),
        ([], "expected a JSON object, got []"),
    ):
        assert said(two, "POST", base + "/d", body) == (400, reason)
    assert said(two, "DELETE", base + "/nope") == (404, "Domain-name nope or cluster c2 does not exist")
    assert said(two, "DELETE", base + "/d") == (200, None)
    for method in ("GET", "POST", "DELETE"):
        assert said(two, method, "/nope/failureDomains/d", {}) == (412, "Cluster nope does not exist.")
    assert said(two, "GET", "/nope/failureDomains") == (200, {})


def test_isolation_policies_are_kept_and_applied_to_brokers(two: RestClient, broker: FakeBroker) -> None:
    base, own = "/c2/namespaceIsolationPolicies", broker.broker_id()
    assert said(two, "GET", base) == (404, "NamespaceIsolationPolicies for cluster c2 does not exist")
    assert said(two, "GET", "/nope/namespaceIsolationPolicies") == (404, "Cluster nope does not exist.")
    first = isolation_policy(secondary=["x.*"], unload_scope="changed")
    assert said(two, "POST", base + "/iso", first) == (204, None)
    assert said(two, "GET", base + "/iso") == (200, first)
    shown = {"brokerName": own, "policyName": "iso", "namespaceRegex": ["ref/.*"], "primary": True}
    assert said(two, "GET", base + "/brokers") == (200, [shown])
    assert said(two, "GET", base + "/brokers/xyz:1") == (200, {**shown, "brokerName": "xyz:1", "primary": False})
    nothing = {"brokerName": "y:1", "namespaceRegex": [], "primary": False}
    assert said(two, "GET", base + "/brokers/y:1") == (200, nothing)
    second = isolation_policy(namespaces=["b"], primary=["zz"], secondary=["127[.].*"])
    assert said(two, "POST", base + "/iso2", second) == (204, None)
    both = {"brokerName": own, "policyName": "iso2", "namespaceRegex": ["ref/.*", "b"], "primary": False}
    assert said(two, "GET", base + "/brokers") == (200, [both])
    # a policy called brokers can be set and removed, and its place answers something else, as in Pulsar
    assert said(two, "POST", base + "/brokers", isolation_policy()) == (204, None)
    assert said(two, "DELETE", "/c2") == (412, "Cluster not empty")
    for name in ("brokers", "iso", "iso2", "iso2"):
        assert said(two, "DELETE", f"{base}/{name}") == (204, None)
    assert said(two, "GET", base + "/iso") == (404, "Cannot find NamespaceIsolationPolicy iso for cluster c2")
    assert said(two, "GET", base) == (200, {})


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"namespaces": []}, "as namespaces, got []"),
        ({"primary": None}, "as primary, got null"),
        ({"secondary": None}, "as secondary, got null"),
        ({"primary": ["x["]}, "missing ]"),
        ({"namespaces": ["(?!x)"]}, "invalid perl operator"),
        ({"namespaces": ["x" * 1001]}, "1000 characters at most"),
        ({"auto_failover_policy": None}, "got null"),
        ({"auto_failover_policy": {"policy_type": "nope", "parameters": {}}}, "nope"),
        ({"auto_failover_policy": {"policy_type": "min_available", "parameters": {"min_limit": "1"}}},
         "usage_threshold is missing"),
        ({"auto_failover_policy": {"policy_type": "min_available",
                                   "parameters": {"min_limit": "x", "usage_threshold": "1"}}}, "min_limit"),
        ({"auto_failover_policy": {"policy_type": "min_available",
                                   "parameters": {"min_limit": "1", "usage_threshold": 10**12}}}, "from -2147483648"),
        ({"unload_scope": "bogus"}, "unload_scope is one of"),
        ({"secondary": ["x"] * 90_000}, "1000 regular expressions as secondary at most, got 90000"),
    ],
)  # fmt: skip
def test_a_wrong_isolation_policy_changes_nothing(two: RestClient, changes: dict[str, Any], why: str) -> None:
    path = "/c2/namespaceIsolationPolicies/p"
    assert said(two, "POST", path, isolation_policy()) == (204, None)
    status, reason = said(two, "POST", path, isolation_policy(**changes))
    assert status == 400
    assert reason.startswith("Invalid format of input policy data. policy: p; data: {")
    assert why in reason
    assert said(two, "GET", path) == (200, isolation_policy())


def test_what_is_said_about_a_cluster_is_bounded(two: RestClient) -> None:
    many = isolation_policy(namespaces=[f"t/n{i}" for i in range(998)])
    assert said(two, "POST", "/c2/namespaceIsolationPolicies/p", many)[0] == 204
    status, reason = said(two, "POST", "/c2/namespaceIsolationPolicies/q", isolation_policy())
    assert (status, "1000 regular expressions at most, not 1001" in reason) == (412, True)
    large = {"brokers": [f"{i:0>1000}" for i in range(RECORD_BYTES_MAX // 1100)]}
    assert said(two, "POST", "/c2/failureDomains/d", large)[0] == 204
    status, reason = said(two, "POST", "/c2/failureDomains/e", {"brokers": ["y" * 100_000]})
    assert (status, "would take more than 1048576 bytes" in reason) == (412, True)
    assert said(two, "POST", f"/c2/failureDomains/{'n' * 1025}", {})[0] == 400
    assert set(said(two, "GET", "/c2/failureDomains")[1]) == {"d"}


def test_a_deleted_cluster_leaves_nothing_for_one_of_its_name(two: RestClient) -> None:
    for path, body in (("failureDomains/d", {"brokers": ["a:1"]}), ("migrate?migrated=true", DATA)):
        assert said(two, "POST", f"/c2/{path}", body)[0] in (200, 204)
    assert said(two, "POST", "/c2/namespaceIsolationPolicies/p", isolation_policy())[0] == 204
    assert said(two, "DELETE", "/c2/namespaceIsolationPolicies/p")[0] == 204
    assert said(two, "DELETE", "/c2") == (204, None)
    assert said(two, "PUT", "/c2", DATA)[0] == 200
    assert said(two, "GET", "/c2/failureDomains") == (200, {})
    assert said(two, "GET", "/c2/migrate")[0] == said(two, "GET", "/c2/namespaceIsolationPolicies")[0] == 404
