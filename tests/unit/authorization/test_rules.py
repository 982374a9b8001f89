"""The rules against a second, naive implementation, and against the cases that are easy to get wrong (rule 12.7)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.authorization import remedies
from magnetar.authorization.access import (
    Access,
    ClusterAccess,
    NamespaceAccess,
    PolicyAccess,
    TenantAccess,
    TopicAccess,
)
from magnetar.authorization.authorizer import Authorizer
from magnetar.authorization.caller import Caller
from magnetar.authorization.grants import REMEMBERED, Grants
from magnetar.authorization.operations import (
    NamespaceOperation,
    PolicyName,
    PolicyOperation,
    TenantOperation,
    TopicOperation,
)
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.names import NamespaceName, TopicName
from magnetar.testing.memory_metadata import MemoryMetadataStore
from tests.support.at_once import at_once

NAMESPACE = NamespaceName.parse("acme/orders")
TOPIC = TopicName.parse("persistent://acme/orders/t")
ROLES = ("root", "proxy", "admin", "app", "app-1", "other", "*")
TOPICS = tuple(
    map(
        TopicName.parse,
        (
            "persistent://acme/orders/t",
            "persistent://acme/orders/t-partition-0",
            "persistent://acme/orders/t-partition-00",
            "non-persistent://acme/orders/t",
            "persistent://acme/orders/__change_events",
            "persistent://acme/gone/t",
            "persistent://gone/orders/t",
            "persistent://acme/cluster/orders/t",
        ),
    )
)
READS_AS_CONSUMER = {
    *("GET_SUBSCRIPTIONS", "CONSUME", "SUBSCRIBE", "UNSUBSCRIBE", "SKIP", "EXPIRE_MESSAGES", "PEEK_MESSAGES"),
    *("RESET_CURSOR", "GET_BACKLOG_SIZE", "SET_REPLICATED_SUBSCRIPTION_STATUS"),
    "GET_REPLICATED_SUBSCRIPTION_STATUS",
}
LOOKS = {"GET_SUBSCRIPTIONS", "PEEK_MESSAGES", "GET_BACKLOG_SIZE", "GET_REPLICATED_SUBSCRIPTION_STATUS"}


def authorizer(policies: dict[str, Any] | None = None, **changes: Any) -> Authorizer:
    """An authorizer over the tenant acme with the administrator admin and the namespace acme/orders."""
    chosen = Settings(**{"superUserRoles": "root, boss,", "proxyRoles": "proxy", **changes})
    resources = Resources(MemoryMetadataStore(), chosen)

    async def fill() -> None:
        await resources.ensure_defaults()
        await resources.tenants.create("acme", {"adminRoles": ["admin"], "allowedClusters": ["standalone"]})
        await resources.namespaces.create("acme", "orders")
        await resources.namespaces.update(NAMESPACE, **(policies or {}))

    at_once(fill())
    return Authorizer(Grants(resources.tenants, resources.namespaces, chosen))


def auth(
    namespace: dict[str, list[str]] | None = None,
    topics: dict[str, dict[str, list[str]]] | None = None,
    subscriptions: dict[str, list[str]] | None = None,
    mode: str = "None",
) -> dict[str, Any]:
    """Policies of a namespace with these grants."""
    return {
        "auth_policies": {
            "namespace_auth": namespace or {},
            "destination_auth": topics or {},
            "subscription_auth_roles": subscriptions or {},
        },
        "subscription_auth_mode": mode,
    }


def naive(role: str | None, access: Access, policies: dict[str, Any], *, wildcards: bool) -> bool:
    """PulsarAuthorizationProvider, line by line, for the world of :func:`authorizer`."""
    if role in ("root", "boss"):
        return True
    if role is None or isinstance(access, ClusterAccess):
        return False
    if isinstance(access, TenantAccess):
        tenant = access.tenant
    elif isinstance(access, TopicAccess):
        tenant = access.topic.tenant
    else:
        tenant = access.namespace.tenant
    if tenant not in ("acme", "public", "pulsar"):
        return False
    if tenant == "acme" and role == "admin":
        return True
    if isinstance(access, NamespaceAccess):
        here = policies["auth_policies"]["namespace_auth"] if access.namespace == NAMESPACE else {}
        name = access.operation.name
        wanted = {"PACKAGES": ["packages"], "UNSUBSCRIBE": ["consume"], "CLEAR_BACKLOG": ["consume"]}.get(name, [])
        if name in ("GET_TOPIC", "GET_TOPICS", "GET_BUNDLE"):
            wanted = ["consume", "produce"]
        return any(has(here, role, action, wildcards) for action in wanted)
    if not isinstance(access, TopicAccess) or access.topic.namespace != NAMESPACE:
        return False
    can_produce = on_topic(role, access.topic.fqn, "produce", policies, wildcards)
    can_consume = on_topic(role, access.topic.fqn, "consume", policies, wildcards)
    name = access.operation.name
    if name in ("LOOKUP", "GET_STATS", "GET_METADATA"):
        return can_produce or can_consume
    if name == "PRODUCE":
        return can_produce and not access.topic.local_name.startswith("__change_events")  # magnetar's own
    if name not in READS_AS_CONSUMER:
        return False
    if access.subscription == "__compaction" and name not in LOOKS:  # magnetar's own, too
        return False
    if access.subscription:
        reserved = policies["auth_policies"]["subscription_auth_roles"].get(access.subscription)
        if reserved and role not in reserved:
            return False
        if policies["subscription_auth_mode"] == "Prefix" and not access.subscription.startswith(role):
            return False
    return can_consume


def on_topic(role: str, topic: str, action: str, policies: dict[str, Any], wildcards: bool) -> bool:
    """Pulsar's checkPermission."""
    found = policies["auth_policies"]
    if has(found["namespace_auth"], role, action, wildcards):
        return True
    if has(found["destination_auth"].get(topic, {}), role, action, wildcards):
        return True
    parent = topic.removesuffix("-partition-0")
    return parent != topic and has(found["destination_auth"].get(parent, {}), role, action, wildcards=False)


