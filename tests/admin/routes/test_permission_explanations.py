"""``/admin/v2/permissions/explain``: the answer is that of the rules, and every remedy that it prints really works."""

from __future__ import annotations

import dataclasses
import weakref
from itertools import product
from typing import Any

import pytest

from magnetar.admin.http.authorization import target_of
from magnetar.authorization.access import Access, TopicAccess
from magnetar.authorization.authorizer import Authorizer
from magnetar.authorization.caller import Caller
from magnetar.authorization.explanation import Explanation, explained
from magnetar.authorization.grants import Grants
from magnetar.authorization.operation_names import names_for, wire_name
from magnetar.authorization.operations import NamespaceOperation, PolicyName, TenantOperation, TopicOperation
from magnetar.authorization.permission_table.command_permissions import COMMAND_PERMISSIONS
from magnetar.authorization.permission_table.route_permissions import ROUTE_PERMISSIONS
from magnetar.config.settings import Settings
from magnetar.model.ids import Position
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.policies import JsonObject
from tests.admin.conftest import World, world
from tests.admin.rest_client import RestClient
from tests.support.at_once import at_once
from tests.support.pulsar_admin import requests_of

SETTINGS = Settings(authorizationEnabled=True, superUserRoles="root", proxyRoles="proxy")
MAIN = NamespaceName.parse("ref/main")
TENANT: JsonObject = {"adminRoles": ["admin"], "allowedClusters": ["standalone"]}
GRANTED: JsonObject = {
    "namespace_auth": {"producer": ["produce"], "bob": ["consume"]},
    "destination_auth": {"persistent://ref/main/p": {"it's me": ["produce"]}},
    "subscription_auth_roles": {"s1": ["bob", "carol"]},
}
ROLES = ("stranger", "producer", "it's me", 'CN=x y/z, O="q"')


def prepared(settings: Settings = SETTINGS) -> World:
    found = world(settings)
    found.broker.topics[TopicName.parse("persistent://ref/main/t")] = {"s1": Position(0, 0)}
    found.broker.topics[TopicName.parse("persistent://ref/main/p-partition-0")] = {}
    at_once(found.resources.partitioned.create(TopicName.parse("persistent://ref/main/p"), 1))
    reset(found)
    return found


def reset(found: World, mode: str = "None") -> None:
    at_once(found.resources.tenants.update("ref", {**TENANT}))
    at_once(found.resources.namespaces.update(MAIN, auth_policies=GRANTED, subscription_auth_mode=mode))


@pytest.fixture
def guarded() -> World:
    return prepared()


def asked(rest: RestClient, **parameters: str) -> Any:
    answered = rest.get("/admin/v2/permissions/explain", params=parameters)
    assert answered.status_code == 200, answered.text
    return answered.json()


def test_an_answer_says_why_and_what_would_change_it(guarded: World) -> None:
    root = guarded.rest.as_caller("root")
    found = asked(root, role="producer", operation="clear-backlog", topic="ref/main/t", subscription="s1")
    assert found == {
        "role": "producer",
        "operation": "clear-backlog",
        "allowed": False,
        "reason": "producer has no consume on ref/main nor on persistent://ref/main/t",
        "remedy": "pulsar-admin topics grant-permission persistent://ref/main/t --role producer --actions consume && "
        "pulsar-admin namespaces grant-subscription-permission ref/main --subscription s1 --roles bob,carol,producer",
        "note": "",
        "accesses": [
            {
                "access": "skip persistent://ref/main/t, subscription s1",
                "allowed": False,
                "reason": found["reason"],
                "remedy": found["remedy"],
            }
        ],
    }
    found = asked(root, role="bob", operation="CLEAR_BACKLOG", topic="ref/main/t", subscription="s1")
    assert (found["allowed"], found["reason"], found["remedy"]) == (True, "bob has consume on ref/main", "")


