"""What roles may do over REST: one route at least of every kind of check, on topics of both domains."""

from __future__ import annotations

from typing import Final, NamedTuple

from tests.conformance.answers import Json
from tests.conformance.probe import Broker, probe
from tests.conformance.security_stage import CLUSTER, ROLES, Stage, by_outcome

STRING: Final = {"type": "STRING", "schema": "", "properties": {}}
EARLIEST: Final = {"ledgerId": -1, "entryId": -1, "partitionIndex": -1}


class Request(NamedTuple):
    """A request that each role makes; nothing that it changes decides whether the next one may."""

    method: str
    path: str
    body: Json = None


TOPIC: Final = (
    Request("GET", "/stats"),
    Request("GET", "/internalStats"),
    Request("GET", "/partitions"),
    Request("GET", "/subscriptions"),
    Request("GET", "/retention"),
    Request("POST", "/retention", {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}),
    Request("DELETE", "/retention"),
    Request("GET", "/entryFilters"),
    Request("DELETE", "/entryFilters"),
    Request("GET", "/maxMessageSize"),
    Request("GET", "/backlogQuotaMap"),
    Request("DELETE", "/policies"),
    Request("GET", "/s/dispatchRate"),
    Request("GET", "/permissions"),
    Request("PUT", "/unload"),
    Request("DELETE", "/subscription/nothing"),
)
"""On topics of both domains."""

PERSISTENT: Final = (
    Request("GET", "/lastMessageId"),
    Request("GET", "/messageid/0"),
    Request("GET", "/examinemessage"),
    Request("GET", "/properties"),
    Request("PUT", "/properties", {"a": "b"}),
    Request("DELETE", "/properties?key=a"),
    Request("GET", "/compaction"),
    Request("GET", "/offload"),
    Request("POST", "/trim"),
    Request("PUT", "/subscription/s", EARLIEST),
    Request("GET", "/subscription/s/properties"),
    Request("PUT", "/subscription/s/properties", {"a": "b"}),
    Request("GET", "/subscription/s/position/1"),
    Request("POST", "/subscription/s/skip/1"),
    Request("POST", "/subscription/s/skip_all"),
    Request("POST", "/subscription/s/expireMessages/1000000"),
    Request("POST", "/subscription/s/resetcursor", EARLIEST),
    Request("POST", "/subscription/s/resetcursor/1"),
    Request("POST", "/subscription/s/analyzeBacklog"),
    Request("POST", "/all_subscription/expireMessages/1000000"),
)


def asked(stage: Stage, requests: tuple[Request, ...], base: str, *, texts: bool = True) -> dict[str, Json]:
    """Who is allowed what, by request; refusals with their texts, or only with their statuses."""

    def ask(role: str, one: Request) -> str:
        answer = stage.rest(one.method, f"{base}{one.path}", role, one.body)
        return stage.outcome(answer, role) if texts else stage.verdict(answer)

    return {
        stage.plain(f"{one.method} {one.path}"): by_outcome(ROLES, lambda role, one=one: ask(role, one))  # type: ignore[misc]
        for one in requests
    }


@probe("12.14", profile="security")
def permitted_topic_routes(broker: Broker) -> Json:
    """Routes of topics, of both domains."""
    stage = Stage(broker, "t")
    return {domain: asked(stage, TOPIC, f"{domain}/{stage.namespace}/t") for domain in ("persistent", "non-persistent")}


@probe("12.14", "12.15", profile="security")
def permitted_persistent_routes(broker: Broker) -> Json:
    """Routes that need messages or a log, and the schema of a topic."""
    stage = Stage(broker, "t")
    schema = (
        Request("POST", "/schema", STRING),
        Request("GET", "/schema"),
        Request("GET", "/schemas"),
        Request("GET", "/schema/0"),
        Request("POST", "/version", STRING),
        Request("POST", "/compatibility", STRING),
        Request("DELETE", "/schema"),
    )
    return {
        "topic": asked(stage, PERSISTENT, f"persistent/{stage.namespace}/t"),
        "schema": asked(stage, schema, f"schemas/{stage.namespace}/t"),
        "lookup": asked(
            stage,
            (Request("GET", ""), Request("GET", "/bundle")),
            f"/lookup/v2/topic/persistent/{stage.namespace}/t",
        ),
    }


@probe("12.14", profile="security")
def permitted_ends(broker: Broker) -> Json:
    """Making and ending topics, partitions and subscriptions, each role its own."""
    stage = Stage(broker)

    def each(method: str, path: str, body: Json = None, *made: Request) -> dict[str, str]:
        def ask(role: str) -> str:
            for one in made:
                stage.make(one.method, one.path.format(role=role), one.body)
            return stage.outcome(stage.rest(method, path.format(role=role), role, body), role).replace(role, "<role>")

        return by_outcome(ROLES, ask)

    topic = f"persistent/{stage.namespace}/t-{{role}}"
    parts = f"persistent/{stage.namespace}/p-{{role}}/partitions"
    return {
        "create": each("PUT", topic),
        "terminate": each("POST", f"{topic}/terminate", None, Request("PUT", topic)),
        "delete": each("DELETE", topic, None, Request("PUT", topic)),
        "create partitioned": each("PUT", parts, 2),
        "grow": each("POST", parts, 3, Request("PUT", parts, 2)),
        "create missed": each("POST", parts.replace("partitions", "createMissedPartitions")),
        "delete partitioned": each("DELETE", parts, None, Request("PUT", parts, 2)),
        "truncate": each("DELETE", f"{topic}/truncate", None, Request("PUT", topic)),
        "compact": each("PUT", f"{topic}/compaction", None, Request("PUT", topic)),
    }


