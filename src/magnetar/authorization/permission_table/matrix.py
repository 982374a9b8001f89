"""The permission table as cases: every command and every route, for every role, on topics of every kind.

Pure: :class:`ScratchTenant` says what is granted to whom in a tenant that exists for this alone, and the rules say what
follows. ``magnetar permissions self-test`` and tests send the cases to a broker and compare.

Topics are ones that do not exist, and bodies are none that a route takes: what is allowed ends at that, and changes
little or nothing. Commands about what a client has opened are left out, since opening it is what they need.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

from typing_extensions import override

from magnetar.authorization.access import Access, ClusterAccess
from magnetar.authorization.grants import Grants, NamespaceGrants
from magnetar.authorization.permission_table.command_permissions import COMMAND_PERMISSIONS
from magnetar.authorization.permission_table.request_target import RequestTarget
from magnetar.authorization.permission_table.route_permissions import ROUTE_PERMISSIONS
from magnetar.authorization.rules import RoleRules
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.policies import JsonObject

ROLES: Final = ("none", "stranger", "other-admin", "producer", "consumer", "limited", "admin", "superuser")
"""Who asks: ``none`` without a login, ``other-admin`` administers another tenant, ``limited`` may consume, but not with
the subscription, which is left to ``consumer``."""
SUBSCRIPTION: Final = "s1"
BODY: Final = "magnetar self-test"
"""The body of every request that may have one; no route can do anything with it."""
TWINS: Final[Mapping[str, tuple[str, str]]] = {
    "persistent": ("persistent", "absent"),
    "non-persistent": ("non-persistent", "absent"),
    "partition": ("persistent", "absent-partition-0"),
    "system": ("persistent", "__change_events"),
}
"""Kinds of topics: domain and local name."""
OPEN: Final = (("GET", "/metrics"), ("GET", "/status.html"))
"""The routes that need no login, the first unless a setting asks for one."""
_ENDS: Final = (("POST", "/admin/v2/brokers/shutdown"),)
"""Routes that are not tried: they take no body, and would end the broker."""
_FILLED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("key", "value", "role", "version", "count", "seconds", "timestamp", "position", "ledger"), "1"),
    **dict.fromkeys(("entry", "timeout", "mostSigBits", "ledgerId", "entryId"), "1"),
    "leastSigBits": "1000000000000",
    "bundle": "0x00000000_0xffffffff",
    "policy": "retention",
    **dict.fromkeys(("cluster", "clusterName", "brokerId", "broker", "bookie"), "magnetar-self-test-none"),
    **dict.fromkeys(("domainName", "policyName", "group"), "magnetar-self-test-none"),
    "path": "magnetar-self-test-none",
}


@dataclass(frozen=True, slots=True)
class ScratchTenant:
    """A tenant of one run, and the roles that are granted something in it."""

    tenant: str
    roles: Mapping[str, str]
    """The real name of each role of :data:`ROLES` but ``none``."""

    @property
    def namespace(self) -> NamespaceName:
        """The only namespace in it."""
        return NamespaceName.parse(f"{self.tenant}/scratch")

    @property
    def policies(self) -> JsonObject:
        """The policies that its namespace is made with."""
        granted: JsonObject = {
            self.roles["producer"]: ["produce"],
            self.roles["consumer"]: ["consume"],
            self.roles["limited"]: ["consume"],
        }
        reserved: JsonObject = {SUBSCRIPTION: [self.roles["consumer"]]}
        return {
            "auth_policies": {"namespace_auth": granted, "destination_auth": {}, "subscription_auth_roles": reserved}
        }

    def topic(self, twin: str) -> TopicName:
        """The topic of a kind."""
        domain, name = TWINS[twin]
        return TopicName.parse(f"{domain}://{self.namespace}/{name}")


class _ScratchGrants(Grants):
    """What a broker knows about the roles of a run."""

    def __init__(self, scratch: ScratchTenant) -> None:
        self._scratch = scratch
        self.cluster = ""
        self.superusers = frozenset((scratch.roles["superuser"],))
        self.proxies = frozenset()
        self.wildcards = False

    @override
    def tenant_admins(self, tenant: str) -> list[str] | None:
        return [self._scratch.roles["admin"]] if tenant == self._scratch.tenant else None

    @override
    def allowed_clusters(self, tenant: str) -> list[str]:
        return []

    @override
    def namespace(self, name: NamespaceName) -> NamespaceGrants | None:
        return NamespaceGrants(self._scratch.policies) if name == self._scratch.namespace else None


@dataclass(frozen=True, slots=True)
class MatrixCase:
    """One question: may that role do this to that kind of topic?"""

    role: str
    row: str
    """``GET /admin/v2/...`` with its parameters in braces, or the command's class."""
    twin: str
    """The kind of topic; empty where none is named."""
    allowed: bool
    request: tuple[str, str] | None = None
    """Method and path of a request of HTTP."""
    command: type | None = None
    topic: TopicName | None = None


