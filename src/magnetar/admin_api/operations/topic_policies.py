"""Policies of topics, one by one; a partition's are its parent's."""

from __future__ import annotations

from typing import Final

from magnetar.admin_api.models.policies import (
    AutoSubscriptionCreationOverride,
    BacklogQuotaLimit,
    CompatibilityChoice,
    DelayedDeliveryPolicies,
    DispatchRateLimit,
    EntryFilters,
    InactiveTopicPolicies,
    OffloadPolicies,
    PersistencePolicies,
    PublishRateLimit,
    RetentionPolicies,
    SubscribeRateLimit,
    SubscriptionTypeName,
)
from magnetar.admin_api.operation import Operation, Parameter
from magnetar.admin_api.operations.namespace_policies import (
    DELAYED,
    DISPATCH,
    INACTIVE,
    OFFLOAD_POLICIES,
    PERSISTENCE,
    PUBLISH,
    QUOTA,
    QUOTA_TYPE,
    RETENTION,
    SUBSCRIBE,
)
from magnetar.admin_api.operations.policy_rows import PolicyRow, policy_operations
from magnetar.admin_api.operations.topics import TOPIC

_APPLIED: Final = Parameter("applied", bool, "What holds for the topic, from whatever level it comes.", False)
_GLOBAL: Final = Parameter("isGlobal", bool, "The policy of all clusters, which the local one overrides.", False)
_NEGATIVE: Final = {412: "The number must be 0 or more"}
_OF_SUBSCRIPTION: Final = TOPIC + "/{subscription}/dispatchRate"
_TTL: Final = TOPIC + "/messageTTL"
_QUOTA: Final = TOPIC + "/backlogQuota"


def _number(word: str, what: str, unset: int = 200, example: int = 100) -> PolicyRow:
    return PolicyRow(word, int, what, example, unset=unset, errors=_NEGATIVE, applied=unset == 200)


_ROWS: Final = (
    PolicyRow(
        "autoSubscriptionCreation", AutoSubscriptionCreationOverride, "whether subscriptions are created by consumers",
        {"allowAutoSubscriptionCreation": True},
    ),
    _number("compactionThreshold", "the bytes after which it is compacted", example=104857600),
    PolicyRow("deduplicationEnabled", bool, "whether messages are stored once however often they are sent", True),
    _number("deduplicationSnapshotInterval", "the seconds between two snapshots of deduplication", example=120),
    PolicyRow("delayedDelivery", DelayedDeliveryPolicies, "delayed delivery", DELAYED),
    PolicyRow("dispatchRate", DispatchRateLimit, "the dispatch rate", DISPATCH),
    PolicyRow(
        "dispatcherPauseOnAckStatePersistent", bool, "whether dispatch waits while acknowledgements are stored", True,
        unset=0, body=False,
    ),
    PolicyRow("entryFilters", EntryFilters, "the entry filters", {"entryFilterNames": ""}),
    PolicyRow("inactiveTopicPolicies", InactiveTopicPolicies, "when it is deleted because it is unused", INACTIVE),
    _number("maxConsumers", "the most consumers"),
    _number("maxConsumersPerSubscription", "the most consumers of a subscription", unset=204),
    PolicyRow(
        "maxMessageSize", int, "the most bytes of a message", 1048576, unset=204, applied=False,
        errors={412: "It is larger than the broker's limit"},
    ),
    _number("maxProducers", "the most producers"),
    _number("maxSubscriptionsPerTopic", "the most subscriptions", unset=204),
    _number("maxUnackedMessagesOnConsumer", "the most unacknowledged messages of a consumer"),
    _number("maxUnackedMessagesOnSubscription", "the most unacknowledged messages of a subscription"),
    PolicyRow("offloadPolicies", OffloadPolicies, "when ledgers are offloaded", OFFLOAD_POLICIES),
    PolicyRow("persistence", PersistencePolicies, "the copies in Apache BookKeeper", PERSISTENCE),
    PolicyRow("publishRate", PublishRateLimit, "the publish rate", PUBLISH, unset=204, applied=False),
    PolicyRow("replication", list[str], "the clusters", ["standalone"]),
    PolicyRow("replicatorDispatchRate", DispatchRateLimit, "the rate of replication", DISPATCH),
    PolicyRow(
        "retention", RetentionPolicies, "how long acknowledged messages are kept", RETENTION,
        errors={412: "Retention Quota must exceed configured backlog quota for topic."},
    ),
    PolicyRow(
        "schemaCompatibilityStrategy", CompatibilityChoice, "how new schemas must fit earlier ones", "FULL",
        method="PUT",
    ),
    PolicyRow(
        "schemaValidationEnforced", bool, "whether producers must have a schema", True, unset=0, removable=False
    ),
    PolicyRow("subscribeRate", SubscribeRateLimit, "how often a consumer may connect", SUBSCRIBE),
    PolicyRow("subscriptionDispatchRate", DispatchRateLimit, "the dispatch rate of each subscription", DISPATCH),
    PolicyRow(
        "subscriptionTypesEnabled", list[SubscriptionTypeName], "the types of subscriptions that are allowed",
        ["Exclusive", "Shared"], unset=204, applied=False,
    ),
)  # fmt: skip

