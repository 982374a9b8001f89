"""Policies of namespaces, one by one."""

from __future__ import annotations

from typing import Final, Literal

from magnetar.admin_api.models.offload import ScannedLedgers
from magnetar.admin_api.models.policies import (
    AutoSubscriptionCreationOverride,
    AutoTopicCreationOverride,
    AutoUpdateChoice,
    BacklogQuotaLimit,
    CompatibilityChoice,
    DelayedDeliveryPolicies,
    DispatchRateLimit,
    EntryFilters,
    InactiveTopicPolicies,
    OffloadPolicies,
    PersistencePolicies,
    PublishRateLimit,
    QuotaTypeName,
    RetentionPolicies,
    SubscribeRateLimit,
    SubscriptionTypeName,
)
from magnetar.admin_api.operation import Operation, Parameter, PlainText
from magnetar.admin_api.operations.namespaces import NAMESPACE
from magnetar.admin_api.operations.policy_rows import PolicyRow, policy_operations

_NEGATIVE: Final = {412: "The number must be 0 or more"}
DISPATCH: Final = {"dispatchThrottlingRateInMsg": 1000, "dispatchThrottlingRateInByte": -1, "ratePeriodInSecond": 1}
PUBLISH: Final = {"publishThrottlingRateInMsg": 1000, "publishThrottlingRateInByte": 1048576}
SUBSCRIBE: Final = {"subscribeThrottlingRatePerConsumer": 10, "ratePeriodInSecond": 30}
RETENTION: Final = {"retentionTimeInMinutes": 1440, "retentionSizeInMB": -1}
INACTIVE: Final = {
    "inactiveTopicDeleteMode": "delete_when_no_subscriptions", "maxInactiveDurationSeconds": 3600,
    "deleteWhileInactive": True,
}  # fmt: skip
DELAYED: Final = {"tickTime": 1000, "active": True, "maxDeliveryDelayInMillis": 0}
PERSISTENCE: Final = {"bookkeeperEnsemble": 1, "bookkeeperWriteQuorum": 1, "bookkeeperAckQuorum": 1}
OFFLOAD_POLICIES: Final = {
    "managedLedgerOffloadDriver": "filesystem", "managedLedgerOffloadThresholdInBytes": 1073741824,
}  # fmt: skip
QUOTA: Final = {"limitSize": 1073741824, "limitTime": -1, "policy": "producer_request_hold"}
QUOTA_TYPE: Final = Parameter("backlogQuotaType", QuotaTypeName, "Which of both quotas.", "destination_storage")


def _number(word: str, what: str, unset: int = 200) -> PolicyRow:
    return PolicyRow(word, int, what, 100, unset=unset, errors=_NEGATIVE)


def _offload(word: str, what: str, *, removable: bool = False, unset: int = 0) -> PolicyRow:
    return PolicyRow(word, int, what, 1073741824, method="PUT", unset=unset, removable=removable)