def test_who_may_ask_about_whom(guarded: World) -> None:
    question = {"role": "producer", "operation": "consume", "topic": "ref/main/t"}
    for role in ("root", "admin"):
        assert "grant-permission" in asked(guarded.rest.as_caller(role), **question)["remedy"]
    # oneself: without the names and grants of others
    found = asked(guarded.rest.as_caller("producer"), **question, subscription="s1")
    assert (found["allowed"], found["remedy"]) == (False, "ask an administrator of the tenant ref")
    assert "carol" not in str(found) and "bob" not in str(found)
    assert asked(guarded.rest.as_caller("proxy", "producer"), **question)["allowed"] is False
    for asking in ("bob", "stranger", "other", None):
        refused = guarded.rest.as_caller(asking).get("/admin/v2/permissions/explain", params=question)
        assert refused.status_code == 401
    # nor may one hide behind oneself
    sly = {**question, "role": "proxy", "original": "bob"}
    assert guarded.rest.as_caller("bob").get("/admin/v2/permissions/explain", params=sly).status_code == 401
    # an administrator asks about its own tenant only, and not about the cluster
    admin = guarded.rest.as_caller("admin")
    for elsewhere in ({"topic": "pulsar/system/t"}, {"operation": "PUT /admin/v2/clusters/c"}):
        wanted = {**question, **elsewhere}
        assert admin.get("/admin/v2/permissions/explain", params=wanted).status_code == 401


def test_both_roles_of_a_proxy_are_asked(guarded: World) -> None:
    root = guarded.rest.as_caller("root")
    found = asked(root, role="proxy", original="bob", operation="consume", topic="ref/main/t")
    assert (found["role"], found["allowed"]) == ("bob", False)
    assert found["reason"] == "proxy has no consume on ref/main nor on persistent://ref/main/t"
    found = asked(root, role="bob", original="carol", operation="consume", topic="ref/main/t")
    assert "is no proxy" in found["reason"]


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"operation": "clear-backlogs", "topic": "ref/main/t"}, "did you mean clear-backlog"),
        ({"operation": "list-namespaces", "topic": "ref/main/t"}, "it is one on a tenant: name that"),
        ({"operation": "consume"}, "it is one on a topic: name that"),
        ({"operation": "fly", "namespace": "ref/main"}, "docs/permissions.md lists them"),
        ({"operation": "consume", "subscription": "s"}, "name that with topic="),
        ({"operation": "GET /admin/v2/none"}, "no request that this broker answers"),
        ({"operation": "PATCH /admin/v2/tenants"}, "no request that this broker answers"),
        ({"operation": "x" * 5000, "topic": "ref/main/t"}, "is no operation on a topic"),
        ({"operation": "consume", "topic": "a/b"}, "Invalid"),
        ({"operation": "consume", "namespace": "ref"}, "Invalid namespace"),
        ({"role": "a\x00", "operation": "consume", "topic": "t"}, "U+0000"),
        ({"role": "x" * 2000, "operation": "consume", "topic": "t"}, "1024 characters"),
    ],
)
def test_questions_that_nobody_can_answer(guarded: World, parameters: dict[str, str], said: str) -> None:
    wanted = {"role": "alice", **parameters}
    refused = guarded.rest.as_caller("root").get("/admin/v2/permissions/explain", params=wanted)
    assert (refused.status_code in (400, 412), said in refused.json()["reason"]) == (True, True), refused.text
    assert len(refused.text) < 600


def test_without_authorization_everything_is_allowed() -> None:
    found = asked(world(Settings()).rest, role="alice", operation="unload", topic="ref/main/t")
    assert (found["allowed"], found["reason"]) == (True, "authorizationEnabled is false: everybody may do everything")


def test_no_table_of_names_is_kept() -> None:
    """It would hold the memory of the burst in which the first question came."""
    names = names_for("topic")
    one = weakref.ref(names["publish"])
    del names
    assert one() is None