@probe("12.14", "12.15", profile="security")
def permitted_namespace_routes(broker: Broker) -> Json:
    """Routes of namespaces and their policies."""
    stage = Stage(broker, "t")
    requests = (
        Request("GET", ""),
        Request("GET", "/topics"),
        Request("GET", "/bundles"),
        Request("GET", "/retention"),
        Request("POST", "/retention", {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}),
        Request("DELETE", "/retention"),
        Request("POST", "/messageTTL", 0),
        Request("GET", "/delayedDelivery"),
        Request("POST", "/delayedDelivery", {"active": True, "tickTime": 1000}),
        Request("GET", "/backlogQuotaMap"),
        Request("DELETE", "/backlogQuota"),
        Request("GET", "/subscriptionAuthMode"),
        Request("POST", "/subscriptionAuthMode", "None"),
        Request("GET", "/schemaCompatibilityStrategy"),
        Request("GET", "/properties"),
        Request("PUT", "/properties", {"a": "b"}),
        Request("GET", "/permissions"),
        Request("POST", "/permissions/somebody", ["produce"]),
        Request("DELETE", "/permissions/somebody"),
        Request("GET", "/permissions/subscription"),
        Request("POST", "/permissions/subscription/x", ["somebody"]),
        Request("POST", "/clearBacklog"),
        Request("POST", "/unsubscribe/nothing"),
        Request("PUT", "/unload"),
    )
    return {
        "namespace": asked(stage, requests, f"namespaces/{stage.namespace}"),
        "topics": asked(stage, (Request("GET", ""), Request("GET", "/partitioned")), f"persistent/{stage.namespace}"),
        "non-persistent topics": asked(stage, (Request("GET", ""),), f"non-persistent/{stage.namespace}"),
        "many topics": asked(
            stage,
            (
                Request("POST", "grantPermissionsOnTopics", [_granted(stage)]),
                Request("POST", "revokePermissionsOnTopics", [_granted(stage)]),
            ),
            "namespaces/",
        ),
    }


def _granted(stage: Stage) -> Json:
    return {"topic": stage.name(), "role": "somebody", "actions": ["produce"]}


@probe("12.14", profile="security")
def permitted_tenant_routes(broker: Broker) -> Json:
    """Routes of tenants and their namespaces, each role its own where something is made."""
    stage = Stage(broker)
    tenant = {"adminRoles": ["tenant-admin"], "allowedClusters": [CLUSTER]}

    def ask(role: str, method: str, path: str, body: Json = None) -> str:
        return stage.verdict(stage.rest(method, path, role, body))

    def ended(role: str) -> str:
        stage.make("PUT", f"tenants/{stage.tenant}-of-{role}", tenant)
        return ask(role, "DELETE", f"tenants/{stage.tenant}-of-{role}")

    def emptied(role: str) -> str:
        stage.make("PUT", f"namespaces/{stage.tenant}/ended-of-{role}")
        return ask(role, "DELETE", f"namespaces/{stage.tenant}/ended-of-{role}")

    return {
        **asked(stage, (Request("GET", ""), Request("GET", f"/{stage.tenant}")), "tenants", texts=False),
        "update": by_outcome(ROLES, lambda role: ask(role, "POST", f"tenants/{stage.tenant}", tenant)),
        "create": by_outcome(ROLES, lambda role: ask(role, "PUT", f"tenants/{stage.tenant}-of-{role}", tenant)),
        "delete": by_outcome(ROLES, ended),
        "namespaces": by_outcome(ROLES, lambda role: ask(role, "GET", f"namespaces/{stage.tenant}")),
        "create namespace": by_outcome(
            ROLES, lambda role: ask(role, "PUT", f"namespaces/{stage.tenant}/made-of-{role}")
        ),
        "delete namespace": by_outcome(ROLES, emptied),
    }


@probe("12.14", profile="security")
def permitted_cluster_routes(broker: Broker) -> Json:
    """Routes of the broker, of clusters and of transactions."""
    stage = Stage(broker, "t")
    stage.coordinator()
    requests = (
        Request("GET", "brokers"),
        Request("GET", f"brokers/{CLUSTER}"),
        Request("GET", "brokers/leaderBroker"),
        Request("GET", "brokers/configuration/runtime"),
        Request("GET", "brokers/health"),
        Request("GET", "brokers/ready"),
        Request("GET", "brokers/version"),
        Request("GET", "clusters"),
        Request("GET", f"clusters/{CLUSTER}"),
        Request("POST", "clusters/nowhere", {"serviceUrl": "http://127.0.0.1:1"}),
        Request("DELETE", "clusters/nowhere"),
    )
    transactions = (
        Request("GET", "coordinators"),
        Request("GET", "coordinatorStats?coordinatorId=0"),
        Request("GET", "slowTransactions/1?coordinatorId=0"),
        Request("GET", f"transactionBufferStats/{stage.namespace}/t"),
        Request("GET", f"pendingAckStats/{stage.namespace}/t/s"),
        Request("POST", "abortTransaction/0/999999"),
    )
    return {
        **asked(stage, requests, "", texts=False),
        "transactions": asked(stage, transactions, "/admin/v3/transactions/", texts=False),
    }