def has(roles: dict[str, list[str]], role: str, action: str, wildcards: bool) -> bool:
    """Whether a map of roles grants the action."""
    for granted, actions in roles.items():
        if action not in actions:
            continue
        if granted == role:
            return True
        if wildcards and granted:
            if granted[-1] == "*" and role.startswith(granted[:-1]):
                return True
            if granted[0] == "*" and role.endswith(granted[1:]):
                return True
    return False


def accesses() -> Iterable[Access]:
    """Every operation on every kind of object."""
    yield ClusterAccess("list tenants")
    for tenant in ("acme", "public", "gone"):
        yield TenantAccess(tenant)
        yield from (TenantAccess(tenant, operation) for operation in TenantOperation)
    for namespace in map(NamespaceName.parse, ("acme/orders", "acme/gone", "public/default", "gone/orders")):
        yield from (NamespaceAccess(namespace, operation) for operation in NamespaceOperation)
        yield PolicyAccess(namespace, PolicyName.RETENTION, PolicyOperation.READ)
        yield PolicyAccess(namespace, PolicyName.RETENTION, PolicyOperation.WRITE, TOPIC)
    for topic in TOPICS:
        for operation in TopicOperation:
            yield from (TopicAccess(topic, operation, sub) for sub in (None, "app-sub", "other", " ", "__compaction"))


GRANTS = (
    auth(),
    auth({"app": ["produce"], "other": ["consume", "packages"]}),
    auth({"app": []}, {"persistent://acme/orders/t": {"app": ["consume"], "*": ["produce"]}}),
    auth({"app*": ["consume"]}, {"persistent://acme/orders/t-partition-0": {"*1": ["produce"]}}),
    auth({"*": ["consume", "produce"]}, subscriptions={"app-sub": ["other"], "other": [], " ": ["admin"]}),
    auth({"app": ["consume"], "app-1": ["consume"], "other": ["consume"]}, mode="Prefix"),
    auth({"*-1": ["consume"], "": ["produce"]}, {"persistent://acme/orders/t": {"app*": ["consume"]}}),
)


@pytest.mark.parametrize("wildcards", [False, True])
@pytest.mark.parametrize("number", range(len(GRANTS)))
def test_every_role_with_every_operation(number: int, wildcards: bool) -> None:
    policies = GRANTS[number]
    rules = authorizer(policies, authorizationAllowWildcardsMatching=wildcards).rules
    for role, access in itertools.product((None, "", *ROLES), accesses()):
        decision = rules.decide(role, access)
        assert decision.allowed is naive(role, access, policies, wildcards=wildcards), (role, access, decision)
        assert decision.reason and bool(decision.remedy) is not decision.allowed


actions = st.lists(st.sampled_from(["produce", "consume", "functions", "packages"]), max_size=3)
role_names = st.sampled_from([*ROLES, "app*", "*1", "*app*", "**", ""])
role_maps = st.dictionaries(role_names, actions, max_size=4)