_ROWS: Final = (
    PolicyRow("antiAffinity", PlainText, "the anti-affinity group", "group-a", unset=204),
    PolicyRow(
        "autoSubscriptionCreation", AutoSubscriptionCreationOverride, "whether subscriptions are created by consumers",
        {"allowAutoSubscriptionCreation": True},
    ),
    PolicyRow(
        "autoTopicCreation", AutoTopicCreationOverride, "whether topics are created by clients",
        {"allowAutoTopicCreation": True, "topicType": "non-partitioned"},
        errors={412: "Invalid configuration for autoTopicCreationOverride"},
    ),
    PolicyRow(
        "compactionThreshold", int, "the bytes after which a topic is compacted", 104857600, method="PUT",
        errors=_NEGATIVE,
    ),
    PolicyRow("deduplication", bool, "whether messages are stored once however often they are sent", True),
    PolicyRow(
        "deduplicationSnapshotInterval", int, "the seconds between two snapshots of deduplication", 120,
        removable=False, errors=_NEGATIVE,
    ),
    PolicyRow("delayedDelivery", DelayedDeliveryPolicies, "delayed delivery", DELAYED),
    PolicyRow("dispatchRate", DispatchRateLimit, "the dispatch rate of each topic", DISPATCH),
    PolicyRow(
        "dispatcherPauseOnAckStatePersistent", bool, "whether dispatch waits while acknowledgements are stored", True,
        unset=0, body=False,
    ),
    PolicyRow(
        "encryptionRequired", bool, "whether producers must encrypt their messages", True, unset=0, removable=False
    ),
    PolicyRow("entryFilters", EntryFilters, "the entry filters", {"entryFilterNames": ""}),
    PolicyRow("inactiveTopicPolicies", InactiveTopicPolicies, "when unused topics are deleted", INACTIVE),
    PolicyRow(
        "isAllowAutoUpdateSchema", bool, "whether clients may register new versions of a schema", True, unset=0,
        removable=False,
    ),
    _number("maxConsumersPerSubscription", "the most consumers of a subscription"),
    _number("maxConsumersPerTopic", "the most consumers of a topic"),
    _number("maxProducersPerTopic", "the most producers of a topic"),
    _number("maxSubscriptionsPerTopic", "the most subscriptions of a topic"),
    _number("maxTopicsPerNamespace", "the most topics", unset=0),
    _number("maxUnackedMessagesPerConsumer", "the most unacknowledged messages of a consumer"),
    _number("maxUnackedMessagesPerSubscription", "the most unacknowledged messages of a subscription"),
    PolicyRow(
        "messageTTL", int, "the seconds after which unacknowledged messages expire", 86400, errors=_NEGATIVE
    ),
    _offload(
        "offloadDeletionLagMs", "the milliseconds that offloaded ledgers are kept here", removable=True, unset=200
    ),
    _offload("offloadThreshold", "the bytes of a topic after which ledgers are offloaded"),
    _offload("offloadThresholdInSeconds", "the seconds after which ledgers are offloaded"),
    PolicyRow("persistence", PersistencePolicies, "the copies in Apache BookKeeper", PERSISTENCE),
    PolicyRow("publishRate", PublishRateLimit, "the publish rate of each topic", PUBLISH),
    PolicyRow(
        "replication", list[str], "the clusters", ["standalone"], unset=0, removable=False, success=200,
        errors={403: "Invalid cluster id"},
    ),
    PolicyRow("replicatorDispatchRate", DispatchRateLimit, "the rate of replication", DISPATCH),
    PolicyRow(
        "retention", RetentionPolicies, "how long acknowledged messages are kept", RETENTION,
        errors={412: "Retention Quota must exceed configured backlog quota for namespace."},
    ),
    PolicyRow(
        "schemaAutoUpdateCompatibilityStrategy", AutoUpdateChoice, "the older form of the compatibility strategy",
        "Full", method="PUT", removable=False, unset=204,
    ),
    PolicyRow(
        "schemaCompatibilityStrategy", CompatibilityChoice, "how new schemas must fit earlier ones", "FULL",
        method="PUT", unset=0, removable=False,
    ),
    PolicyRow(
        "schemaValidationEnforced", bool, "whether producers must have a schema", True, unset=0, removable=False,
        asked=(Parameter("applied", bool, "What holds, by the broker's setting too.", False),),
    ),
    PolicyRow("subscribeRate", SubscribeRateLimit, "how often a consumer may connect", SUBSCRIBE),
    PolicyRow(
        "subscriptionAuthMode", Literal["None", "Prefix"],
        "whether names of subscriptions begin with their role", "None", unset=0, removable=False,
    ),
    PolicyRow("subscriptionDispatchRate", DispatchRateLimit, "the dispatch rate of each subscription", DISPATCH),
    PolicyRow(
        "subscriptionExpirationTime", int, "the minutes after which unused subscriptions are deleted", 10080,
        errors=_NEGATIVE,
    ),
    PolicyRow(
        "subscriptionTypesEnabled", list[SubscriptionTypeName], "the types of subscriptions that are allowed",
        ["Exclusive", "Shared"], unset=0,
    ),
)  # fmt: skip

NAMESPACE_POLICIES: Final = (
    *policy_operations("namespaces", NAMESPACE, _ROWS, "a namespace"),
    Operation(
        "namespaces.get_backlog_quotas", "GET", NAMESPACE + "/backlogQuotaMap",
        "Show the backlog quotas of a namespace", answer=dict[str, BacklogQuotaLimit],
    ),
    Operation(
        "namespaces.set_backlog_quota", "POST", NAMESPACE + "/backlogQuota", "Set a backlog quota of a namespace",
        query=(QUOTA_TYPE,), body=BacklogQuotaLimit, example=QUOTA,
        errors={412: "Backlog Quota exceeds configured retention quota for namespace."},
    ),
    Operation(
        "namespaces.remove_backlog_quota", "DELETE", NAMESPACE + "/backlogQuota",
        "Remove a backlog quota from a namespace", query=(QUOTA_TYPE,),
    ),
    Operation(
        "namespaces.get_offload_policies", "GET", NAMESPACE + "/offloadPolicies",
        "Show when ledgers of a namespace are offloaded", answer=OffloadPolicies, unset=200,
    ),
    Operation(
        "namespaces.set_offload_policies", "POST", NAMESPACE + "/offloadPolicies",
        "Set when ledgers of a namespace are offloaded", body=OffloadPolicies, example=OFFLOAD_POLICIES,
        errors={412: "It is not the object store of this broker"},
    ),
    Operation(
        "namespaces.remove_offload_policies", "DELETE", NAMESPACE + "/removeOffloadPolicies",
        "Remove when ledgers are offloaded from a namespace",
    ),
    Operation(
        "namespaces.scan_offloaded_ledgers", "GET", NAMESPACE + "/scanOffloadedLedgers",
        "List the copies of ledgers in the object store", answer=ScannedLedgers,
    ),
)  # fmt: skip
"""The operations of this group."""