TOPIC_POLICIES: Final = (
    *policy_operations("topic_policies", TOPIC, _ROWS, "a topic", (_APPLIED, _GLOBAL), (_GLOBAL,)),
    Operation(
        "topic_policies.get_message_ttl", "GET", _TTL,
        "Show the seconds after which unacknowledged messages of a topic expire", query=(_APPLIED, _GLOBAL),
        answer=int, unset=200,
    ),
    Operation(
        "topic_policies.set_message_ttl", "POST", _TTL,
        "Set the seconds after which unacknowledged messages of a topic expire", errors=_NEGATIVE,
        query=(Parameter("messageTTL", int, "The seconds.", required=True, example=86400), _GLOBAL),
    ),
    Operation(
        "topic_policies.remove_message_ttl", "DELETE", _TTL,
        "Remove the seconds after which unacknowledged messages expire from a topic", query=(_GLOBAL,),
    ),
    Operation("topic_policies.remove_all", "DELETE", TOPIC + "/policies", "Remove all policies of a topic"),
    Operation(
        "topic_policies.get_backlog_quotas", "GET", _QUOTA + "Map", "Show the backlog quotas of a topic",
        query=(_APPLIED, _GLOBAL), answer=dict[str, BacklogQuotaLimit],
    ),
    Operation(
        "topic_policies.set_backlog_quota", "POST", _QUOTA, "Set a backlog quota of a topic",
        query=(QUOTA_TYPE, _GLOBAL), body=BacklogQuotaLimit, example=QUOTA,
        errors={412: "Backlog Quota exceeds configured retention quota for topic."},
    ),
    Operation(
        "topic_policies.remove_backlog_quota", "DELETE", _QUOTA, "Remove a backlog quota from a topic",
        query=(QUOTA_TYPE, _GLOBAL),
    ),
    Operation(
        "topic_policies.get_dispatch_rate_of_subscription", "GET", _OF_SUBSCRIPTION,
        "Show the dispatch rate of one subscription", query=(_APPLIED, _GLOBAL), answer=DispatchRateLimit, unset=200,
    ),
    Operation(
        "topic_policies.set_dispatch_rate_of_subscription", "POST", _OF_SUBSCRIPTION,
        "Set the dispatch rate of one subscription", query=(_GLOBAL,), body=DispatchRateLimit, example=DISPATCH,
    ),
    Operation(
        "topic_policies.remove_dispatch_rate_of_subscription", "DELETE", _OF_SUBSCRIPTION,
        "Remove the dispatch rate of one subscription", query=(_GLOBAL,),
    ),
)  # fmt: skip
"""The operations of this group."""