@settings(max_examples=150, deadline=None)
@given(
    role_maps,
    st.dictionaries(st.sampled_from([topic.fqn for topic in TOPICS[:4]]), role_maps, max_size=3),
    st.dictionaries(st.sampled_from(["app-sub", "other", " "]), st.lists(role_names, max_size=2), max_size=2),
    st.sampled_from(["None", "Prefix"]),
    st.booleans(),
    st.lists(st.sampled_from(list(accesses())), max_size=12),
)
def test_any_grants(
    namespace: dict[str, list[str]],
    topics: dict[str, dict[str, list[str]]],
    subscriptions: dict[str, list[str]],
    mode: str,
    wildcards: bool,
    asked: list[Access],
) -> None:
    policies = auth(namespace, topics, subscriptions, mode)
    rules = authorizer(policies, authorizationAllowWildcardsMatching=wildcards).rules
    for role, access in itertools.product(("", *ROLES), asked):
        decision = rules.decide(role, access)
        assert decision.allowed is naive(role, access, policies, wildcards=wildcards), (role, access, decision)


@pytest.mark.parametrize(
    "record",
    [
        {"auth_policies": None},
        {"auth_policies": [1]},
        {"auth_policies": {"namespace_auth": {"app": "produce consume"}, "destination_auth": [], "x": 1}},
        {"auth_policies": {"namespace_auth": {"app": {"produce": True}}, "destination_auth": {TOPIC.fqn: ["app"]}}},
        {
            "auth_policies": {
                "namespace_auth": {"app": [["produce"]]},
                "destination_auth": {TOPIC.fqn: {"app": "produce"}},
            }
        },
    ],
)
def test_records_of_another_shape_grant_nothing(record: dict[str, Any]) -> None:
    rules = authorizer(record, authorizationAllowWildcardsMatching=True).rules
    for operation in TopicOperation:
        assert not rules.decide("app", TopicAccess(TOPIC, operation)).allowed


@pytest.mark.parametrize("shape", ["app", {"app": True}, [1], 7])
def test_a_reservation_of_another_shape_lets_nobody_in(shape: Any) -> None:
    rules = authorizer(auth({"app": ["consume"]}, subscriptions={"s": shape})).rules
    assert not rules.decide("app", TopicAccess(TOPIC, TopicOperation.CONSUME, "s")).allowed
    assert rules.decide("app", TopicAccess(TOPIC, TopicOperation.CONSUME, "other")).allowed


def test_an_unknown_mode_of_subscriptions_counts_as_prefix() -> None:
    rules = authorizer(auth({"app": ["consume"]}, mode="prefix?")).rules
    assert rules.decide("app", TopicAccess(TOPIC, TopicOperation.CONSUME, "app-1")).allowed
    assert not rules.decide("app", TopicAccess(TOPIC, TopicOperation.CONSUME, "s")).allowed


def test_the_cursor_of_compaction_is_moved_by_administrators_only() -> None:
    rules = authorizer(auth({"app": ["produce", "consume"]}, subscriptions={"__compaction": ["app"]})).rules
    changes = ("CONSUME", "SUBSCRIBE", "UNSUBSCRIBE", "SKIP", "EXPIRE_MESSAGES", "RESET_CURSOR")
    for operation in map(TopicOperation.__getitem__, changes):
        access = TopicAccess(TOPIC, operation, "__compaction")
        decision = rules.decide("app", access)
        assert not decision.allowed and decision.remedy == "pulsar-admin tenants update acme --admin-roles admin,app"
        assert rules.decide("admin", access).allowed
        assert rules.decide("app", TopicAccess(TOPIC, operation, "__compaction-1")).allowed
    assert rules.decide("app", TopicAccess(TOPIC, TopicOperation.PEEK_MESSAGES, "__compaction")).allowed


def test_a_stranger_hears_only_of_the_missing_action() -> None:
    """Not which subscriptions are reserved, how they have to be named, or whether the namespace exists."""
    rules = authorizer(auth({"app": ["consume"]}, subscriptions={"s": ["x"]}, mode="Prefix")).rules

    def reason(role: str, topic: TopicName, subscription: str | None = "s") -> str:
        return rules.decide(role, TopicAccess(topic, TopicOperation.CONSUME, subscription)).reason

    gone = TopicName.parse("persistent://acme/gone/t")
    assert reason("other", TOPIC) == reason("other", TOPIC, None)
    assert reason("other", TOPIC).startswith("other has no consume on acme/orders")
    assert reason("other", gone) == reason("other", TOPIC).replace("orders", "gone")
    listed = [
        rules.decide("other", NamespaceAccess(NamespaceName.parse(name), NamespaceOperation.GET_TOPICS))
        for name in ("acme/orders", "acme/gone")
    ]
    assert listed[1].reason == listed[0].reason.replace("orders", "gone")
    assert "namespaces create acme/gone" in listed[1].remedy, "for those who may read the grants"
    assert reason("app", TOPIC).startswith("the subscription s in acme/orders is reserved")


