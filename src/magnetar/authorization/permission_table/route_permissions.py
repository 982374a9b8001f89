"""The permission table of HTTP: what each route needs, by method and path.

Every route of the REST interface has a row for each of its methods; a broker whose table lacks one does not start.
``docs/permissions.md`` and the tests of all routes with all roles are made from the rows. They follow Apache Pulsar
4.0.8, and are stricter where it asks nothing or too little (docs/differences.md): both domains need the same, and what
shows or ends transactions needs their owner.

Some routes name objects in their body, or act on many: their row says so in :attr:`RoutePermission.inside`, and the
route asks once more for each of those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

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


def _anyone(needs: str = "a login") -> RoutePermission:
    return RoutePermission(needs, lambda target: ())


def _superuser(what: str) -> RoutePermission:
    return RoutePermission("a superuser", lambda target: [ClusterAccess(what)])


def _tenant(operation: TenantOperation, inside: str = "") -> RoutePermission:
    return RoutePermission(
        f"{operation.name} on the tenant", lambda target: [TenantAccess(target.tenant, operation)], inside
    )


def _tenant_admin(inside: str = "") -> RoutePermission:
    return RoutePermission("an administrator of the tenant", lambda target: [TenantAccess(target.tenant)], inside)


def _namespace(operation: NamespaceOperation, inside: str = "") -> RoutePermission:
    return RoutePermission(
        f"{operation.name} on the namespace", lambda target: [NamespaceAccess(target.namespace, operation)], inside
    )


def _topic(operation: TopicOperation, inside: str = "", *, recorded: bool = False) -> RoutePermission:
    return RoutePermission(
        f"{operation.name} on the topic", lambda target: [TopicAccess(target.topic, operation)], inside, recorded
    )


def _subscription(operation: TopicOperation, *, recorded: bool = False) -> RoutePermission:
    return RoutePermission(
        f"{operation.name} on the topic with the subscription",
        lambda target: [TopicAccess(target.topic, operation, target.subscription)],
        recorded=recorded,
    )


def _namespace_policy(operation: PolicyOperation, policy: PolicyName | None = None) -> RoutePermission:
    def accesses(target: RequestTarget) -> Iterable[Access]:
        if target.word == "delayedDelivery" and operation is PolicyOperation.WRITE:
            return [ClusterAccess("change the delayed delivery of a namespace")]
        named = policy or NAMESPACE_POLICIES.get(target.word, PolicyName.ALL)
        return [PolicyAccess(target.namespace, named, operation)]

    of = "the policy" if policy is None else f"the policy {policy.name}"
    but = "; for delayedDelivery, a superuser" if policy is None and operation is PolicyOperation.WRITE else ""
    return RoutePermission(f"{operation.name} on {of} of the namespace{but}", accesses)


def _topic_policy(operation: PolicyOperation, policy: PolicyName | None = None) -> RoutePermission:
    def accesses(target: RequestTarget) -> Iterable[Access]:
        if policy is None and target.word == "maxMessageSize":
            return [TenantAccess(target.tenant)]  # in Pulsar's words
        named = policy or TOPIC_POLICIES.get(target.word, PolicyName.ALL)
        return [PolicyAccess(target.topic.namespace, named, operation, target.topic)]

    of = "the policy" if policy is None else f"the policy {policy.name}"
    return RoutePermission(f"{operation.name} on {of} of the topic", accesses)


def _both(first: RoutePermission, second: RoutePermission) -> RoutePermission:
    """Needs both; the refusal is that of the first that is missing."""
    return RoutePermission(
        f"{first.needs}, and {second.needs}", lambda target: [*first.accesses(target), *second.accesses(target)]
    )


def _partitioned() -> RoutePermission:
    """What making a partitioned topic needs."""

    def accesses(target: RequestTarget) -> Iterable[Access]:
        if target.topic.persistent:
            yield PolicyAccess(target.namespace, PolicyName.PARTITION, PolicyOperation.WRITE, target.topic)
        yield NamespaceAccess(target.namespace, NamespaceOperation.CREATE_TOPIC)

    return RoutePermission(
        "WRITE on the policy PARTITION of the topic (persistent ones), and CREATE_TOPIC on the namespace", accesses
    )


def _of_owner() -> RoutePermission:
    return RoutePermission(
        "the owner of the transaction, or a superuser", lambda target: (), "who began the transaction"
    )


_READ, _WRITE = PolicyOperation.READ, PolicyOperation.WRITE
_EACH: Final = "the same operation on every topic and subscription that is concerned, or nothing is done"
_BOTH: Final = "for a schema that is new, PRODUCE on the non-persistent topic of the same name, if there is one"
_OWN_PLACE: Final = "the object lies in the topic's own place of the object store"


def _in_methods(path: str, **rows: RoutePermission) -> dict[Route, RoutePermission]:
    return {(method, path): row for method, row in rows.items()}


def _cluster_routes() -> dict[Route, RoutePermission]:
    brokers, clusters, tenants = "/admin/v2/brokers", "/admin/v2/clusters", "/admin/v2/tenants"
    change = _superuser("change clusters")
    return {
        ("GET", brokers): _superuser("list brokers"),
        ("GET", brokers + "/{cluster}"): _superuser("list brokers"),
        ("GET", brokers + "/health"): _superuser("check the health of the broker"),
        ("GET", brokers + "/ready"): _anyone(),
        ("GET", brokers + "/version"): _anyone(),
        ("GET", brokers + "/leaderBroker"): _superuser("name the leader of the brokers"),
        ("GET", brokers + "/configuration/runtime"): _superuser("show the configuration"),
        ("GET", clusters): _anyone(),
        **_in_methods(clusters + "/{cluster}", GET=_superuser("show clusters"), PUT=change, POST=change, DELETE=change),
        ("GET", tenants): _superuser("list tenants"),
        **_in_methods(
            tenants + "/{tenant}",
            GET=_tenant(TenantOperation.GET_TENANT),
            PUT=_superuser("create tenants"),
            POST=_tenant(TenantOperation.UPDATE_TENANT),
            DELETE=_tenant(TenantOperation.DELETE_TENANT),
        ),
    }


def _namespace_routes() -> dict[Route, RoutePermission]:
    all_, one = "/admin/v2/namespaces", "/admin/v2/namespaces/{tenant}/{namespace}"
    unload = _superuser("unload namespaces")
    clear, unsubscribe = (
        _namespace(operation, _EACH) for operation in (NamespaceOperation.CLEAR_BACKLOG, NamespaceOperation.UNSUBSCRIBE)
    )
    write = _namespace_policy(_WRITE)
    return {
        ("GET", all_ + "/{tenant}"): _tenant(TenantOperation.LIST_NAMESPACES),
        **_in_methods(
            one,
            GET=_namespace_policy(_READ, PolicyName.ALL),
            PUT=_tenant(TenantOperation.CREATE_NAMESPACE, "what setting each policy in the body alone needs"),
            DELETE=_tenant(TenantOperation.DELETE_NAMESPACE),
        ),
        ("GET", one + "/topics"): _namespace(NamespaceOperation.GET_TOPICS),
        ("GET", one + "/bundles"): _namespace(NamespaceOperation.GET_BUNDLE),
        **_in_methods(one + "/{policy}", GET=_namespace_policy(_READ), POST=write, PUT=write, DELETE=write),
        **_in_methods(one + "/properties", GET=_tenant_admin(), PUT=_tenant_admin(), DELETE=_tenant_admin()),
        **_in_methods(one + "/property/{key}", GET=_tenant_admin(), DELETE=_tenant_admin()),
        ("PUT", one + "/property/{key}/{value}"): _tenant_admin(),
        ("GET", one + "/backlogQuotaMap"): _namespace_policy(_READ, PolicyName.BACKLOG),
        **_in_methods(
            one + "/backlogQuota",
            POST=_namespace_policy(_WRITE, PolicyName.BACKLOG),
            DELETE=_namespace_policy(_WRITE, PolicyName.BACKLOG),
        ),
        ("GET", one + "/permissions"): _namespace(NamespaceOperation.GET_PERMISSION),
        **_in_methods(
            one + "/permissions/{role}",
            POST=_namespace(NamespaceOperation.GRANT_PERMISSION),
            DELETE=_namespace(NamespaceOperation.REVOKE_PERMISSION),
        ),
        ("GET", one + "/permissions/subscription"): _namespace(NamespaceOperation.GET_PERMISSION),
        ("POST", one + "/permissions/subscription/{subscription}"): _namespace(NamespaceOperation.GRANT_PERMISSION),
        ("DELETE", one + "/permissions/{subscription}/{role}"): _namespace(NamespaceOperation.REVOKE_PERMISSION),
        ("POST", all_ + "/grantPermissionsOnTopics"): _of_body(),
        ("POST", all_ + "/revokePermissionsOnTopics"): _of_body(),
        ("PUT", one + "/unload"): unload,
        ("PUT", one + "/{bundle}/unload"): unload,
        ("POST", one + "/clearBacklog"): clear,
        ("POST", one + "/clearBacklog/{subscription}"): clear,
        ("POST", one + "/{bundle}/clearBacklog"): clear,
        ("POST", one + "/{bundle}/clearBacklog/{subscription}"): clear,
        ("POST", one + "/unsubscribe/{subscription}"): unsubscribe,
        ("POST", one + "/{bundle}/unsubscribe/{subscription}"): unsubscribe,
    }


def _of_body() -> RoutePermission:
    return RoutePermission(
        "an administrator of the tenant of the topics in the body", lambda target: (), "the topics in the body"
    )


def _topic_routes() -> dict[Route, RoutePermission]:
    within, one = "/admin/v2/{domain}/{tenant}/{namespace}", "/admin/v2/{domain}/{tenant}/{namespace}/{topic}"
    lookup, stats = _topic(TopicOperation.LOOKUP), _topic(TopicOperation.GET_STATS)
    create, delete = _namespace(NamespaceOperation.CREATE_TOPIC), _namespace(NamespaceOperation.DELETE_TOPIC)
    terminate, offload = _topic(TopicOperation.TERMINATE), _topic(TopicOperation.OFFLOAD)
    partitions = _topic_policy(_WRITE, PolicyName.PARTITION)
    rate, backlog = _topic_policy(_WRITE, PolicyName.RATE), _topic_policy(_WRITE, PolicyName.BACKLOG)
    write, compact = _topic_policy(_WRITE), _topic(TopicOperation.COMPACT)
    return {
        ("GET", within): _namespace(NamespaceOperation.GET_TOPICS),
        ("GET", within + "/partitioned"): _namespace(NamespaceOperation.GET_TOPICS),
        **_in_methods(one, PUT=create, DELETE=delete),
        ("PUT", one + "/unload"): _topic(TopicOperation.UNLOAD),
        **_in_methods(
            one + "/partitions", GET=lookup, PUT=_partitioned(), POST=partitions, DELETE=delete
        ),
        ("POST", one + "/createMissedPartitions"): _both(lookup, create),
        ("POST", one + "/terminate"): terminate,
        ("POST", one + "/terminate/partitions"): terminate,
        ("DELETE", one + "/truncate"): _both(lookup, _tenant_admin()),
        ("POST", one + "/trim"): _topic(TopicOperation.TRIM_TOPIC),
        **_in_methods(
            one + "/properties",
            GET=_topic(TopicOperation.GET_METADATA),
            PUT=_topic(TopicOperation.UPDATE_METADATA),
            DELETE=_topic(TopicOperation.DELETE_METADATA),
        ),
        **_in_methods(one + "/{policy}", GET=_topic_policy(_READ), POST=write, PUT=write, DELETE=write),
        ("DELETE", one + "/policies"): _topic_policy(_WRITE, PolicyName.ALL),
        **_in_methods(
            one + "/{subscription}/dispatchRate",
            GET=_topic_policy(_READ, PolicyName.RATE), POST=rate, DELETE=rate,
        ),
        ("GET", one + "/backlogQuotaMap"): _topic_policy(_READ, PolicyName.BACKLOG),
        **_in_methods(one + "/backlogQuota", POST=backlog, DELETE=backlog),
        ("GET", one + "/permissions"): _tenant_admin(),
        **_in_methods(one + "/permissions/{role}", POST=_tenant_admin(), DELETE=_tenant_admin()),
        ("GET", one + "/stats"): stats,
        ("GET", one + "/internalStats"): stats,
        ("GET", one + "/partitioned-stats"): stats,
        ("GET", one + "/partitioned-internalStats"): stats,
        **_in_methods(one + "/compaction", GET=compact, PUT=compact),
        ("POST", one + "/compaction/plan"): compact,
        ("POST", one + "/compaction/view"): _topic(TopicOperation.COMPACT, _OWN_PLACE),
        **_in_methods(one + "/offload", GET=offload, PUT=offload),
        ("GET", one + "/offload/ledgers"): offload,
        ("POST", one + "/offload/{ledger}"): _topic(TopicOperation.OFFLOAD, _OWN_PLACE),
    }  # fmt: skip


def _subscription_routes() -> dict[Route, RoutePermission]:
    topic = "/admin/v2/{domain}/{tenant}/{namespace}/{topic}"
    one = topic + "/subscription/{subscription}"
    peek, expire = TopicOperation.PEEK_MESSAGES, TopicOperation.EXPIRE_MESSAGES
    skip, reset = _subscription(TopicOperation.SKIP), _subscription(TopicOperation.RESET_CURSOR)
    return {
        ("GET", topic + "/subscriptions"): _topic(TopicOperation.GET_SUBSCRIPTIONS),
        **_in_methods(
            one, PUT=_subscription(TopicOperation.SUBSCRIBE), DELETE=_subscription(TopicOperation.UNSUBSCRIBE)
        ),
        **_in_methods(
            one + "/properties",
            GET=_subscription(TopicOperation.CONSUME),
            PUT=_subscription(TopicOperation.SUBSCRIBE),
        ),
        ("GET", one + "/explain"): _subscription(peek),
        ("GET", one + "/unacknowledged"): _subscription(peek, recorded=True),
        ("POST", one + "/skip_all"): skip,
        ("POST", one + "/skip/{count}"): skip,
        ("POST", one + "/skipUnreadable"): skip,
        ("POST", one + "/resetcursor"): reset,
        ("POST", one + "/resetcursor/{timestamp}"): reset,
        ("POST", one + "/expireMessages"): _subscription(expire),
        ("POST", one + "/expireMessages/{seconds}"): _subscription(expire),
        ("POST", topic + "/all_subscription/expireMessages/{seconds}"): _topic(expire, _EACH),
        ("GET", one + "/position/{position}"): _subscription(peek, recorded=True),
        ("POST", one + "/analyzeBacklog"): _subscription(TopicOperation.CONSUME),
        ("GET", topic + "/lastMessageId"): _topic(peek),
        ("GET", topic + "/messageid/{timestamp}"): _topic(peek),
        ("GET", topic + "/examinemessage"): _topic(peek, recorded=True),
        ("GET", topic + "/ledger/{ledger}/entry/{entry}"): _topic(peek, recorded=True),
    }


def _other_routes() -> dict[Route, RoutePermission]:
    schemas = "/admin/v2/schemas/{tenant}/{namespace}/{topic}"
    lookup = "/lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}"
    transactions, topic = "/admin/v3/transactions", "{tenant}/{namespace}/{topic}"
    txn = "{mostSigBits}/{leastSigBits}"
    metadata, stats = _topic(TopicOperation.GET_METADATA), _topic(TopicOperation.GET_STATS)
    acks = _subscription(TopicOperation.CONSUME)
    see = _superuser("see transactions of others")
    return {
        **_in_methods(
            schemas + "/schema", GET=metadata, POST=_topic(TopicOperation.PRODUCE, _BOTH), DELETE=_tenant_admin()
        ),
        ("GET", schemas + "/schema/{version}"): metadata,
        ("GET", schemas + "/schemas"): metadata,
        ("GET", schemas + "/metadata"): metadata,
        ("POST", schemas + "/version"): metadata,
        ("POST", schemas + "/compatibility"): _tenant_admin(),
        ("GET", lookup): _topic(TopicOperation.LOOKUP),
        ("GET", lookup + "/bundle"): _namespace(NamespaceOperation.GET_BUNDLE),
        ("GET", transactions + "/coordinators"): see,
        ("GET", transactions + "/coordinatorStats"): see,
        ("GET", transactions + "/slowTransactions/{timeout}"): see,
        ("GET", f"{transactions}/transactionMetadata/{txn}"): _of_owner(),
        ("POST", f"{transactions}/abortTransaction/{txn}"): _of_owner(),
        ("GET", f"{transactions}/transactionBufferStats/{topic}"): stats,
        ("GET", f"{transactions}/transactionInBufferStats/{topic}/{txn}"): stats,
        ("GET", f"{transactions}/pendingAckStats/{topic}/{{subName}}"): acks,
        ("GET", f"{transactions}/transactionInPendingAckStats/{topic}/{{subName}}/{txn}"): acks,
        ("GET", f"{transactions}/positionStatsInPendingAck/{topic}/{{subName}}/{{ledgerId}}/{{entryId}}"): acks,
        ("GET", "/admin/v2/permissions/explain"): RoutePermission(
            "a login", lambda target: (), "about another role, an administrator of the tenant that it is about"
        ),
        ("GET", "/metrics"): _anyone("a login only with authenticateMetricsEndpoint"),
        ("GET", "/docs"): _anyone(),
        ("GET", "/openapi.json"): _anyone(),
        ("HEAD", "/openapi.json"): _anyone(),
        **_in_methods(
            "/{path}",
            **dict.fromkeys(
                ("GET", "PUT", "POST", "DELETE", "PATCH", "HEAD", "OPTIONS"),
                _anyone("a login; the answer is always 404, 405 or 501"),
            ),
        ),
    }


_READS: Final = frozenset(("/version", "/compatibility", "/analyzeBacklog", "/compaction/plan"))
"""Ends of paths whose POST changes nothing."""


def _recorded(routes: Mapping[Route, RoutePermission]) -> Iterable[tuple[Route, RoutePermission]]:
    """Mark the routes that change something: all but those with GET and a few that are asked with POST."""
    for (method, path), row in routes.items():
        changes = method in ("PUT", "POST", "DELETE") and not path.endswith(tuple(_READS)) and path != "/{path}"
        yield (method, path), RoutePermission(row.needs, row.accesses, row.inside, row.recorded or changes)


ROUTE_PERMISSIONS: Final[Mapping[Route, RoutePermission]] = MappingProxyType(
    dict(
        _recorded(
            {
                **_cluster_routes(),
                **_namespace_routes(),
                **_topic_routes(),
                **_subscription_routes(),
                **_other_routes(),
            }
        )
    )
)
