"""The settings that a subscription obeys, resolved for its topic when the topic is loaded.

Field names are Pulsar's setting names in Python's spelling; each says the original where it differs.
"""

from __future__ import annotations

from dataclasses import dataclass

from magnetar.broker.delivery.dispatch_limits import DispatchLimits


@dataclass(frozen=True, slots=True)
class DispatchSettings:
    """Defaults are those of Apache Pulsar 4.0.8 (rules 5.2.5, 5.4.6, 5.6.11, 5.9.10)."""

    dispatcher_max_read_batch_size: int = 100
    dispatcher_max_read_size_bytes: int = 5 << 20
    dispatcher_max_round_robin_batch_size: int = 20
    max_unacked_messages_per_consumer: int = 50_000
    max_unacked_messages_per_subscription: int = 200_000
    max_consumers_per_subscription: int = 0
    active_consumer_failover_delay_ms: int = 1_000
    """activeConsumerFailoverDelayTimeMillis"""
    active_consumer_failover_consistent_hashing: bool = False
    acknowledgment_at_batch_index_level_enabled: bool = False
    subscription_key_shared_use_consistent_hashing: bool = True
    subscription_key_shared_consistent_hashing_replica_points: int = 100
    key_shared_look_ahead_per_consumer: int = 2_000
    """keySharedLookAheadMsgInReplayThresholdPerConsumer"""
    key_shared_look_ahead_per_subscription: int = 20_000
    """keySharedLookAheadMsgInReplayThresholdPerSubscription"""
    deliver_at_time_strict: bool = False
    """isDelayedDeliveryDeliverAtTimeStrict"""
    auto_skip_non_recoverable_data: bool = False
    unacked_share: int = 0
    """Messages that a subscription may have out while the broker has too many out; 0: it has not."""
    turn_entries_max: int = 2_000
    """Ours: a subscription lets the loop go on to others after so many entries."""
    read_retry_s: float = 1.0
    """Ours: first pause after a failed read; doubles up to a minute."""

    def limits(self) -> DispatchLimits:
        """The part that dispatchers obey."""
        unacked, share = self.max_unacked_messages_per_subscription, self.unacked_share
        of_share = 0 < share < (unacked or share + 1)
        return DispatchLimits(
            read_entries_max=self.dispatcher_max_read_batch_size,
            round_robin_messages=self.dispatcher_max_round_robin_batch_size,
            unacked_per_consumer=self.max_unacked_messages_per_consumer,
            unacked_per_subscription=share if of_share else unacked,
            look_ahead_entries_per_consumer=self.key_shared_look_ahead_per_consumer,
            look_ahead_entries_max=self.key_shared_look_ahead_per_subscription,
            of_share=of_share,
        )