def test_every_name_can_be_asked_about(guarded: World) -> None:
    objects = {
        "topic": {"topic": "ref/main/t", "subscription": "s1"},
        "namespace": {"namespace": "ref/main"},
        "tenant": {"tenant": "ref"},
        "cluster": {},
    }
    root = guarded.rest.as_caller("root")
    for kind, of in objects.items():
        for name in names_for(kind):
            found = asked(root, role="root", operation=name, **of)
            assert found["allowed"] and found["accesses"], name
    known = {name for kind in objects for name in names_for(kind)}
    for operation in (*TopicOperation, *NamespaceOperation, *TenantOperation):
        assert operation.name.lower().replace("_", "-") in known
    assert all(f"set-{policy.name.lower().replace('_', '-')}" in known for policy in PolicyName)
    unknown = {wire_name(kind) for kind in COMMAND_PERMISSIONS} - known
    # these need a login, or who began the transaction; the last is another one's longer form
    assert unknown == {"tc-client-connect-request", "new-txn", "end-txn", "unparsed-command", "end-txn-on-subscription"}


def test_a_request_is_asked_about_as_it_is_sent(guarded: World) -> None:
    root = guarded.rest.as_caller("root")
    found = asked(root, role="producer", operation="put /admin/v2/persistent/ref/main/t/unload?x=y")
    assert [one["access"] for one in found["accesses"]] == ["unload persistent://ref/main/t"]
    found = asked(root, role="producer", operation="POST /admin/v2/namespaces/ref/main/retention")
    assert [one["access"] for one in found["accesses"]] == ["write the policy retention of ref/main"]
    found = asked(root, role="bob", operation="POST /admin/v2/namespaces/ref/main/clearBacklog")
    assert found["allowed"] and "on every topic and subscription" in found["note"]
    for method in ("GET", "HEAD"):
        found = asked(root, role="bob", operation=f"{method} /admin/v2/brokers/version")
        assert (found["allowed"], found["reason"]) == (True, "bob needs nothing but a login for that")


def carried_out(found: World, remedy: str) -> World:
    """The world after an administrator did what a remedy says."""
    if remedy.startswith("add "):
        role = remedy.removeprefix("add ").removesuffix(" to superUserRoles in broker.conf and restart the broker")
        return prepared(dataclasses.replace(SETTINGS, superUserRoles=f"root,{role}"))
    for request in requests_of(remedy, TENANT):
        answered = found.rest.as_caller("root").request(request.method, request.path, json=request.body)
        assert answered.status_code == 204, (request, answered.text)
    return found


def explanation_in(found: World, role: str, accesses: list[Access]) -> Explanation:
    """What the route answers a superuser, without the request."""
    authorizer = Authorizer(Grants(found.resources.tenants, found.resources.namespaces, SETTINGS))
    return explained(authorizer, Caller(role), "", accesses, lambda topic: topic.local_name != "none")


def test_the_remedy_of_every_refused_row_works(guarded: World) -> None:
    """Of each row, for several roles; also for a partition, for a topic that is not there, and with names reserved."""
    done: set[tuple[str, str, str]] = set()
    refused = superuser = 0
    for topic in ("t", "p-partition-0", "none"):
        parts = {
            "tenant": "ref", "namespace": "main", "domain": "persistent", "topic": topic, "subscription": "s1",
            "subName": "s1", "policy": "retention",
        }  # fmt: skip
        for row, mode, role in product(ROUTE_PERMISSIONS.values(), ("None", "Prefix"), ROLES):
            accesses = [*row.accesses(target_of(parts))]
            case = (role, mode, str(accesses))
            if case in done:
                continue  # another route asks the same
            done.add(case)
            reset(guarded, mode)
            before = explanation_in(guarded, role, accesses)
            if before.allowed:
                continue
            refused += 1
            assert before.remedy, (row, role)
            if "superUserRoles" in before.remedy:
                superuser += 1
                continue  # the setting is a list with commas, and each needs a broker of its own
            after = explanation_in(carried_out(guarded, before.remedy), role, accesses)
            assert after.allowed, (row, role, before.remedy, after)
    assert refused > superuser + 100


