"""The settings of the broker that its topics obey, as topics want them."""

from __future__ import annotations

from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.broker.topic.publish.deduplication import DeduplicationSettings
from magnetar.broker.topic.publish.publish_checks import PublishSettings
from magnetar.config.settings import Settings


def publish_settings(settings: Settings) -> PublishSettings:
    """The settings that apply to producers."""
    return PublishSettings(
        DeduplicationSettings(
            settings.brokerDeduplicationMaxNumberOfProducers,
            settings.brokerDeduplicationProducerInactivityTimeoutMinutes * 60_000,
            settings.brokerDeduplicationStreamInactivityTimeoutMinutes * 60_000,
        ),
        settings.maxSameAddressProducersPerTopic,
    )


def dispatch_settings(settings: Settings, unacked_share: int = 0) -> DispatchSettings:
    """The settings that apply to subscriptions; ``unacked_share`` while the broker has too much out."""
    return DispatchSettings(
        dispatcher_max_read_batch_size=settings.dispatcherMaxReadBatchSize,
        dispatcher_max_read_size_bytes=settings.dispatcherMaxReadSizeBytes,
        dispatcher_max_round_robin_batch_size=settings.dispatcherMaxRoundRobinBatchSize,
        max_unacked_messages_per_consumer=settings.maxUnackedMessagesPerConsumer,
        max_unacked_messages_per_subscription=settings.maxUnackedMessagesPerSubscription,
        active_consumer_failover_delay_ms=settings.activeConsumerFailoverDelayTimeMillis,
        active_consumer_failover_consistent_hashing=settings.activeConsumerFailoverConsistentHashing,
        acknowledgment_at_batch_index_level_enabled=settings.acknowledgmentAtBatchIndexLevelEnabled,
        subscription_key_shared_use_consistent_hashing=settings.subscriptionKeySharedUseConsistentHashing,
        subscription_key_shared_consistent_hashing_replica_points=(
            settings.subscriptionKeySharedConsistentHashingReplicaPoints
        ),
        key_shared_look_ahead_per_consumer=settings.keySharedLookAheadMsgInReplayThresholdPerConsumer,
        key_shared_look_ahead_per_subscription=settings.keySharedLookAheadMsgInReplayThresholdPerSubscription,
        auto_skip_non_recoverable_data=settings.autoSkipNonRecoverableData,
        unacked_share=unacked_share,
        deliver_at_time_strict=settings.isDelayedDeliveryDeliverAtTimeStrict,
    )
