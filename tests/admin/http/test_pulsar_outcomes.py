"""The permission table against what Apache Pulsar 4.0.8 did: some 9,000 requests that it was asked as ten roles.

``pulsar_outcomes.tsv`` has, for each route, whom it let in (whatever it answered then); the broker had tokens and
authorization on. Ours never lets anybody in whom Pulsar refuses, and refuses more only where docs/differences.md says.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from magnetar.authorization.access import Access, ClusterAccess, TenantAccess
from magnetar.authorization.authorizer import Authorizer
from magnetar.authorization.caller import Caller
from magnetar.authorization.permission_table.request_target import RequestTarget
from magnetar.authorization.permission_table.route_permissions import ROUTE_PERMISSIONS
from magnetar.config.settings import Settings
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.policies import JsonObject
from tests.support.granted import granted

ROLES: Final = (
    *("stranger", "other-admin", "topic-producer", "topic-consumer", "ns-producer", "ns-consumer"),
    *("member", "limited", "acme-admin", "superuser"),
)
STRICTER: Final = {
    "/admin/v3/transactions/": "Pulsar asks nothing",
    "entryFilters": "Pulsar asks for LOOKUP on non-persistent topics",
    "/properties": "Pulsar says first that the topic has to be persistent",
    "/truncate": "the same",
    "/terminate": "the same",
    "/trim": "the same",
    "/subscription/{subscription}": "the same",
    "/createMissedPartitions": "Pulsar says first that the topic is not partitioned",
}
"""Parts of paths, or policies, where ours may refuse more."""


def authorizer() -> Authorizer:
    """The grants of that broker; in the namespace acme/lim the subscription s1 is left to the role member."""
    settings = Settings(authorizationEnabled=True, superUserRoles="superuser")
    namespaces: dict[str, JsonObject] = {
        f"acme/{name}": {
            "namespace_auth": {
                "ns-producer": ["produce"],
                "ns-consumer": ["consume"],
                "member": ["consume"],
                "limited": ["consume"],
            },
            "destination_auth": {
                f"{domain}://acme/{name}/{topic}": {"topic-producer": ["produce"], "topic-consumer": ["consume"]}
                for domain in ("persistent", "non-persistent")
                for topic in ("t", "p")
            },
            "subscription_auth_roles": {"s1": ["member"]} if name == "lim" else {},
        }
        for name in ("main", "lim")
    }
    return granted(settings, {"acme": "acme-admin", "other": "other-admin"}, namespaces)[1]


def accesses_of(method: str, path: str, word: str, topic: TopicName) -> list[Access]:
    if path.endswith("PermissionsOnTopics"):
        return [TenantAccess("acme")]  # the topics stand in the body
    if "/transactionMetadata/" in path or "/abortTransaction/" in path:
        return [ClusterAccess("use transactions that others began")]
    target = RequestTarget("acme", NamespaceName.parse(topic.namespace.text), topic, "s1", word.removeprefix("-"))
    return [*ROUTE_PERMISSIONS[method, path].accesses(target)]


def test_nobody_is_let_in_whom_pulsar_refuses_and_few_more_are_refused() -> None:
    asked = authorizer()
    laxer, stricter, compared = [], set(), 0
    lines = Path(__file__).with_name("pulsar_outcomes.tsv").read_text("utf-8").splitlines()[1:]
    for method, path, word, where, let_in in (line.split("\t") for line in lines):
        for place in where.split():
            domain, _, name = place.partition(":")
            accesses = accesses_of(method, path, word, TopicName.parse(f"{domain}://acme/{name}"))
            ours = {role for role in ROLES if asked.allows(Caller(role), *accesses)}
            pulsars = set(let_in.split()) - {"-"}
            compared += len(ROLES)
            if ours - pulsars:
                laxer.append((method, path, word, place, ours - pulsars))
            elif pulsars - ours:
                stricter.add(
                    next((part for part in STRICTER if part in path or part == word), f"{method} {path} {word}")
                )
    assert laxer == []
    assert stricter == STRICTER.keys()
    assert compared > 7000
