"""Policies that hold for one topic, from the topic itself, its namespace or the broker (rules 8.4, 8.5).

Values only. :mod:`magnetar.broker.policies` makes them; a loaded topic has one and gets a new one when something
changes, so features compare what they had with what they get.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple

from magnetar.model.policies import Retention


class QuotaPolicy(Enum):
    """What happens when a backlog exceeds its quota (rule 4.6.2)."""

    HOLD = "producer_request_hold"
    EXCEPTION = "producer_exception"
    EVICT = "consumer_backlog_eviction"


class BacklogQuota(NamedTuple):
    """One type of quota; ``limit`` in bytes (destination_storage) or seconds (message_age), -1 without limit."""

    limit: int = -1
    policy: QuotaPolicy = QuotaPolicy.HOLD


class DelayedDelivery(NamedTuple):
    """Messages to be delivered later (rules of 7)."""

    active: bool = True
    tick_ms: int = 1000
    max_delay_ms: int = 0
    """The longest that is accepted; 0 without limit."""


class InactiveTopics(NamedTuple):
    """When a topic without producers and subscriptions is deleted (rule 4.7.3)."""

    delete: bool = True
    max_inactive_s: int = 60
    caught_up_is_enough: bool = False
    """delete_when_subscriptions_caught_up; False: only without subscriptions."""


class PublishRate(NamedTuple):
    """Limits of publishing per second; 0 or less without limit."""

    messages: int = 0
    bytes: int = 0


class DispatchRate(NamedTuple):
    """Limits of dispatching per period; 0 or less without limit."""

    messages: int = 0
    bytes: int = 0
    period_s: int = 1
    relative_to_publish_rate: bool = False


class SubscribeRate(NamedTuple):
    """Subscribe requests of one consumer per period; 0 or less without limit."""

    per_consumer: int = 0
    period_s: int = 30


class ResourceGroup(NamedTuple):
    """The rates that all namespaces of a group share, as (messages, bytes) per second; 0 or less without limit."""

    name: str
    publish: tuple[int, int] = (0, 0)
    dispatch: tuple[int, int] = (0, 0)


ALL_SUBSCRIPTION_TYPES: Final = frozenset(("Exclusive", "Shared", "Failover", "Key_Shared"))


_NO_RATES: Final[Mapping[str, DispatchRate]] = MappingProxyType({})


class TopicPolicies(NamedTuple):
    """Immutable. Of counts, 0 means without limit. The defaults are Apache Pulsar's."""

    # how long messages stay
    retention: Retention = Retention(0, 0)
    message_ttl_s: int = 0
    """0: messages do not expire."""
    size_quota: BacklogQuota = BacklogQuota()
    """destination_storage."""
    age_quota: BacklogQuota = BacklogQuota()
    """message_age."""
    compaction_threshold: int = 0
    """Bytes; 0: never by itself."""
    offload_threshold: int = -1
    """Bytes that stay in the broker's directory when ledgers are offloaded; negative: size decides nothing."""
    offload_threshold_s: int = -1
    """Seconds after which a closed ledger is offloaded; negative: age decides nothing."""
    offload_deletion_lag_ms: int = 14_400_000
    """How long the local entries stay when their ledger was offloaded; negative: for ever."""
    inactive_topics: InactiveTopics = InactiveTopics()
    subscription_expiration_minutes: int = 0
    """0: never."""

    # what is done to messages
    deduplication_enabled: bool = False
    deduplication_snapshot_interval_s: int = 120
    delayed_delivery: DelayedDelivery = DelayedDelivery()
    max_message_size: int = 0
    """0: only the broker's own limit, which holds in any case."""
    encryption_required: bool = False

    # who may come
    max_producers: int = 0
    max_consumers: int = 0
    max_subscriptions: int = 0
    max_consumers_per_subscription: int = 0
    max_unacked_per_consumer: int = 50_000
    max_unacked_per_subscription: int = 200_000
    subscription_types_enabled: frozenset[str] = ALL_SUBSCRIPTION_TYPES
    """Names of ``SubType``: Exclusive, Shared, Failover, Key_Shared."""
    auto_subscription_creation: bool = True

    # schemas
    schema_compatibility_strategy: str = "FULL"
    schema_validation_enforced: bool = False
    schema_auto_update_allowed: bool = True

    # rates
    publish_rate: PublishRate = PublishRate()
    dispatch_rate: DispatchRate = DispatchRate()
    """The limit of the whole topic."""
    subscription_dispatch_rate: DispatchRate = DispatchRate()
    """The limit of each subscription that is not in ``dispatch_rates``."""
    dispatch_rates: Mapping[str, DispatchRate] = _NO_RATES
    """Limits by subscription, where one has its own."""
    subscribe_rate: SubscribeRate = SubscribeRate()
    resource_group: ResourceGroup | None = None
    """The group that the topic's namespace is in."""

    def dispatch_rate_of(self, subscription: str) -> DispatchRate:
        """Return what one subscription may send."""
        return self.dispatch_rates.get(subscription, self.subscription_dispatch_rate)
