"""Permissions over REST (rules 11.3.7, 11.4.7): what is granted is shown, replaced and revoked, and bounded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from magnetar.admin.values import grants
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.names import NamespaceName, TopicName
from tests.admin.fake_broker import FakeBroker
from tests.admin.rest_client import RestClient
from tests.support.at_once import at_once

NAMESPACE = "/admin/v2/namespaces/ref/main"
PERMISSIONS = NAMESPACE + "/permissions"
MAIN = NamespaceName.parse("ref/main")


def stored(resources: Resources) -> Any:
    return resources.namespaces.policies(MAIN)["auth_policies"]


@pytest.fixture(params=["persistent", "non-persistent"])
def topic(request: pytest.FixtureRequest, broker: FakeBroker) -> TopicName:
    name = TopicName.parse(f"{request.param}://ref/main/t")
    broker.topics[name] = {}
    return name


def path_of(topic: TopicName) -> str:
    return f"/admin/v2/{topic.rest_path}/permissions"


def test_grants_on_a_namespace(rest: RestClient, resources: Resources) -> None:
    assert rest.get(PERMISSIONS).json() == {}
    assert rest.post(PERMISSIONS + "/alice", json=["consume", "produce", "consume"]).status_code == 204
    assert rest.post(PERMISSIONS + "/bob", json=["functions"]).status_code == 204
    assert rest.get(PERMISSIONS).json() == {"alice": ["produce", "consume"], "bob": ["functions"]}
    # a grant replaces the role's earlier one
    assert rest.post(PERMISSIONS + "/alice", json=["consume"]).status_code == 204
    assert stored(resources)["namespace_auth"] == {"alice": ["consume"], "bob": ["functions"]}
    for _ in range(2):  # what is not granted is revoked without a complaint
        assert rest.delete(PERMISSIONS + "/bob").status_code == 204
    assert rest.get(PERMISSIONS).json() == {"alice": ["consume"]}


def test_grants_on_subscriptions(rest: RestClient, resources: Resources) -> None:
    path = PERMISSIONS + "/subscription"
    assert rest.get(path).json() == {}
    assert rest.post(path + "/s%2F1", json=["alice", "bob", "alice"]).status_code == 204
    assert rest.get(path).json() == {"s/1": ["alice", "bob"]}
    assert rest.delete(PERMISSIONS + "/s%2F1/alice").status_code == 204
    assert stored(resources)["subscription_auth_roles"] == {"s/1": ["bob"]}
    assert rest.delete(PERMISSIONS + "/s%2F1/bob").status_code == 204
    assert rest.get(path).json() == {}
    refused = rest.delete(PERMISSIONS + "/s%2F1/bob")
    assert (refused.status_code, refused.json()["reason"]) == (
        404,
        'subscription "s/1" is granted to no role in particular',
    )
    # the role named subscription is a role
    assert rest.post(path, json=["produce"]).status_code == 204
    assert rest.get(PERMISSIONS).json() == {"subscription": ["produce"]}


def test_grants_on_a_topic_stand_beside_those_of_its_namespace(
    rest: RestClient, resources: Resources, topic: TopicName
) -> None:
    path = path_of(topic)
    assert rest.get(path).json() == {}
    assert rest.post(PERMISSIONS + "/alice", json=["produce"]).status_code == 204
    assert rest.post(path + "/alice", json=["consume"]).status_code == 204
    assert rest.post(path + "/CN=bob%2Fo", json=["consume"]).status_code == 204
    assert rest.get(path).json() == {"alice": ["produce", "consume"], "CN=bob/o": ["consume"]}
    assert stored(resources)["destination_auth"] == {topic.fqn: {"alice": ["consume"], "CN=bob/o": ["consume"]}}
    assert rest.delete(path + "/alice").status_code == 204
    assert rest.get(path).json() == {"alice": ["produce"], "CN=bob/o": ["consume"]}
    assert rest.delete(path + "/CN=bob%2Fo").status_code == 204
    assert stored(resources)["destination_auth"] == {}


def test_revoking_on_a_partitioned_topic_revokes_on_its_partitions(rest: RestClient, resources: Resources) -> None:
    parent = TopicName.parse("persistent://ref/main/p")
    at_once(resources.partitioned.create(parent, 2))
    one = path_of(parent.partition(1))
    assert rest.post(path_of(parent) + "/alice", json=["produce"]).status_code == 204
    # the fake broker has not made the partition
    assert rest.post(one + "/alice", json=["produce"]).status_code == 404
    at_once(
        resources.namespaces.change(
            MAIN,
            lambda found: {
                "auth_policies": grants.granted_on_topics(found, [(parent.partition(1), "alice", ["produce"])])
            },
        )
    )
    assert set(stored(resources)["destination_auth"]) == {parent.fqn, parent.partition(1).fqn}
    assert rest.delete(path_of(parent) + "/alice").status_code == 204
    assert stored(resources)["destination_auth"] == {}


def test_several_topics_at_once(rest: RestClient, broker: FakeBroker, resources: Resources) -> None:
    names = [TopicName.parse(f"persistent://ref/main/t{index}") for index in range(3)]
    broker.topics.update({name: {} for name in names})
    grant = "/admin/v2/namespaces/grantPermissionsOnTopics"
    wanted = [{"topic": name.fqn, "role": "alice", "actions": ["produce"]} for name in names]
    assert rest.post(grant, json=wanted).status_code == 204
    assert stored(resources)["destination_auth"] == {name.fqn: {"alice": ["produce"]} for name in names}
    before = stored(resources)
    for wrong, status, reason in [
        ([*wanted, {**wanted[0], "actions": ["fly"]}], 400, '"fly" is no action'),
        ([*wanted, {**wanted[0], "topic": "persistent://ref/other/t"}], 400, "The namespace should be the same"),
        (
            [*wanted, {**wanted[0], "topic": "persistent://ref/main/none"}],
            404,
            "Topic persistent://ref/main/none not found",
        ),
        ([*wanted, {**wanted[0], "role": ""}], 400, "expected a role, got an empty text"),
        ([*wanted, "x"], 400, "expected a list of objects"),
        ([], 400, "The namespace should be the same"),
        ({}, 400, "expected a list of objects"),
        ([{"topic": "a/b", "role": "x", "actions": []}], 412, "Invalid"),
    ]:
        refused = rest.post(grant, json=wrong)
        assert (refused.status_code, reason in refused.json()["reason"]) == (status, True), refused.text
        assert stored(resources) == before
    revoke = "/admin/v2/namespaces/revokePermissionsOnTopics"
    assert rest.post(revoke, json=[{"topic": name.fqn, "role": "alice"} for name in names[:2]]).status_code == 204
    assert stored(resources)["destination_auth"] == {names[2].fqn: {"alice": ["produce"]}}


@pytest.mark.parametrize("body", [None, "produce", {"produce": True}, ["fly"], [None], [["produce"]], 7])
def test_what_is_no_list_of_actions_is_refused(rest: RestClient, topic: TopicName, body: Any) -> None:
    for path in (PERMISSIONS, path_of(topic)):
        refused = rest.post(path + "/alice", json=body)
        assert refused.status_code == 400
        assert "action" in refused.json()["reason"]
        assert rest.get(path).json() == {}


@pytest.mark.parametrize(
    ("role", "named"),
    [
        ("%20", "empty"),
        ("a%0Ab", "U+000A"),
        ("a%00", "U+0000"),
        ("%C2%85x", "white space"),
        ("%20a", "white space"),
        ("x" * 1025, "1024 characters"),
    ],
)
def test_roles_that_nobody_could_have_meant_are_refused(
    rest: RestClient, topic: TopicName, role: str, named: str
) -> None:
    for path in (PERMISSIONS, path_of(topic)):
        refused = rest.post(f"{path}/{role}", json=["produce"])
        assert refused.status_code == 400
        assert named in refused.json()["reason"]
        assert len(refused.json()["reason"]) < 300
    assert rest.post(PERMISSIONS + "/subscription/s", json=["ok", 5]).status_code == 400


def test_roles_of_tenants_are_checked_alike(rest: RestClient) -> None:
    for role, status in (("", 412), ("a\x07", 400), ("x" * 2000, 400), (" a", 412), ("alice", 204)):
        body = {"adminRoles": [role], "allowedClusters": ["standalone"]}
        assert rest.post("/admin/v2/tenants/ref", json=body).status_code == status, role
    assert rest.get("/admin/v2/tenants/ref").json()["adminRoles"] == ["alice"]


def test_grants_of_a_namespace_are_bounded(
    rest: RestClient, resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grants, "GRANTS_BYTES_MAX", 10_000)
    count = 0
    while (answered := rest.post(f"{PERMISSIONS}/role-{count:0500}", json=["produce"])).status_code == 204:
        count += 1
    assert answered.status_code == 412
    assert "10000 bytes at most" in answered.json()["reason"]
    assert len(stored(resources)["namespace_auth"]) == count == 19
    assert len(json.dumps(stored(resources)).encode()) <= 10_500
    # revoking works at the bound
    assert rest.delete(f"{PERMISSIONS}/role-{0:0500}").status_code == 204


def test_what_does_not_exist(rest: RestClient, topic: TopicName) -> None:
    missing = "/admin/v2/namespaces/ref/none/permissions"
    for method, path, text in [
        ("GET", missing, "Namespace does not exist"),
        ("GET", missing + "/subscription", "Namespace does not exist"),
        ("POST", missing + "/alice", "Topic's namespace does not exist"),
        ("DELETE", missing + "/alice", "Topic's namespace does not exist"),
        (
            "POST",
            path_of(TopicName.parse("persistent://ref/main/none")) + "/a",
            "Topic persistent://ref/main/none not found",
        ),
        ("GET", path_of(TopicName.parse("persistent://ref/none/t")), "Topic persistent://ref/none/t not found"),
    ]:
        refused = rest.request(method, path, json=["produce"] if method == "POST" else None)
        assert (refused.status_code, refused.json()["reason"]) == (404, text), (method, path)


@pytest.mark.parametrize("settings", [Settings(allowAclChangesOnNonExistentTopics=True)])
@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
def test_a_topic_need_not_exist_if_so_set(rest: RestClient, resources: Resources, domain: str) -> None:
    """The setting opens the routes of one topic; its namespace has to exist, and several topics, too (rule 11.4.7)."""
    absent = TopicName.parse(f"{domain}://ref/main/none")
    path = path_of(absent)
    assert rest.get(path).json() == {}
    assert rest.post(path + "/alice", json=["produce"]).status_code == 204
    assert rest.get(path).json() == {"alice": ["produce"]}
    assert stored(resources)["destination_auth"] == {absent.fqn: {"alice": ["produce"]}}
    several = [{"topic": absent.fqn, "role": "alice", "actions": ["consume"]}]
    for verb in ("grant", "revoke"):
        assert rest.post(f"/admin/v2/namespaces/{verb}PermissionsOnTopics", json=several).status_code == 404
    assert rest.delete(path + "/alice").status_code == 204
    assert stored(resources)["destination_auth"] == {}
    nowhere = path_of(TopicName.parse(f"{domain}://ref/none/t"))
    assert rest.post(nowhere + "/alice", json=["produce"]).status_code == 404


def test_a_namespace_begins_with_the_grants_that_it_is_given(rest: RestClient) -> None:
    given = {
        "namespace_auth": {"alice": ["produce"]},
        "destination_auth": {"persistent://ref/new/t": {"bob": ["consume"]}},
        "subscription_auth_roles": {"s": ["bob"]},
    }
    assert rest.put("/admin/v2/namespaces/ref/new", json={"auth_policies": given}).status_code == 204
    assert rest.get("/admin/v2/namespaces/ref/new").json()["auth_policies"] == given
    assert rest.get("/admin/v2/namespaces/ref/new/permissions").json() == {"alice": ["produce"]}
    for wrong in (
        {"namespace_auth": {"alice": ["fly"]}},
        {"namespace_auth": ["alice"]},
        {"destination_auth": {"t/x": {"bob": ["consume"]}}},
        {"destination_auth": {"persistent://ref/new/t": ["bob"]}},
        {"subscription_auth_roles": {"s": "bob"}},
        {"namespace_auth": {"": ["produce"]}},
    ):
        refused = rest.put("/admin/v2/namespaces/ref/odd", json={"auth_policies": wrong})
        assert refused.status_code == 400
        assert refused.json()["reason"].startswith("auth_policies: ")


def test_a_role_may_be_named_like_a_route(rest: RestClient, topic: TopicName) -> None:
    assert rest.post(PERMISSIONS + "/clearBacklog", json=["produce"]).status_code == 204
    assert rest.post(path_of(topic) + "/dispatchRate", json=["consume"]).status_code == 204
    assert rest.get(path_of(topic)).json() == {"clearBacklog": ["produce"], "dispatchRate": ["consume"]}


def test_a_deleted_topic_takes_its_grants_along(rest: RestClient, resources: Resources) -> None:
    parent = TopicName.parse("persistent://ref/main/p")
    assert rest.put(f"/admin/v2/{parent.rest_path}/partitions", json=2).status_code == 204
    assert rest.post(path_of(parent) + "/alice", json=["produce"]).status_code == 204
    assert rest.delete(f"/admin/v2/{parent.rest_path}/partitions").status_code == 204
    assert stored(resources)["destination_auth"] == {}


def test_what_older_versions_stored_grants_nothing_and_can_be_replaced(rest: RestClient, resources: Resources) -> None:
    at_once(resources.namespaces.update(MAIN, auth_policies={"namespace_auth": ["alice"], "destination_auth": 5}))
    assert rest.get(PERMISSIONS).json() == {}
    assert rest.post(PERMISSIONS + "/alice", json=["produce"]).status_code == 204
    assert rest.get(PERMISSIONS).json() == {"alice": ["produce"]}
