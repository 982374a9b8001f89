"""Which level decides each policy of a topic: the topic itself, its namespace or the broker (rule 8.4, decision
006).

``resolve`` is the whole rule and pure: one table says for each field of :class:`TopicPolicies` under which name the
topic and the namespace may set it and how that is read. What cannot be read (a namespace may be created with anything)
counts as not set, and so does a rate that is not above 0, as in Pulsar.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from magnetar.model.policies import Json, Retention
from magnetar.model.topic_policies import (
    ALL_SUBSCRIPTION_TYPES,
    BacklogQuota,
    DelayedDelivery,
    DispatchRate,
    InactiveTopics,
    PublishRate,
    QuotaPolicy,
    SubscribeRate,
    TopicPolicies,
)

CAUGHT_UP: Final = "delete_when_subscriptions_caught_up"
SIZE, AGE = "destination_storage", "message_age"

_Reader = Callable[[Json], Any]
"""Reads one policy: its value, or None if it is not set."""


class _Rule(NamedTuple):
    field: str
    topic: str
    """Name of the topic's policy; empty: a topic has none."""
    namespace: str
    """Key of the namespace's policies; empty: a namespace has none. ``{cluster}`` for values per cluster: ``key.``."""
    read: _Reader


def resolve(
    broker: TopicPolicies, namespace: Mapping[str, Json], *topic: Mapping[str, Json], cluster: str = ""
) -> TopicPolicies:
    """The effective policies. ``topic``: the topic's own, the strongest first; returns ``broker`` itself if none are
    set."""
    found: dict[str, Any] = {}
    for rule in _RULES:
        for given in (*[level.get(rule.topic) for level in topic], _of_namespace(namespace, rule.namespace, cluster)):
            value = None if given is None else rule.read(given)
            if value is not None:
                found.setdefault(rule.field, value)
                break
    rates = _dispatch_rates(topic)
    if rates:
        found["dispatch_rates"] = rates
    # a namespace can only add to these two
    found["encryption_required"] = broker.encryption_required or found.get("encryption_required", False)
    own = any("schemaValidationEnforced" in level for level in topic)
    if not own and broker.schema_validation_enforced:
        found["schema_validation_enforced"] = True
    changed = {name: value for name, value in found.items() if getattr(broker, name) != value}
    return broker._replace(**changed) if changed else broker


def _of_namespace(policies: Mapping[str, Json], key: str, cluster: str) -> Json:
    name, _, part = key.partition(".")
    value = policies.get(name)
    if part and isinstance(value, dict):
        return value.get(cluster if part == "cluster" else part)
    return value


def _dispatch_rates(levels: tuple[Mapping[str, Json], ...]) -> dict[str, DispatchRate]:
    rates: dict[str, DispatchRate] = {}
    for level in reversed(levels):
        given = level.get("subscriptionDispatchRates")
        for name, value in given.items() if isinstance(given, dict) else ():
            rate = _dispatch_rate(value)
            if rate is not None:
                rates[name] = rate
    return rates


# reading one policy -------------------------------------------------------------------------------------------------