def test_the_remedy_of_what_superusers_may_only_do_works(guarded: World) -> None:
    question = {"role": "producer", "operation": "PUT /admin/v2/clusters/c"}
    before = asked(guarded.rest.as_caller("root"), **question)
    assert before["reason"] == "producer is no superuser, and only superusers may change clusters"
    assert asked(carried_out(guarded, before["remedy"]).rest.as_caller("root"), **question)["allowed"]


@pytest.mark.parametrize("operation", ["consume", "produce", "get-topics", "terminate"])
@pytest.mark.parametrize("name", ["none/main", "ref/none"])
def test_remedies_work_where_tenant_or_namespace_are_missing(guarded: World, operation: str, name: str) -> None:
    of = {"namespace": name} if operation == "get-topics" else {"topic": f"{name}/t", "subscription": "s"}
    question = {"role": "stranger", "operation": operation, **of}
    before = asked(guarded.rest.as_caller("root"), **question)
    assert not before["allowed"]
    assert asked(carried_out(guarded, before["remedy"]).rest.as_caller("root"), **question)["allowed"]


def test_the_topic_of_the_other_domain_counts_for_a_new_schema(guarded: World) -> None:
    """The two share their schemas (rule 10.2)."""
    topic, twin = "persistent://ref/main/p", "non-persistent://ref/main/p"
    me, root = (guarded.rest.as_caller(role) for role in ("it's me", "root"))
    path, body = "/admin/v2/schemas/ref/main/p/schema", {"type": "STRING", "schema": "", "properties": {}}

    def explained_to_me(operation: str) -> Any:
        return asked(me, role="it's me", topic=topic, operation=operation)

    alone = explained_to_me("GET_OR_CREATE_SCHEMA")
    assert alone["allowed"] and not alone["note"]
    guarded.broker.topics[TopicName.parse(twin)] = {}
    both = explained_to_me("GET_OR_CREATE_SCHEMA")
    assert not both["allowed"] and twin in both["reason"]
    plain = explained_to_me("PRODUCER")
    assert plain["allowed"] and "on the topic of the same name in the other domain" in plain["note"]
    assert "on the non-persistent topic of the same name" in explained_to_me(f"POST {path}")["note"]

    refused = me.post(path, json=body)
    assert refused.status_code == 401 and twin in refused.text
    assert root.get(path).status_code == 404, "nothing is registered"
    assert root.post(path, json=body).status_code == 200
    assert me.post(path, json=body).status_code == 200, "what is there already is nobody's change"
    assert me.post(path, json={**body, "properties": {"a": "b"}}).status_code == 200
    assert me.post(path, json={**body, "type": "INT32"}).status_code == 401


@pytest.mark.parametrize(
    ("caller", "refused"),
    [
        (Caller("proxy", "stranger", other_roles=("producer",)), "stranger"),
        (Caller("proxy", "producer", other_roles=("stranger",)), "proxy"),
        (Caller("proxy", "stranger", other_roles=("bob",), other_original_roles=("producer",)), "proxy"),
        (Caller("stranger", other_roles=("bob",)), "stranger"),
    ],
)
def test_of_several_roles_the_side_is_named_that_none_of_its_own_allows(caller: Caller, refused: str) -> None:
    """Of a proxy and its principal: a remedy for who may already would change nothing (decision 076)."""
    found = prepared()
    authorizer = Authorizer(Grants(found.resources.tenants, found.resources.namespaces, SETTINGS))
    topic = TopicName.parse("persistent://ref/main/t")
    shown = explained(authorizer, caller, "PRODUCE", [TopicAccess(topic, TopicOperation.PRODUCE)], lambda _: True)
    assert not shown.allowed
    assert f"--role {refused} " in f"{shown.remedy} "
