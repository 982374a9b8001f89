"""The permission table of HTTP: what each route needs, by method and path.

Every route of the REST interface has a row for each of its methods; a broker whose table lacks one does not start.
``docs/permissions.md`` and the tests of all routes with all roles are made from the rows. They follow Apache Pulsar
4.0.8, and are stricter where it asks nothing or too little (docs/differences.md): both domains need the same, and what
shows or ends transactions needs their owner.

Some routes name objects in their body, or act on many: their row says so in :attr:`RoutePermission.inside`, and the
route asks once more for each of those.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from magnetar.authorization.operations import (
    NamespaceOperation,
    PolicyName,
    PolicyOperation,
    TenantOperation,
    TopicOperation,
)
from magnetar.authorization.permission_table import needs
from magnetar.authorization.permission_table.cluster_permissions import cluster_permissions
from magnetar.authorization.permission_table.needs import Route, RoutePermission

_READ, _WRITE = PolicyOperation.READ, PolicyOperation.WRITE
_EACH: Final = "the same operation on every topic and subscription that is concerned, or nothing is done"
_BOTH: Final = "for a schema that is new, PRODUCE on the non-persistent topic of the same name, if there is one"
_OWN_PLACE: Final = "the object lies in the topic's own place of the object store"


def _namespace_routes() -> dict[Route, RoutePermission]:
    all_, one = "/admin/v2/namespaces", "/admin/v2/namespaces/{tenant}/{namespace}"
    unload = needs.superuser("unload namespaces")
    clear, unsubscribe = (
        needs.namespace(operation, _EACH)
        for operation in (NamespaceOperation.CLEAR_BACKLOG, NamespaceOperation.UNSUBSCRIBE)
    )
    write = needs.namespace_policy(_WRITE)
    return {
        ("GET", all_ + "/{tenant}"): needs.tenant(TenantOperation.LIST_NAMESPACES),
        **needs.in_methods(
            one,
            GET=needs.namespace_policy(_READ, PolicyName.ALL),
            PUT=needs.tenant(TenantOperation.CREATE_NAMESPACE, "what setting each policy in the body alone needs"),
            DELETE=needs.tenant(TenantOperation.DELETE_NAMESPACE),
        ),
        ("GET", one + "/topics"): needs.namespace(NamespaceOperation.GET_TOPICS),
        ("GET", one + "/bundles"): needs.namespace(NamespaceOperation.GET_BUNDLE),
        **needs.in_methods(one + "/{policy}", GET=needs.namespace_policy(_READ), POST=write, PUT=write, DELETE=write),
        **needs.in_methods(
            one + "/properties", GET=needs.tenant_admin(), PUT=needs.tenant_admin(), DELETE=needs.tenant_admin()
        ),
        **needs.in_methods(one + "/property/{key}", GET=needs.tenant_admin(), DELETE=needs.tenant_admin()),
        ("PUT", one + "/property/{key}/{value}"): needs.tenant_admin(),
        **needs.in_methods(
            one + "/resourcegroup",
            GET=needs.namespace_policy(_READ, PolicyName.RESOURCEGROUP),
            DELETE=needs.namespace_policy(_WRITE, PolicyName.RESOURCEGROUP),
        ),
        ("POST", one + "/resourcegroup/{resourcegroup}"): needs.namespace_policy(_WRITE, PolicyName.RESOURCEGROUP),
        ("GET", one + "/backlogQuotaMap"): needs.namespace_policy(_READ, PolicyName.BACKLOG),
        **needs.in_methods(
            one + "/backlogQuota",
            POST=needs.namespace_policy(_WRITE, PolicyName.BACKLOG),
            DELETE=needs.namespace_policy(_WRITE, PolicyName.BACKLOG),
        ),
        **needs.in_methods(
            one + "/offloadPolicies",
            GET=needs.namespace_policy(_READ, PolicyName.OFFLOAD),
            POST=needs.namespace_policy(_WRITE, PolicyName.OFFLOAD),
        ),
        ("DELETE", one + "/removeOffloadPolicies"): needs.namespace_policy(_WRITE, PolicyName.OFFLOAD),
        ("GET", one + "/scanOffloadedLedgers"): needs.namespace_policy(_READ, PolicyName.OFFLOAD),
        ("GET", one + "/permissions"): needs.namespace(NamespaceOperation.GET_PERMISSION),
        **needs.in_methods(
            one + "/permissions/{role}",
            POST=needs.namespace(NamespaceOperation.GRANT_PERMISSION),
            DELETE=needs.namespace(NamespaceOperation.REVOKE_PERMISSION),
        ),
        ("GET", one + "/permissions/subscription"): needs.namespace(NamespaceOperation.GET_PERMISSION),
        ("POST", one + "/permissions/subscription/{subscription}"): needs.namespace(
            NamespaceOperation.GRANT_PERMISSION
        ),
        ("DELETE", one + "/permissions/{subscription}/{role}"): needs.namespace(NamespaceOperation.REVOKE_PERMISSION),
        ("POST", all_ + "/grantPermissionsOnTopics"): needs.of_body(),
        ("POST", all_ + "/revokePermissionsOnTopics"): needs.of_body(),
        ("PUT", one + "/unload"): unload,
        ("PUT", one + "/{bundle}/unload"): unload,
        ("POST", one + "/clearBacklog"): clear,
        ("POST", one + "/clearBacklog/{subscription}"): clear,
        ("POST", one + "/{bundle}/clearBacklog"): clear,
        ("POST", one + "/{bundle}/clearBacklog/{subscription}"): clear,
        ("POST", one + "/unsubscribe/{subscription}"): unsubscribe,
        ("POST", one + "/{bundle}/unsubscribe/{subscription}"): unsubscribe,
    }


def _bundle_routes() -> dict[Route, RoutePermission]:
    all_, one = "/admin/v2/namespaces", "/admin/v2/namespaces/{tenant}/{namespace}"
    allowed, bookies = PolicyName.ALLOW_CLUSTERS, needs.superuser("say which bookies a namespace would like best")
    in_query = RoutePermission(
        "an administrator of the tenant in the query", lambda target: (), "the tenant in the query"
    )
    return {
        ("GET", all_ + "/{cluster}/antiAffinity/{group}"): in_query,
        ("GET", "/admin/namespaces/{cluster}/antiAffinity/{group}"): in_query,
        **needs.in_methods(
            one + "/allowedClusters",
            GET=needs.namespace_policy(_READ, allowed),
            POST=needs.namespace_policy(_WRITE, allowed),
        ),
        ("POST", one + "/migration"): needs.superuser("migrate namespaces"),
        **needs.in_methods(one + "/persistence/bookieAffinity", GET=bookies, POST=bookies, DELETE=bookies),
        ("PUT", one + "/{bundle}/split"): needs.superuser("split bundles"),
        ("DELETE", one + "/{bundle}"): needs.namespace(NamespaceOperation.DELETE_BUNDLE),
        ("GET", one + "/{bundle}/topicHashPositions"): needs.namespace_policy(_READ, PolicyName.PERSISTENCE),
        ("GET", "/admin/v2/non-persistent/{tenant}/{namespace}/{bundle}"): needs.namespace(
            NamespaceOperation.GET_BUNDLE
        ),
    }


def _topic_routes() -> dict[Route, RoutePermission]:
    within, one = "/admin/v2/{domain}/{tenant}/{namespace}", "/admin/v2/{domain}/{tenant}/{namespace}/{topic}"
    lookup, stats = needs.topic(TopicOperation.LOOKUP), needs.topic(TopicOperation.GET_STATS)
    create, delete = needs.namespace(NamespaceOperation.CREATE_TOPIC), needs.namespace(NamespaceOperation.DELETE_TOPIC)
    terminate, offload = needs.topic(TopicOperation.TERMINATE), needs.topic(TopicOperation.OFFLOAD)
    partitions = needs.topic_policy(_WRITE, PolicyName.PARTITION)
    rate, backlog = needs.topic_policy(_WRITE, PolicyName.RATE), needs.topic_policy(_WRITE, PolicyName.BACKLOG)
    shadow = needs.topic_policy(_WRITE, PolicyName.ALL)
    write, compact = needs.topic_policy(_WRITE), needs.topic(TopicOperation.COMPACT)
    return {
        ("GET", within): needs.namespace(NamespaceOperation.GET_TOPICS),
        ("GET", within + "/partitioned"): needs.namespace(NamespaceOperation.GET_TOPICS),
        **needs.in_methods(one, PUT=create, DELETE=delete),
        ("PUT", one + "/unload"): needs.topic(TopicOperation.UNLOAD),
        **needs.in_methods(
            one + "/partitions", GET=lookup, PUT=needs.partitioned(), POST=partitions, DELETE=delete
        ),
        ("POST", one + "/createMissedPartitions"): needs.both(lookup, create),
        ("POST", one + "/terminate"): terminate,
        ("POST", one + "/terminate/partitions"): terminate,
        ("DELETE", one + "/truncate"): needs.both(lookup, needs.tenant_admin()),
        ("POST", one + "/trim"): needs.topic(TopicOperation.TRIM_TOPIC),
        **needs.in_methods(
            one + "/properties",
            GET=needs.topic(TopicOperation.GET_METADATA),
            PUT=needs.topic(TopicOperation.UPDATE_METADATA),
            DELETE=needs.topic(TopicOperation.DELETE_METADATA),
        ),
        **needs.in_methods(one + "/{policy}", GET=needs.topic_policy(_READ), POST=write, PUT=write, DELETE=write),
        ("DELETE", one + "/policies"): needs.topic_policy(_WRITE, PolicyName.ALL),
        **needs.in_methods(
            one + "/{subscription}/dispatchRate",
            GET=needs.topic_policy(_READ, PolicyName.RATE), POST=rate, DELETE=rate,
        ),
        ("GET", one + "/backlogQuotaMap"): needs.topic_policy(_READ, PolicyName.BACKLOG),
        **needs.in_methods(one + "/backlogQuota", POST=backlog, DELETE=backlog),
        ("GET", one + "/permissions"): needs.tenant_admin(),
        **needs.in_methods(one + "/permissions/{role}", POST=needs.tenant_admin(), DELETE=needs.tenant_admin()),
        ("GET", one + "/stats"): stats,
        ("GET", one + "/internalStats"): stats,
        ("GET", one + "/partitioned-stats"): stats,
        ("GET", one + "/partitioned-internalStats"): stats,
        **needs.in_methods(one + "/compaction", GET=compact, PUT=compact),
        ("POST", one + "/compaction/plan"): compact,
        ("POST", one + "/compaction/view"): needs.topic(TopicOperation.COMPACT, _OWN_PLACE),
        **needs.in_methods(one + "/offload", GET=offload, PUT=offload),
        ("GET", one + "/offload/ledgers"): offload,
        ("GET", one + "/backlog"): needs.tenant_admin(),
        ("PUT", one + "/backlogSize"): needs.topic(TopicOperation.GET_BACKLOG_SIZE),
        ("GET", one + "/internal-info"): stats,
        **needs.in_methods(
            one + "/shadowTopics",
            GET=needs.topic_policy(_READ, PolicyName.ALL), PUT=shadow, DELETE=shadow,
        ),
        ("POST", one + "/offload/{ledger}"): needs.topic(TopicOperation.OFFLOAD, _OWN_PLACE),
    }  # fmt: skip


def _subscription_routes() -> dict[Route, RoutePermission]:
    topic = "/admin/v2/{domain}/{tenant}/{namespace}/{topic}"
    one = topic + "/subscription/{subscription}"
    peek, expire = TopicOperation.PEEK_MESSAGES, TopicOperation.EXPIRE_MESSAGES
    skip, reset = needs.subscription(TopicOperation.SKIP), needs.subscription(TopicOperation.RESET_CURSOR)
    return {
        ("GET", topic + "/subscriptions"): needs.topic(TopicOperation.GET_SUBSCRIPTIONS),
        **needs.in_methods(
            one, PUT=needs.subscription(TopicOperation.SUBSCRIBE), DELETE=needs.subscription(TopicOperation.UNSUBSCRIBE)
        ),
        **needs.in_methods(
            one + "/properties",
            GET=needs.subscription(TopicOperation.CONSUME),
            PUT=needs.subscription(TopicOperation.SUBSCRIBE),
        ),
        **needs.in_methods(
            one + "/replicatedSubscriptionStatus",
            GET=needs.subscription(TopicOperation.GET_REPLICATED_SUBSCRIPTION_STATUS),
            POST=needs.subscription(TopicOperation.SET_REPLICATED_SUBSCRIPTION_STATUS),
        ),
        ("GET", one + "/explain"): needs.subscription(peek),
        ("GET", one + "/unacknowledged"): needs.subscription(peek, recorded=True),
        ("POST", one + "/skip_all"): skip,
        ("POST", one + "/skip/{count}"): skip,
        ("POST", one + "/skipUnreadable"): skip,
        ("POST", one + "/resetcursor"): reset,
        ("POST", one + "/resetcursor/{timestamp}"): reset,
        ("POST", one + "/expireMessages"): needs.subscription(expire),
        ("POST", one + "/expireMessages/{seconds}"): needs.subscription(expire),
        ("POST", topic + "/all_subscription/expireMessages/{seconds}"): needs.topic(expire, _EACH),
        ("GET", one + "/position/{position}"): needs.subscription(peek, recorded=True),
        ("POST", one + "/analyzeBacklog"): needs.subscription(TopicOperation.CONSUME),
        ("GET", topic + "/lastMessageId"): needs.topic(peek),
        ("GET", topic + "/messageid/{timestamp}"): needs.topic(peek),
        ("GET", topic + "/examinemessage"): needs.topic(peek, recorded=True),
        ("GET", topic + "/ledger/{ledger}/entry/{entry}"): needs.topic(peek, recorded=True),
    }


def _other_routes() -> dict[Route, RoutePermission]:
    schemas = "/admin/v2/schemas/{tenant}/{namespace}/{topic}"
    lookup = "/lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}"
    transactions, topic = "/admin/v3/transactions", "{tenant}/{namespace}/{topic}"
    txn = "{mostSigBits}/{leastSigBits}"
    metadata, stats = needs.topic(TopicOperation.GET_METADATA), needs.topic(TopicOperation.GET_STATS)
    acks = needs.subscription(TopicOperation.CONSUME)
    see = needs.superuser("see transactions of others")
    return {
        **needs.in_methods(
            schemas + "/schema",
            GET=metadata,
            POST=needs.topic(TopicOperation.PRODUCE, _BOTH),
            DELETE=needs.tenant_admin(),
        ),
        ("GET", schemas + "/schema/{version}"): metadata,
        ("GET", schemas + "/schemas"): metadata,
        ("GET", schemas + "/metadata"): metadata,
        ("POST", schemas + "/version"): metadata,
        ("POST", schemas + "/compatibility"): needs.tenant_admin(),
        ("GET", "/ws/v2/producer/{domain}/" + topic): needs.topic(TopicOperation.PRODUCE),
        ("GET", "/ws/v2/consumer/{domain}/" + topic + "/{subscription}"): acks,
        ("GET", "/ws/v2/reader/{domain}/" + topic): needs.topic(TopicOperation.CONSUME),
        ("GET", "/ws/v3/consumer"): needs.anyone("a login; the answer is always 400 or 405"),
        ("GET", "/ws/v3/consumer/{subscription}"): RoutePermission(
            "a login", lambda target: (), "CONSUME on every topic with the subscription"
        ),
        ("POST", "/topics/{domain}/{tenant}/{namespace}/{topic}"): needs.topic(TopicOperation.PRODUCE),
        ("POST", "/topics/{domain}/{tenant}/{namespace}/{topic}/partitions/{partition}"): needs.topic(
            TopicOperation.PRODUCE
        ),
        ("GET", lookup): needs.topic(TopicOperation.LOOKUP),
        ("GET", lookup + "/bundle"): needs.namespace(NamespaceOperation.GET_BUNDLE),
        ("GET", transactions + "/coordinators"): see,
        ("GET", transactions + "/coordinatorStats"): see,
        ("GET", transactions + "/coordinatorInternalStats/{coordinatorId}"): see,
        ("POST", transactions + "/transactionCoordinator/replicas"): needs.superuser("add transaction coordinators"),
        ("GET", f"{transactions}/pendingAckInternalStats/{topic}/{{subName}}"): acks,
        ("GET", f"{transactions}/transactionBufferInternalStats/{topic}"): stats,
        ("GET", transactions + "/slowTransactions/{timeout}"): see,
        ("GET", f"{transactions}/transactionMetadata/{txn}"): needs.of_owner(),
        ("POST", f"{transactions}/abortTransaction/{txn}"): needs.of_owner(),
        ("GET", f"{transactions}/transactionBufferStats/{topic}"): stats,
        ("GET", f"{transactions}/transactionInBufferStats/{topic}/{txn}"): stats,
        ("GET", f"{transactions}/pendingAckStats/{topic}/{{subName}}"): acks,
        ("GET", f"{transactions}/transactionInPendingAckStats/{topic}/{{subName}}/{txn}"): acks,
        ("GET", f"{transactions}/positionStatsInPendingAck/{topic}/{{subName}}/{{ledgerId}}/{{entryId}}"): acks,
        ("GET", "/admin/v2/permissions/explain"): RoutePermission(
            "a login", lambda target: (), "about another role, an administrator of the tenant that it is about"
        ),
        ("GET", "/metrics"): needs.anyone("a login only with authenticateMetricsEndpoint"),
        ("GET", "/docs"): needs.anyone(),
        ("GET", "/openapi.json"): needs.anyone(),
        ("HEAD", "/openapi.json"): needs.anyone(),
        **needs.in_methods(
            "/{path}",
            **dict.fromkeys(
                ("GET", "PUT", "POST", "DELETE", "PATCH", "HEAD", "OPTIONS"),
                needs.anyone("a login; the answer is always 404, 405 or 501"),
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
                **cluster_permissions(),
                **_namespace_routes(),
                **_bundle_routes(),
                **_topic_routes(),
                **_subscription_routes(),
                **_other_routes(),
            }
        )
    )
)
