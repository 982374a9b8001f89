"""Settings that are defaults of policies: a policy of a namespace or of a topic overrides them.

Only :mod:`magnetar.broker.policies` reads these, and answers what applies to one topic. Settings of the periodic runs
that carry out policies (how often, whether at all) are here, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from magnetar.config.setting_field import INT_MAX, LONG_MAX, setting
from magnetar.model.policies import PARTITIONS_MAX

SUBSCRIPTION_TYPES: Final = ("Exclusive", "Shared", "Failover", "Key_Shared")

_KEPT: Final = "How long messages stay"
_LIMITS: Final = "Limits of a topic"
_SCHEMA: Final = "Schemas"
_RATES: Final = "Rates"
_TOPICS: Final = "Topics"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySettings:
    """The part of :class:`magnetar.config.settings.Settings` that policies override."""

    # topics and subscriptions that are created and deleted automatically
    allowAutoTopicCreation: bool = setting(True, "Whether a topic is created when a client first uses it.", _TOPICS)
    allowAutoTopicCreationType: Literal["partitioned", "non-partitioned"] = setting(
        "non-partitioned", "Which kind of topic that is.", _TOPICS
    )
    defaultNumPartitions: int = setting(
        1,
        "Partitions of a topic created that way, if partitioned. 0: no partitioned topic is created that way.",
        _TOPICS,
        0,
        PARTITIONS_MAX,
    )
    allowAutoSubscriptionCreation: bool = setting(
        True, "Whether a durable subscription is created when a consumer first asks for it.", _TOPICS
    )
    strictlyVerifySubscriptionName: bool = setting(
        False,
        "Whether names of new subscriptions have letters, digits and `-=:._` only. Those that are there go on, and the "
        "one that a producer asks for is not looked at, as in Apache Pulsar.",
        _TOPICS,
    )
    topicLevelPoliciesEnabled: bool = setting(
        True, "Whether a topic may have policies of its own; if not, their REST routes answer 405.", _TOPICS
    )
    systemTopicEnabled: bool = setting(
        True, "Whether system topics exist. Topic policies do not need them here.", _TOPICS
    )
    brokerDeleteInactiveTopicsEnabled: bool = setting(True, "Whether unused topics are deleted.", _TOPICS)
    brokerDeleteInactiveTopicsFrequencySeconds: int = setting(
        60, "Seconds between two looks for them.", _TOPICS, 1, INT_MAX
    )
    brokerDeleteInactiveTopicsMaxInactiveDurationSeconds: int | None = setting(
        None, "Seconds without use after which a topic is inactive; empty: as the frequency.", _TOPICS, 1, INT_MAX
    )
    brokerDeleteInactiveTopicsMode: Literal["delete_when_no_subscriptions", "delete_when_subscriptions_caught_up"] = (
        setting(
            "delete_when_no_subscriptions",
            "What a topic must not have to be deleted, beside connected clients.",
            _TOPICS,
        )
    )
    brokerDeleteInactivePartitionedTopicMetadataEnabled: bool = setting(
        False, "Whether the partitioned topic goes too when its last partition has gone that way.", _TOPICS
    )
    subscriptionExpirationTimeMinutes: int = setting(
        0, "Minutes after which a subscription without consumers and progress is deleted; 0 never.", _TOPICS, 0, INT_MAX
    )
    subscriptionExpiryCheckIntervalInMinutes: int = setting(
        5, "Minutes between two looks for expired subscriptions.", _TOPICS, 1, INT_MAX
    )
    subscriptionTypesEnabled: str = setting(
        "Failover,Shared,Key_Shared,Exclusive", "Subscription types that consumers may ask for.", _TOPICS,
        members=SUBSCRIPTION_TYPES,
    )  # fmt: skip
    encryptionRequireOnProducer: bool = setting(False, "Whether producers that do not encrypt are refused.", _TOPICS)

    # how long messages stay
    defaultRetentionTimeInMinutes: int = setting(
        0, "Minutes that acknowledged messages are kept; -1 without limit, 0 together with size 0: not at all.",
        _KEPT, -1, INT_MAX,
    )  # fmt: skip
    defaultRetentionSizeInMB: int = setting(
        0, "MiB of acknowledged messages kept per topic; -1 without limit.", _KEPT, -1, INT_MAX
    )
    retentionCheckIntervalInSeconds: int = setting(
        120, "Seconds between two passes that let go of messages which retention no longer keeps.", _KEPT, 1, INT_MAX
    )
    ttlDurationDefaultInSeconds: int = setting(
        0, "Seconds after which an unacknowledged message counts as acknowledged; 0 never.", _KEPT, 0, INT_MAX
    )
    messageExpiryCheckIntervalInMinutes: int = setting(
        5, "Minutes between two passes that expire messages.", _KEPT, 1, INT_MAX
    )
    additionalSystemCursorNames: str = setting(
        "", "Subscriptions, separated by commas, on which messages do not expire by their time to live.", _KEPT
    )
    backlogQuotaCheckEnabled: bool = setting(True, "Whether backlog quotas are checked.", _KEPT)
    backlogQuotaCheckIntervalInSeconds: int = setting(60, "Seconds between two checks.", _KEPT, 1, INT_MAX)
    backlogQuotaDefaultLimitGB: float = setting(
        -1.0, "GiB of backlog a topic may have; -1 without limit. Bytes count if both are given. "
        "Apache Pulsar's standalone.conf says 10.", _KEPT, -1, INT_MAX,
    )  # fmt: skip
    backlogQuotaDefaultLimitBytes: int = setting(
        -1, "Bytes of backlog a topic may have; -1 without limit.", _KEPT, -1, LONG_MAX
    )
    backlogQuotaDefaultLimitSecond: int = setting(
        -1, "Seconds that the oldest message of a backlog may be old; -1 without limit.", _KEPT, -1, INT_MAX
    )
    backlogQuotaDefaultRetentionPolicy: Literal[
        "producer_request_hold", "producer_exception", "consumer_backlog_eviction"
    ] = setting("producer_request_hold", "What happens when a backlog exceeds its quota.", _KEPT)

    # offloading
    managedLedgerOffloadAutoTriggerSizeThresholdBytes: int = setting(
        -1, "Bytes of a topic that stay here; older closed ledgers are offloaded by themselves. -1: not by size.",
        _KEPT, -1, LONG_MAX,
    )  # fmt: skip
    managedLedgerOffloadThresholdInSeconds: int = setting(
        -1, "Seconds after which a closed ledger is offloaded by itself; -1: not by age.", _KEPT, -1, LONG_MAX
    )
    managedLedgerOffloadDeletionLagMs: int = setting(
        14_400_000, "Milliseconds that the local entries of an offloaded ledger stay; -1 for ever.", _KEPT, -1, LONG_MAX
    )

    # deduplication, delayed delivery, compaction
    brokerDeduplicationEnabled: bool = setting(False, "Whether messages that are sent twice are kept once.", _TOPICS)
    brokerDeduplicationSnapshotIntervalSeconds: int = setting(
        120, "Kept and shown; deduplication here needs no snapshots.", _TOPICS, 0, INT_MAX, effect=False
    )
    delayedDeliveryEnabled: bool = setting(True, "Whether messages may be sent to be delivered later.", _TOPICS)
    delayedDeliveryTickTimeMillis: int = setting(
        1000, "Milliseconds by which delivery may be late (or early, unless strict).", _TOPICS, 1, INT_MAX
    )
    delayedDeliveryMaxDelayInMillis: int = setting(
        0, "The longest delay of a message that is accepted, in milliseconds; 0 without limit.", _TOPICS, 0, LONG_MAX
    )
    brokerServiceCompactionThresholdInBytes: int = setting(
        0, "Bytes of backlog since the last compaction at which a topic is compacted; 0 never.", _TOPICS, 0, LONG_MAX
    )
    brokerServiceCompactionMonitorIntervalInSeconds: int = setting(
        60, "Seconds between two looks at whether topics have reached that.", _TOPICS, 1, INT_MAX
    )
    subscriptionBacklogScanMaxEntries: int = setting(
        10_000, "Entries that analyzeBacklog reads of one subscription at most.", _TOPICS, 1, INT_MAX
    )
    topicCompactionRetainNullKey: bool = setting(
        False, "Whether compaction keeps messages without a key; otherwise it drops them.", _TOPICS
    )

    # limits of a topic
    maxProducersPerTopic: int = setting(0, "Most producers of a topic; 0 without limit.", _LIMITS, 0, INT_MAX)
    maxConsumersPerTopic: int = setting(0, "Most consumers of a topic; 0 without limit.", _LIMITS, 0, INT_MAX)
    maxSubscriptionsPerTopic: int = setting(0, "Most subscriptions of a topic; 0 without limit.", _LIMITS, 0, INT_MAX)
    maxConsumersPerSubscription: int = setting(
        0, "Most consumers of a subscription; 0 without limit.", _LIMITS, 0, INT_MAX
    )
    maxUnackedMessagesPerConsumer: int = setting(
        50_000, "Unacknowledged messages at which a consumer gets no more; 0 without limit.", _LIMITS, 0, INT_MAX
    )
    maxUnackedMessagesPerSubscription: int = setting(
        200_000, "Unacknowledged messages at which a subscription pauses; 0 without limit.", _LIMITS, 0, INT_MAX
    )
    maxTopicsPerNamespace: int = setting(0, "Most topics of a namespace; 0 without limit.", _LIMITS, 0, INT_MAX)

    # schemas
    schemaCompatibilityStrategy: Literal[
        "UNDEFINED",
        "ALWAYS_INCOMPATIBLE",
        "ALWAYS_COMPATIBLE",
        "BACKWARD",
        "FORWARD",
        "FULL",
        "BACKWARD_TRANSITIVE",
        "FORWARD_TRANSITIVE",
        "FULL_TRANSITIVE",
    ] = setting("FULL", "What a new version of a schema must be.", _SCHEMA)
    systemTopicSchemaCompatibilityStrategy: Literal[
        "UNDEFINED",
        "ALWAYS_INCOMPATIBLE",
        "ALWAYS_COMPATIBLE",
        "BACKWARD",
        "FORWARD",
        "FULL",
        "BACKWARD_TRANSITIVE",
        "FORWARD_TRANSITIVE",
        "FULL_TRANSITIVE",
    ] = setting("ALWAYS_COMPATIBLE", "The same for system topics.", _SCHEMA)
    isSchemaValidationEnforced: bool = setting(
        False, "Whether producers without a schema are refused where a topic has one.", _SCHEMA
    )
    isAllowAutoUpdateSchemaEnabled: bool = setting(
        True, "Whether clients may register new versions of a schema by connecting.", _SCHEMA
    )

    # rates
    maxPublishRatePerTopicInMessages: int = setting(
        0, "Messages per second that may be published to a topic; 0 without limit.", _RATES, 0, INT_MAX
    )
    maxPublishRatePerTopicInBytes: int = setting(
        0, "Bytes per second that may be published to a topic; 0 without limit.", _RATES, 0, LONG_MAX
    )
    dispatchThrottlingRatePerTopicInMsg: int = setting(
        0, "Messages per second that a topic sends to consumers; 0 without limit.", _RATES, 0, INT_MAX
    )
    dispatchThrottlingRatePerTopicInByte: int = setting(
        0, "Bytes per second that a topic sends to consumers; 0 without limit.", _RATES, 0, LONG_MAX
    )
    dispatchThrottlingRatePerSubscriptionInMsg: int = setting(
        0, "Messages per second that a subscription sends; 0 without limit.", _RATES, 0, INT_MAX
    )
    dispatchThrottlingRatePerSubscriptionInByte: int = setting(
        0, "Bytes per second that a subscription sends; 0 without limit.", _RATES, 0, LONG_MAX
    )
    dispatchThrottlingRateRelativeToPublishRate: bool = setting(
        False, "Whether the dispatch rates come on top of the rate at which messages are published.", _RATES
    )
    dispatchThrottlingRateInMsg: int = setting(
        0, "Messages per second that all topics together send to consumers; 0 without limit.", _RATES, 0, INT_MAX
    )
    dispatchThrottlingRateInByte: int = setting(
        0, "Bytes per second that all topics together send to consumers; 0 without limit.", _RATES, 0, LONG_MAX
    )
    dispatchThrottlingOnBatchMessageEnabled: bool = setting(
        False, "Whether a batch counts as one message where dispatching is limited.", _RATES
    )
    dispatchThrottlingOnNonBacklogConsumerEnabled: bool = setting(
        True, "Whether subscriptions with a backlog of at most 1000 entries are limited as well.", _RATES
    )
    brokerPublisherThrottlingMaxMessageRate: int = setting(
        0, "Messages per second that may be published to all topics together; 0 without limit.", _RATES, 0, INT_MAX
    )
    brokerPublisherThrottlingMaxByteRate: int = setting(
        0, "Bytes per second that may be published to all topics together; 0 without limit.", _RATES, 0, LONG_MAX
    )
    subscribeThrottlingRatePerConsumer: int = setting(
        0, "Subscribe requests that one consumer may make per period; 0 without limit.", _RATES, 0, INT_MAX
    )
    subscribeRatePeriodPerConsumerInSecond: int = setting(30, "That period in seconds.", _RATES, 1, INT_MAX)
