"""What only the body or the data tell is asked too: bulk operations member by member, owners of transactions.

Apache Pulsar asks once for the namespace (CVE-2026-105938) and nothing about transactions (CVE-2026-105931).
"""

from __future__ import annotations

from typing import Any, cast

import pytest

from magnetar.admin.application import create_app
from magnetar.admin.ports import TransactionsPort
from magnetar.authorization.authorizer import Authorizer
from magnetar.authorization.grants import Grants
from magnetar.config.settings import Settings
from magnetar.model.ids import Position
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.policies import JsonObject
from magnetar.protocol.commands import TxnId
from tests.admin.conftest import World, world
from tests.admin.rest_client import RestClient
from tests.support.at_once import at_once

SETTINGS = Settings(authorizationEnabled=True, superUserRoles="root", proxyRoles="proxy")
MAIN = NamespaceName.parse("ref/main")
NAMESPACE = "/admin/v2/namespaces/ref/main"
BUNDLE = "/0x00000000_0x40000000"


@pytest.fixture
def guarded() -> World:
    """Two topics, each with the subscriptions s1, which is left to bob, and s2."""
    found = world(SETTINGS)
    for name in ("t1", "t2"):
        found.broker.topics[TopicName.parse(f"persistent://ref/main/{name}")] = {
            "s1": Position(0, 0),
            "s2": Position(0, 0),
        }
    granted: JsonObject = {
        "namespace_auth": {"alice": ["consume"], "bob": ["consume"]},
        "subscription_auth_roles": {"s1": ["bob"]},
    }
    at_once(found.resources.namespaces.update(MAIN, auth_policies=granted))
    at_once(found.resources.tenants.update("ref", {"adminRoles": ["admin"], "allowedClusters": ["standalone"]}))
    return found


@pytest.mark.parametrize("path", ["/clearBacklog", "/clearBacklog/s1", "/unsubscribe/s1"])
def test_nothing_is_done_to_any_unless_all_may_be_touched(guarded: World, path: str) -> None:
    before = {topic: dict(found) for topic, found in guarded.broker.topics.items()}
    refused = guarded.rest.as_caller("alice").post(NAMESPACE + path)
    operation = "SKIP" if "clear" in path else "UNSUBSCRIBE"
    reason = f"Unauthorized to validateTopicOperation for operation [{operation}] on topic [persistent://ref/main/t1]"
    assert (refused.status_code, refused.json()["reason"]) == (401, reason)
    assert (guarded.broker.moved, guarded.broker.topics) == ([], before)
    assert guarded.rest.as_caller("bob").post(NAMESPACE + path).status_code == 204
    assert guarded.broker.moved or guarded.broker.topics != before


def test_what_all_members_allow_is_done(guarded: World) -> None:
    alice = guarded.rest.as_caller("alice")
    assert alice.post(NAMESPACE + "/clearBacklog/s2").status_code == 204
    assert guarded.broker.moved == [("t1", "s2", "skip", None), ("t2", "s2", "skip", None)]
    assert alice.post(NAMESPACE + "/unsubscribe/s2").status_code == 204
    assert {tuple(found) for found in guarded.broker.topics.values()} == {("s1",)}
    assert alice.post(NAMESPACE + "/unsubscribe/none").status_code == 204


def test_expiring_for_all_leaves_out_the_cursor_of_compaction(guarded: World) -> None:
    """For everybody: what it let go of would never be compacted. What a caller may not touch refuses the whole."""
    path = "/admin/v2/persistent/ref/main/t1/all_subscription/expireMessages/1"
    found = guarded.broker.topics[TopicName.parse("persistent://ref/main/t1")]
    found["__compaction"] = Position(0, 0)
    assert guarded.rest.as_caller("alice").post(path).status_code == 401, "s1 is left to bob"
    assert guarded.broker.moved == []
    assert guarded.rest.as_caller("bob").post(path).status_code == 204
    assert {name for _, name, _, _ in guarded.broker.moved} == {"s1", "s2"}
    guarded.broker.moved.clear()
    assert guarded.rest.as_caller("admin").post(path).status_code == 204
    assert {name for _, name, _, _ in guarded.broker.moved} == {"s1", "s2"}
    alone = guarded.rest.as_caller("bob").post(path.replace("all_subscription", "subscription/__compaction"))
    assert alone.status_code == 401


