"""The policies that the broker's settings give to topics and namespaces without policies of their own."""

from __future__ import annotations

from magnetar.broker.policies.policy_rules import CAUGHT_UP
from magnetar.broker.throttling.rate_limit import RateAmounts
from magnetar.broker.throttling.shared_limits import BrokerRates
from magnetar.config.settings import Settings
from magnetar.model.policies import Retention
from magnetar.model.topic_policies import (
    BacklogQuota,
    DelayedDelivery,
    DispatchRate,
    InactiveTopics,
    PublishRate,
    QuotaPolicy,
    SubscribeRate,
    TopicPolicies,
)


def of_broker(settings: Settings) -> TopicPolicies:
    """The policies where neither topic nor namespace has any."""
    frequency = settings.brokerDeleteInactiveTopicsFrequencySeconds
    quota_bytes = settings.backlogQuotaDefaultLimitBytes
    if quota_bytes < 0 < settings.backlogQuotaDefaultLimitGB:
        quota_bytes = int(settings.backlogQuotaDefaultLimitGB * (1 << 30))
    policy = QuotaPolicy(settings.backlogQuotaDefaultRetentionPolicy)
    relative = settings.dispatchThrottlingRateRelativeToPublishRate
    return TopicPolicies(
        retention=Retention(settings.defaultRetentionTimeInMinutes, settings.defaultRetentionSizeInMB),
        message_ttl_s=settings.ttlDurationDefaultInSeconds,
        size_quota=BacklogQuota(quota_bytes, policy),
        age_quota=BacklogQuota(settings.backlogQuotaDefaultLimitSecond, policy),
        compaction_threshold=settings.brokerServiceCompactionThresholdInBytes,
        offload_threshold=settings.managedLedgerOffloadAutoTriggerSizeThresholdBytes,
        offload_threshold_s=settings.managedLedgerOffloadThresholdInSeconds,
        offload_deletion_lag_ms=settings.managedLedgerOffloadDeletionLagMs,
        inactive_topics=InactiveTopics(
            settings.brokerDeleteInactiveTopicsEnabled,
            settings.brokerDeleteInactiveTopicsMaxInactiveDurationSeconds or frequency,
            settings.brokerDeleteInactiveTopicsMode == CAUGHT_UP,
        ),
        subscription_expiration_minutes=settings.subscriptionExpirationTimeMinutes,
        deduplication_enabled=settings.brokerDeduplicationEnabled,
        deduplication_snapshot_interval_s=settings.brokerDeduplicationSnapshotIntervalSeconds,
        delayed_delivery=DelayedDelivery(
            settings.delayedDeliveryEnabled,
            settings.delayedDeliveryTickTimeMillis,
            settings.delayedDeliveryMaxDelayInMillis,
        ),
        encryption_required=settings.encryptionRequireOnProducer,
        max_producers=settings.maxProducersPerTopic,
        max_consumers=settings.maxConsumersPerTopic,
        max_subscriptions=settings.maxSubscriptionsPerTopic,
        max_consumers_per_subscription=settings.maxConsumersPerSubscription,
        max_unacked_per_consumer=settings.maxUnackedMessagesPerConsumer,
        max_unacked_per_subscription=settings.maxUnackedMessagesPerSubscription,
        subscription_types_enabled=frozenset(settings.subscriptionTypesEnabled.split(",")),
        auto_subscription_creation=settings.allowAutoSubscriptionCreation,
        schema_compatibility_strategy=settings.schemaCompatibilityStrategy,
        schema_validation_enforced=settings.isSchemaValidationEnforced,
        schema_auto_update_allowed=settings.isAllowAutoUpdateSchemaEnabled,
        publish_rate=PublishRate(settings.maxPublishRatePerTopicInMessages, settings.maxPublishRatePerTopicInBytes),
        dispatch_rate=DispatchRate(
            settings.dispatchThrottlingRatePerTopicInMsg, settings.dispatchThrottlingRatePerTopicInByte, 1, relative
        ),
        subscription_dispatch_rate=DispatchRate(
            settings.dispatchThrottlingRatePerSubscriptionInMsg,
            settings.dispatchThrottlingRatePerSubscriptionInByte,
            1,
            relative,
        ),
        subscribe_rate=SubscribeRate(
            settings.subscribeThrottlingRatePerConsumer, settings.subscribeRatePeriodPerConsumerInSecond
        ),
    )


def broker_rates(settings: Settings) -> BrokerRates:
    """What limits all topics of the broker together."""
    return BrokerRates(
        RateAmounts(settings.brokerPublisherThrottlingMaxMessageRate, settings.brokerPublisherThrottlingMaxByteRate),
        RateAmounts(settings.dispatchThrottlingRateInMsg, settings.dispatchThrottlingRateInByte),
        entries_for_messages=settings.dispatchThrottlingOnBatchMessageEnabled,
        also_caught_up=settings.dispatchThrottlingOnNonBacklogConsumerEnabled,
    )


def for_system_topics(broker: TopicPolicies, settings: Settings) -> TopicPolicies:
    """The policies of system topics, which are not limited, expired or deleted (rule 8.2)."""
    return TopicPolicies(
        schema_compatibility_strategy=settings.systemTopicSchemaCompatibilityStrategy,
        inactive_topics=InactiveTopics(delete=False),
        max_unacked_per_consumer=broker.max_unacked_per_consumer,
        max_unacked_per_subscription=broker.max_unacked_per_subscription,
    )
