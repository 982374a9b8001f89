"""Values of policies as requests and answers over REST have them, none of which is the default of a topic."""

from __future__ import annotations

from typing import Any, Final

RATE = {
    "dispatchThrottlingRateInMsg": 100, "dispatchThrottlingRateInByte": 100000, "relativeToPublishRate": False,
    "ratePeriodInSecond": 1,
}  # fmt: skip
PUBLISH_RATE = {"publishThrottlingRateInMsg": 100, "publishThrottlingRateInByte": 100000}
SUBSCRIBE_RATE = {"subscribeThrottlingRatePerConsumer": 10, "ratePeriodInSecond": 30}
PERSISTENCE = {
    "bookkeeperEnsemble": 1, "bookkeeperWriteQuorum": 1, "bookkeeperAckQuorum": 1,
    "managedLedgerMaxMarkDeleteRate": 2.0,
}  # fmt: skip
INACTIVE = {
    "inactiveTopicDeleteMode": "delete_when_no_subscriptions", "maxInactiveDurationSeconds": 3600,
    "deleteWhileInactive": True,
}  # fmt: skip
VALUES: dict[str, Any] = {
    "antiAffinity": "anti1",
    "autoSubscriptionCreation": {"allowAutoSubscriptionCreation": False},
    "autoTopicCreation": {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 3},
    "deduplication": True,
    "deduplicationEnabled": True,
    "delayedDelivery": {"tickTime": 2000, "active": True, "maxDeliveryDelayInMillis": 0},
    "dispatchRate": RATE,
    "dispatcherPauseOnAckStatePersistent": True,
    "encryptionRequired": True,
    "entryFilters": {"entryFilterNames": ""},
    "inactiveTopicPolicies": INACTIVE,
    "isAllowAutoUpdateSchema": False,
    "persistence": PERSISTENCE,
    "publishRate": PUBLISH_RATE,
    "replication": ["standalone"],
    "replicatorDispatchRate": RATE,
    "retention": {"retentionTimeInMinutes": 10, "retentionSizeInMB": 1000},
    "schemaAutoUpdateCompatibilityStrategy": "Full",
    "schemaCompatibilityStrategy": "FORWARD",
    "schemaValidationEnforced": True,
    "subscribeRate": SUBSCRIBE_RATE,
    "subscriptionAuthMode": "Prefix",
    "subscriptionDispatchRate": RATE,
    "subscriptionTypesEnabled": ["Exclusive", "Shared"],
}  # fmt: skip
"""Values of policies that are not numbers."""
NEVER_APPLIED: Final = frozenset(
    (
        "maxMessageSize", "publishRate", "maxSubscriptionsPerTopic", "maxConsumersPerSubscription",
        "subscriptionTypesEnabled", "deduplicationSnapshotInterval",
    )
)  # fmt: skip
"""Policies of a topic that no namespace has, and of which ``?applied=true`` shows the topic's own."""