def cases(scratch: ScratchTenant) -> Iterator[MatrixCase]:
    """All cases: those of HTTP first, because commands bring topics into being."""
    rules = RoleRules(_ScratchGrants(scratch))
    yield from _route_cases(scratch, rules)
    yield from _command_cases(scratch, rules)


def _route_cases(scratch: ScratchTenant, rules: RoleRules) -> Iterator[MatrixCase]:
    for (method, path), row in sorted(ROUTE_PERMISSIONS.items(), key=lambda item: (item[0][1], item[0][0])):
        for twin in TWINS if "{topic}" in path else ("",):
            topic = scratch.topic(twin) if twin else None
            if topic is not None and "{domain}" not in path and not topic.persistent:
                continue
            target = RequestTarget(scratch.tenant, scratch.namespace, topic, SUBSCRIPTION, _FILLED["policy"])
            accesses = tuple(row.accesses(target))
            if "/transactionMetadata/" in path or "/abortTransaction/" in path:
                accesses = (ClusterAccess("use transactions that others began"),)  # no role began it
            for role in ROLES:
                allowed = _allowed(rules, scratch, role, accesses) or (role == "none" and (method, path) in OPEN)
                if allowed and (method, path) in _ENDS:
                    continue
                request = method, _concrete(path, scratch, topic)
                yield MatrixCase(role, f"{method} {path}", twin, allowed, request, topic=topic)


def _concrete(path: str, scratch: ScratchTenant, topic: TopicName | None) -> str:
    values = {"tenant": scratch.tenant, "namespace": "scratch", "subscription": SUBSCRIPTION, "subName": SUBSCRIPTION}
    values |= {"domain": "persistent"} if topic is None else {"domain": topic.domain, "topic": topic.local_name}
    for name, value in {**_FILLED, **values}.items():
        path = path.replace("{" + name + "}", value)
    return path


def _command_cases(scratch: ScratchTenant, rules: RoleRules) -> Iterator[MatrixCase]:
    for kind, row in COMMAND_PERMISSIONS.items():
        fields = set(getattr(kind, "__dataclass_fields__", ()))
        if row.accesses is None or ("consumer_id" in fields and "topic" not in fields):
            continue
        for twin in ("",) if "namespace" in fields else TWINS:
            topic = scratch.topic(twin or "persistent")
            accesses = tuple(row.accesses(_asked(scratch, topic), _NoHandles()))
            for role in ROLES:
                allowed = _allowed(rules, scratch, role, accesses)
                yield MatrixCase(role, kind.__name__, twin, allowed, command=kind, topic=topic)


def _asked(scratch: ScratchTenant, topic: TopicName) -> Any:
    """What stands in a command, as its row reads it."""
    return SimpleNamespace(
        topic=topic.fqn, subscription=SUBSCRIPTION, initial_subscription_name=None, partitions=(topic.fqn,),
        subscriptions=(SimpleNamespace(topic=topic.fqn, subscription=SUBSCRIPTION),), namespace=scratch.namespace.text,
        schema=None,
    )  # fmt: skip


class _NoHandles:
    def consumed(self, consumer_id: int) -> tuple[TopicName, str] | None:
        return None

    def sharing(self, topic: TopicName, schema: object, *, first: bool = False) -> TopicName:
        return topic.namesake  # whether it exists or not: all grants are the namespace's


def _allowed(rules: RoleRules, scratch: ScratchTenant, role: str, accesses: Iterable[Access]) -> bool:
    return role != "none" and all(rules.decide(scratch.roles[role], access).allowed for access in accesses)