def test_bundles_are_asked_like_namespaces(guarded: World) -> None:
    found = {"alice": 0, "bob": 0}
    for role in found:
        for low in ("00000000", "40000000", "80000000", "c0000000"):
            high = {"00000000": "40000000", "40000000": "80000000", "80000000": "c0000000", "c0000000": "ffffffff"}[low]
            for path in ("/clearBacklog", "/clearBacklog/s1", "/unsubscribe/s1"):
                answered = guarded.rest.as_caller(role).post(f"{NAMESPACE}/0x{low}_0x{high}{path}")
                found[role] += answered.status_code == 401
    assert found["bob"] == 0
    assert found["alice"] in (3, 6)  # the two topics lie in one bundle or in two


def test_an_administrator_is_not_asked_for_each(guarded: World) -> None:
    for role in ("admin", "root"):
        assert guarded.rest.as_caller(role).post(NAMESPACE + "/clearBacklog").status_code == 204
    assert len(guarded.broker.moved) == 8


def test_in_prefix_mode_only_own_subscriptions_count(guarded: World) -> None:
    at_once(guarded.resources.namespaces.update(MAIN, subscription_auth_mode="Prefix"))
    for topic in guarded.broker.topics.values():
        topic["alice-x"] = Position(0, 0)
    alice = guarded.rest.as_caller("alice")
    assert alice.post(NAMESPACE + "/clearBacklog").status_code == 401
    assert alice.post(NAMESPACE + "/clearBacklog/s2").status_code == 401
    assert alice.post(NAMESPACE + "/clearBacklog/alice-x").status_code == 204
    assert {moved[1] for moved in guarded.broker.moved} == {"alice-x"}


def test_expiring_for_all_subscriptions_needs_each(guarded: World) -> None:
    path = "/admin/v2/persistent/ref/main/t1/all_subscription/expireMessages/1"
    assert guarded.rest.as_caller("alice").post(path).status_code == 401
    assert guarded.rest.as_caller("bob").post(path).status_code == 204


def test_permissions_on_several_topics_are_their_tenants_administrators(guarded: World) -> None:
    body = [{"topic": "persistent://ref/main/t1", "role": "mallory", "actions": ["produce"]}]
    for path in ("grantPermissionsOnTopics", "revokePermissionsOnTopics"):
        for role in ("alice", "mallory", None):
            refused = guarded.rest.as_caller(role).post(f"/admin/v2/namespaces/{path}", json=body)
            assert (refused.status_code, "administrate" in refused.json()["reason"]) == (401, True)
        # nor does it tell which topics exist
        missing = [{**body[0], "topic": "persistent://ref/main/none"}]
        assert guarded.rest.as_caller("alice").post(f"/admin/v2/namespaces/{path}", json=missing).status_code == 401
        assert guarded.rest.as_caller("admin").post(f"/admin/v2/namespaces/{path}", json=body).status_code == 204


class Transactions:
    """One open transaction of alice."""

    def __init__(self) -> None:
        self.aborted: list[TxnId] = []

    def owner(self, txn: TxnId) -> str | None:
        return "alice" if txn == TxnId(0, 7) else None

    def transaction(self, txn: TxnId) -> JsonObject:
        return {"txnId": str(txn)}

    async def abort(self, txn: TxnId) -> None:
        self.aborted.append(txn)


@pytest.fixture
def with_transactions(guarded: World) -> tuple[RestClient, Transactions]:
    transactions = Transactions()
    guarded.broker.transactions = cast("TransactionsPort", transactions)
    authorizer = Authorizer(Grants(guarded.resources.tenants, guarded.resources.namespaces, SETTINGS))
    app = create_app(guarded.broker.ports(), guarded.resources, SETTINGS, None, authorizer)
    return RestClient(app), transactions


def test_transactions_are_their_owners(with_transactions: tuple[RestClient, Transactions]) -> None:
    rest, transactions = with_transactions
    seen, aborted = "/admin/v3/transactions/transactionMetadata/0/", "/admin/v3/transactions/abortTransaction/0/"
    answers: dict[str, list[Any]] = {}
    for role, original in (("alice", None), ("bob", None), ("root", None), ("proxy", "alice"), ("admin", None)):
        client = rest.as_caller(role, original)
        answers[role] = [client.get(seen + "7").status_code, client.post(aborted + "7").status_code]
        # whether it exists is not said to others
        answers[role].append(client.get(seen + "8").status_code)
    assert answers == {
        "alice": [200, 204, 401],
        "bob": [401, 401, 401],
        "admin": [401, 401, 401],
        "root": [200, 204, 200],
        "proxy": [200, 204, 401],
    }
    assert len(transactions.aborted) == 3


def test_without_transactions_only_superusers_hear_that_there_are_none(guarded: World) -> None:
    path = "/admin/v3/transactions/transactionMetadata/0/7"
    assert guarded.rest.as_caller("alice").get(path).status_code == 401
    assert guarded.rest.as_caller("root").get(path).status_code == 503
