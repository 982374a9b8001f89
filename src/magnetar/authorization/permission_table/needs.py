"""What a route can need: one function for each kind of row in the permission table of HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from magnetar.authorization.access import (
    Access,
    ClusterAccess,
    NamespaceAccess,
    PolicyAccess,
    TenantAccess,
    TopicAccess,
)
from magnetar.authorization.operations import (
    NamespaceOperation,
    PolicyName,
    PolicyOperation,
    TenantOperation,
    TopicOperation,
)
from magnetar.authorization.permission_table.policy_words import NAMESPACE_POLICIES, TOPIC_POLICIES
from magnetar.authorization.permission_table.request_target import RequestTarget

Route: TypeAlias = tuple[str, str]
"""Method and path, with its parameters in braces."""


@dataclass(frozen=True, slots=True)
class RoutePermission:
    """One row: what a route needs."""

    needs: str
    """In words, for docs/permissions.md."""
    accesses: Callable[[RequestTarget], Iterable[Access]]
    """What one request asks for by its path."""
    inside: str = ""
    """What the route itself asks for besides, in words, because only the body or the data tell."""
    recorded: bool = False
    """Whether the audit log has it also when it is allowed: it changes something or shows messages."""


def anyone(needs: str = "a login") -> RoutePermission:
    """Nothing but a login."""
    return RoutePermission(needs, lambda target: ())


def superuser(what: str) -> RoutePermission:
    """A superuser; ``what`` stands in the reason of a refusal."""
    return RoutePermission("a superuser", lambda target: [ClusterAccess(what)])


def tenant(operation: TenantOperation, inside: str = "") -> RoutePermission:
    """An operation on the tenant that the path names."""
    return RoutePermission(
        f"{operation.name} on the tenant", lambda target: [TenantAccess(target.tenant, operation)], inside
    )


def tenant_admin(inside: str = "") -> RoutePermission:
    """Administering the tenant that the path names."""
    return RoutePermission("an administrator of the tenant", lambda target: [TenantAccess(target.tenant)], inside)


def namespace(operation: NamespaceOperation, inside: str = "") -> RoutePermission:
    """An operation on the namespace that the path names."""
    return RoutePermission(
        f"{operation.name} on the namespace", lambda target: [NamespaceAccess(target.namespace, operation)], inside
    )


def topic(operation: TopicOperation, inside: str = "", *, recorded: bool = False) -> RoutePermission:
    """An operation on the topic that the path names."""
    return RoutePermission(
        f"{operation.name} on the topic", lambda target: [TopicAccess(target.topic, operation)], inside, recorded
    )


def subscription(operation: TopicOperation, *, recorded: bool = False) -> RoutePermission:
    """An operation on the topic, with the subscription that the path names."""
    return RoutePermission(
        f"{operation.name} on the topic with the subscription",
        lambda target: [TopicAccess(target.topic, operation, target.subscription)],
        recorded=recorded,
    )


def namespace_policy(operation: PolicyOperation, policy: PolicyName | None = None) -> RoutePermission:
    """Reading or changing a policy of the namespace; without ``policy`` the one that the path names."""

    def accesses(target: RequestTarget) -> Iterable[Access]:
        if target.word == "delayedDelivery" and operation is PolicyOperation.WRITE:
            return [ClusterAccess("change the delayed delivery of a namespace")]
        named = policy or NAMESPACE_POLICIES.get(target.word, PolicyName.ALL)
        return [PolicyAccess(target.namespace, named, operation)]

    of = "the policy" if policy is None else f"the policy {policy.name}"
    but = "; for delayedDelivery, a superuser" if policy is None and operation is PolicyOperation.WRITE else ""
    return RoutePermission(f"{operation.name} on {of} of the namespace{but}", accesses)


def topic_policy(operation: PolicyOperation, policy: PolicyName | None = None) -> RoutePermission:
    """Reading or changing a policy of the topic; without ``policy`` the one that the path names."""

    def accesses(target: RequestTarget) -> Iterable[Access]:
        if policy is None and target.word == "maxMessageSize":
            return [TenantAccess(target.tenant)]  # in Pulsar's words
        named = policy or TOPIC_POLICIES.get(target.word, PolicyName.ALL)
        return [PolicyAccess(target.topic.namespace, named, operation, target.topic)]

    of = "the policy" if policy is None else f"the policy {policy.name}"
    return RoutePermission(f"{operation.name} on {of} of the topic", accesses)


def both(first: RoutePermission, second: RoutePermission) -> RoutePermission:
    """Needs both; the refusal is that of the first that is missing."""
    return RoutePermission(
        f"{first.needs}, and {second.needs}", lambda target: [*first.accesses(target), *second.accesses(target)]
    )


def partitioned() -> RoutePermission:
    """What making a partitioned topic needs."""

    def accesses(target: RequestTarget) -> Iterable[Access]:
        if target.topic.persistent:
            yield PolicyAccess(target.namespace, PolicyName.PARTITION, PolicyOperation.WRITE, target.topic)
        yield NamespaceAccess(target.namespace, NamespaceOperation.CREATE_TOPIC)

    return RoutePermission(
        "WRITE on the policy PARTITION of the topic (persistent ones), and CREATE_TOPIC on the namespace", accesses
    )


def of_owner() -> RoutePermission:
    """Being the owner of the transaction that the path names."""
    return RoutePermission(
        "the owner of the transaction, or a superuser", lambda target: (), "who began the transaction"
    )


def in_methods(path: str, **rows: RoutePermission) -> dict[Route, RoutePermission]:
    """The rows of one path, by method."""
    return {(method, path): row for method, row in rows.items()}


def of_body() -> RoutePermission:
    """What the topics in the body need."""
    return RoutePermission(
        "an administrator of the tenant of the topics in the body", lambda target: (), "the topics in the body"
    )