def _number(value: Json, default: int = 0) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def count_of(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _whole(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _member(name: str) -> _Reader:
    return lambda value: _whole(value.get(name)) if isinstance(value, dict) else None


def _flag(value: Json) -> bool | None:
    return value if isinstance(value, bool) else None


def _retention(value: Json) -> Retention | None:
    if not isinstance(value, dict):
        return None
    return Retention(_number(value.get("retentionTimeInMinutes")), _number(value.get("retentionSizeInMB")))


def read_quota(value: Json, limit: str) -> BacklogQuota | None:
    """Read a backlog quota; ``limit`` is limitSize or limitTime, by its type."""
    if not isinstance(value, dict):
        return None
    try:
        policy = QuotaPolicy(value.get("policy"))
    except ValueError:
        return None
    number = _number(value.get(limit), -1)
    if number < 0 and limit == "limitSize":
        number = _number(value.get("limit"), -1)
    return BacklogQuota(number, policy)


def _size_quota(value: Json) -> BacklogQuota | None:
    return read_quota(value.get(SIZE) if isinstance(value, dict) else None, "limitSize")


def _age_quota(value: Json) -> BacklogQuota | None:
    return read_quota(value.get(AGE) if isinstance(value, dict) else None, "limitTime")


def _delayed(value: Json) -> DelayedDelivery | None:
    if not isinstance(value, dict):
        return None
    return DelayedDelivery(
        value.get("active") is True,
        _number(value.get("tickTime"), 1000),
        _number(value.get("maxDeliveryDelayInMillis")),
    )


def _inactive(value: Json) -> InactiveTopics | None:
    if not isinstance(value, dict):
        return None
    return InactiveTopics(
        value.get("deleteWhileInactive") is True,
        _number(value.get("maxInactiveDurationSeconds"), 60),
        value.get("inactiveTopicDeleteMode") == CAUGHT_UP,
    )


def _types(value: Json) -> frozenset[str] | None:
    if not isinstance(value, list):
        return None
    return frozenset(item for item in value if isinstance(item, str) and item in ALL_SUBSCRIPTION_TYPES) or None


def _strategy(value: Json) -> str | None:
    return value if isinstance(value, str) and value != "UNDEFINED" else None


_AUTO_UPDATE: Final = {
    "AutoUpdateDisabled": "ALWAYS_INCOMPATIBLE",
    "Backward": "BACKWARD",
    "Forward": "FORWARD",
    "Full": "FULL",
    "AlwaysCompatible": "ALWAYS_COMPATIBLE",
    "BackwardTransitive": "BACKWARD_TRANSITIVE",
    "ForwardTransitive": "FORWARD_TRANSITIVE",
    "FullTransitive": "FULL_TRANSITIVE",
}
"""The strategies that values of the older policy mean; the newer one counts if both are set."""


def _auto_update(value: Json) -> str | None:
    return _AUTO_UPDATE.get(value) if isinstance(value, str) else None


def _auto_subscription(value: Json) -> bool | None:
    return _flag(value.get("allowAutoSubscriptionCreation")) if isinstance(value, dict) else None


def _publish_rate(value: Json) -> PublishRate | None:
    if not isinstance(value, dict):
        return None
    rate = PublishRate(
        _number(value.get("publishThrottlingRateInMsg")), _number(value.get("publishThrottlingRateInByte"))
    )
    return rate if max(rate) > 0 else None


def _dispatch_rate(value: Json) -> DispatchRate | None:
    if not isinstance(value, dict):
        return None
    rate = DispatchRate(
        _number(value.get("dispatchThrottlingRateInMsg")),
        _number(value.get("dispatchThrottlingRateInByte")),
        _number(value.get("ratePeriodInSecond"), 1),
        value.get("relativeToPublishRate") is True,
    )
    return rate if max(rate.messages, rate.bytes) > 0 else None


def _subscribe_rate(value: Json) -> SubscribeRate | None:
    if not isinstance(value, dict):
        return None
    rate = SubscribeRate(
        _number(value.get("subscribeThrottlingRatePerConsumer")), _number(value.get("ratePeriodInSecond"), 30)
    )
    return rate if min(rate) > 0 else None


_RULES: Final = (
    _Rule("retention", "retention", "retention_policies", _retention),
    _Rule("message_ttl_s", "messageTTL", "message_ttl_in_seconds", count_of),
    _Rule("size_quota", "backlogQuotaMap", "backlog_quota_map", _size_quota),
    _Rule("age_quota", "backlogQuotaMap", "backlog_quota_map", _age_quota),
    _Rule("compaction_threshold", "compactionThreshold", "compaction_threshold", count_of),
    _Rule("offload_threshold", "offloadPolicies", "", _member("managedLedgerOffloadThresholdInBytes")),
    _Rule("offload_threshold_s", "offloadPolicies", "", _member("managedLedgerOffloadThresholdInSeconds")),
    _Rule("offload_deletion_lag_ms", "offloadPolicies", "", _member("managedLedgerOffloadDeletionLagInMillis")),
    _Rule("offload_threshold", "", "offload_threshold", count_of),
    _Rule("offload_threshold_s", "", "offload_threshold_in_seconds", count_of),
    _Rule("offload_deletion_lag_ms", "", "offload_deletion_lag_ms", _whole),
    _Rule("inactive_topics", "inactiveTopicPolicies", "inactive_topic_policies", _inactive),
    _Rule("subscription_expiration_minutes", "", "subscription_expiration_time_minutes", count_of),
    _Rule("deduplication_enabled", "deduplicationEnabled", "deduplicationEnabled", _flag),
    _Rule("deduplication_snapshot_interval_s", "deduplicationSnapshotInterval",
          "deduplicationSnapshotIntervalSeconds", count_of),
    _Rule("delayed_delivery", "delayedDelivery", "delayed_delivery_policies", _delayed),
    _Rule("max_message_size", "maxMessageSize", "", count_of),
    _Rule("encryption_required", "", "encryption_required", _flag),
    _Rule("max_producers", "maxProducers", "max_producers_per_topic", count_of),
    _Rule("max_consumers", "maxConsumers", "max_consumers_per_topic", count_of),
    _Rule("max_subscriptions", "maxSubscriptionsPerTopic", "max_subscriptions_per_topic", count_of),
    _Rule("max_consumers_per_subscription", "maxConsumersPerSubscription", "max_consumers_per_subscription", count_of),
    _Rule("max_unacked_per_consumer", "maxUnackedMessagesOnConsumer", "max_unacked_messages_per_consumer", count_of),
    _Rule("max_unacked_per_subscription", "maxUnackedMessagesOnSubscription",
          "max_unacked_messages_per_subscription", count_of),
    _Rule("subscription_types_enabled", "subscriptionTypesEnabled", "subscription_types_enabled", _types),
    _Rule("auto_subscription_creation", "autoSubscriptionCreation", "autoSubscriptionCreationOverride",
          _auto_subscription),
    _Rule("schema_compatibility_strategy", "schemaCompatibilityStrategy", "schema_compatibility_strategy", _strategy),
    _Rule("schema_compatibility_strategy", "", "schema_auto_update_compatibility_strategy", _auto_update),
    _Rule("schema_validation_enforced", "schemaValidationEnforced", "schema_validation_enforced", _flag),
    _Rule("schema_auto_update_allowed", "", "is_allow_auto_update_schema", _flag),
    _Rule("publish_rate", "publishRate", "publishMaxMessageRate.cluster", _publish_rate),
    _Rule("dispatch_rate", "dispatchRate", "topicDispatchRate.cluster", _dispatch_rate),
    _Rule("subscription_dispatch_rate", "subscriptionDispatchRate", "subscriptionDispatchRate.cluster", _dispatch_rate),
    _Rule("subscribe_rate", "subscribeRate", "clusterSubscribeRate.cluster", _subscribe_rate),
)  # fmt: skip
