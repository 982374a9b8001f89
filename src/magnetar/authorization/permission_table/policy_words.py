"""Which policy a word in a path is: ``.../retention`` is RETENTION, as in Apache Pulsar.

A word that is missing here counts as ALL, which needs as much: policies are the tenant's administrators' (rule 12.7).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from magnetar.authorization.operations import PolicyName

NAMESPACE_POLICIES: Final[Mapping[str, PolicyName]] = {
    "antiAffinity": PolicyName.ANTI_AFFINITY,
    "autoSubscriptionCreation": PolicyName.AUTO_SUBSCRIPTION_CREATION,
    "autoTopicCreation": PolicyName.AUTO_TOPIC_CREATION,
    "compactionThreshold": PolicyName.COMPACTION,
    "deduplication": PolicyName.DEDUPLICATION,
    "deduplicationSnapshotInterval": PolicyName.DEDUPLICATION_SNAPSHOT,
    "delayedDelivery": PolicyName.DELAYED_DELIVERY,
    "dispatcherPauseOnAckStatePersistent": PolicyName.DISPATCHER_PAUSE_ON_ACK_STATE_PERSISTENT,
    "encryptionRequired": PolicyName.ENCRYPTION,
    "entryFilters": PolicyName.ENTRY_FILTERS,
    "inactiveTopicPolicies": PolicyName.INACTIVE_TOPIC,
    **dict.fromkeys(("maxConsumersPerSubscription", "maxConsumersPerTopic"), PolicyName.MAX_CONSUMERS),
    "maxProducersPerTopic": PolicyName.MAX_PRODUCERS,
    "maxSubscriptionsPerTopic": PolicyName.MAX_SUBSCRIPTIONS,
    "maxTopicsPerNamespace": PolicyName.MAX_TOPICS,
    **dict.fromkeys(("maxUnackedMessagesPerConsumer", "maxUnackedMessagesPerSubscription"), PolicyName.MAX_UNACKED),
    **dict.fromkeys(("offloadDeletionLagMs", "offloadThreshold", "offloadThresholdInSeconds"), PolicyName.OFFLOAD),
    "persistence": PolicyName.PERSISTENCE,
    **dict.fromkeys(("dispatchRate", "publishRate", "subscribeRate", "subscriptionDispatchRate"), PolicyName.RATE),
    "replication": PolicyName.REPLICATION,
    "replicatorDispatchRate": PolicyName.REPLICATION_RATE,
    "retention": PolicyName.RETENTION,
    **dict.fromkeys(
        (
            "isAllowAutoUpdateSchema",
            "schemaAutoUpdateCompatibilityStrategy",
            "schemaCompatibilityStrategy",
            "schemaValidationEnforced",
        ),
        PolicyName.SCHEMA_COMPATIBILITY_STRATEGY,
    ),
    **dict.fromkeys(("subscriptionAuthMode", "subscriptionTypesEnabled"), PolicyName.SUBSCRIPTION_AUTH_MODE),
    "subscriptionExpirationTime": PolicyName.SUBSCRIPTION_EXPIRATION_TIME,
    "messageTTL": PolicyName.TTL,
}
"""By the last part of ``/admin/v2/namespaces/{tenant}/{namespace}/{policy}``."""

TOPIC_POLICIES: Final[Mapping[str, PolicyName]] = {
    "autoSubscriptionCreation": PolicyName.AUTO_SUBSCRIPTION_CREATION,
    "compactionThreshold": PolicyName.COMPACTION,
    "deduplicationEnabled": PolicyName.DEDUPLICATION,
    "deduplicationSnapshotInterval": PolicyName.DEDUPLICATION_SNAPSHOT,
    "delayedDelivery": PolicyName.DELAYED_DELIVERY,
    "dispatcherPauseOnAckStatePersistent": PolicyName.DISPATCHER_PAUSE_ON_ACK_STATE_PERSISTENT,
    "entryFilters": PolicyName.ENTRY_FILTERS,
    "inactiveTopicPolicies": PolicyName.INACTIVE_TOPIC,
    **dict.fromkeys(("maxConsumers", "maxConsumersPerSubscription"), PolicyName.MAX_CONSUMERS),
    "maxProducers": PolicyName.MAX_PRODUCERS,
    "maxSubscriptionsPerTopic": PolicyName.MAX_SUBSCRIPTIONS,
    "offloadPolicies": PolicyName.OFFLOAD,
    **dict.fromkeys(("maxUnackedMessagesOnConsumer", "maxUnackedMessagesOnSubscription"), PolicyName.MAX_UNACKED),
    "persistence": PolicyName.PERSISTENCE,
    **dict.fromkeys(("dispatchRate", "publishRate", "subscribeRate", "subscriptionDispatchRate"), PolicyName.RATE),
    "replication": PolicyName.REPLICATION,
    "replicatorDispatchRate": PolicyName.REPLICATION_RATE,
    "retention": PolicyName.RETENTION,
    **dict.fromkeys(
        ("schemaCompatibilityStrategy", "schemaValidationEnforced"), PolicyName.SCHEMA_COMPATIBILITY_STRATEGY
    ),
    "subscriptionTypesEnabled": PolicyName.SUBSCRIPTION_AUTH_MODE,
    "messageTTL": PolicyName.TTL,
    "maxMessageSize": PolicyName.ALL,
}
"""By the last part of ``{topic path}/{policy}``."""