ABSURD = [
    "a\x00b",
    "a\nb",
    "\u202eadmin",
    "x" * 100_000,
    "\ud800",
    "a/b",
    "'; rm -rf ~; '",
    "admin ",
    " admin",
    "ADMIN",
    "ROOT",
]


@pytest.mark.parametrize("role", ABSURD)
def test_absurd_roles_get_nothing_and_short_printable_texts(role: str) -> None:
    rules = authorizer(auth({"app": ["produce"]})).rules
    for access in accesses():
        decision = rules.decide(role, access)
        assert not decision.allowed
        for text in (decision.reason, decision.remedy):
            assert text.isprintable() and len(text) < 1500, text


def test_a_refusal_makes_no_remedy_until_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would name 80,000 administrators or roles of a subscription, for whoever is refused."""
    made: list[str] = []

    def noted(name: str) -> Callable[..., str]:
        def make(*given: object) -> str:
            made.append(name)
            return name

        return make

    for name in ("become_tenant_admin", "grant_on_subscription", "grant_on_topic"):
        monkeypatch.setattr(remedies, name, noted(name))
    rules = authorizer(auth({}, {}, {"s": ["x"]})).rules
    terminate = rules.decide("app", TopicAccess(TOPIC, TopicOperation.TERMINATE))
    consume = rules.decide("app", TopicAccess(TOPIC, TopicOperation.CONSUME, "s"))
    assert not terminate.allowed and not consume.allowed and not made
    assert terminate.remedy == "become_tenant_admin"
    assert consume.remedy == "grant_on_topic && grant_on_subscription"


def test_remedies_are_commands_that_keep_what_was_granted() -> None:
    policies = auth({"app": ["produce"]}, {TOPIC.fqn: {"it's me": ["produce"]}}, {"s": ["x"]})
    rules = authorizer(policies).rules

    def remedy(role: str, access: Access) -> str:
        return rules.decide(role, access).remedy

    consume = TopicAccess(TOPIC, TopicOperation.CONSUME)
    assert remedy("it's me", consume) == (
        f"pulsar-admin topics grant-permission {TOPIC.fqn} --role 'it'\"'\"'s me' --actions produce,consume"
    )
    assert remedy("app", NamespaceAccess(NAMESPACE, NamespaceOperation.CLEAR_BACKLOG)) == (
        "pulsar-admin namespaces grant-permission acme/orders --role app --actions produce,consume"
    )
    assert remedy("app", TopicAccess(TOPIC, TopicOperation.CONSUME, "s")) == (
        f"pulsar-admin topics grant-permission {TOPIC.fqn} --role app --actions consume && "
        "pulsar-admin namespaces grant-subscription-permission acme/orders --subscription s --roles x,app"
    )
    assert remedy("app", TopicAccess(TOPIC, TopicOperation.TERMINATE)) == (
        "pulsar-admin tenants update acme --admin-roles admin,app"
    )


def test_changes_count_at_once_and_patterns_are_bounded() -> None:
    settings = Settings(authorizationAllowWildcardsMatching=True)
    resources = Resources(MemoryMetadataStore(), settings)
    grants = Grants(resources.tenants, resources.namespaces, settings)
    rules = Authorizer(grants).rules

    async def change() -> None:
        await resources.ensure_defaults()
        default = NamespaceName.parse("public/default")
        produce = TopicAccess(default.topic("t"), TopicOperation.PRODUCE)
        assert not rules.decide("app-1", produce).allowed
        await resources.namespaces.update(default, **auth({"app-*": ["produce"]}))
        assert rules.decide("app-1", produce).allowed
        await resources.namespaces.update(default, **auth({"app-*": ["consume"]}))
        assert not rules.decide("app-1", produce).allowed
        await resources.namespaces.delete(default, has_topics=False)
        assert not rules.decide("app-1", produce).allowed
        for number in range(REMEMBERED + 5):
            name = await resources.namespaces.create("public", f"n{number}")
            rules.decide("app-1", NamespaceAccess(name, NamespaceOperation.GET_TOPICS))
        assert len(grants._remembered) == REMEMBERED

    at_once(change())


def test_an_anonymous_role_is_a_role_like_any_other() -> None:
    subject = authorizer(auth({"anonymous": ["produce"]}))
    assert subject.allows(Caller("anonymous"), TopicAccess(TOPIC, TopicOperation.PRODUCE))
    assert not subject.allows(Caller("anonymous"), TopicAccess(TOPIC, TopicOperation.CONSUME))
    assert not subject.allows(Caller(None), TopicAccess(TOPIC, TopicOperation.PRODUCE))
