"""The few numbers of each topic that /metrics shows, without the cost of whole statistics."""

from __future__ import annotations

from magnetar.admin.values.counters import CompactionCounters, SubscriptionCounters, TopicCounters
from magnetar.broker.topic.compaction.compactor import Compactor
from magnetar.broker.topic.subscription.backlog import bytes_behind
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.broker.topic.topic import Topic
from magnetar.broker.upkeep.rates import Rates


def topic_counters(topic: Topic, rates: Rates) -> TopicCounters:
    """The numbers of one loaded topic at this moment."""
    rate = rates.of(topic)
    subscriptions = [_subscription(subscription, rates) for subscription in topic.subscriptions.values()]
    return TopicCounters(
        topic=topic.name,
        producers=len(topic.producers),
        consumers=topic.consumer_count(),
        messages_in=topic.msg_in,
        bytes_in=topic.bytes_in,
        rate_in=rate.messages_in,
        rate_out=rate.messages_out,
        throughput_in=rate.bytes_in,
        throughput_out=rate.bytes_out,
        backlog=sum(counted.backlog for counted in subscriptions),
        backlog_bytes=bytes_behind(topic.log, topic.slowest()),
        storage_bytes=topic.log.retained_bytes(),
        subscriptions=subscriptions,
        compaction=None if topic.compactor is None else _compaction(topic.compactor),
    )


def _compaction(compactor: Compactor) -> CompactionCounters:
    stats, view = compactor.stats, compactor.view
    return CompactionCounters(
        stats.removed, stats.successes, stats.failures, stats.duration_ms,
        entries=0 if view is None else view.entries, bytes=0 if view is None else view.bytes,
    )  # fmt: skip


def _subscription(subscription: Subscription, rates: Rates) -> SubscriptionCounters:
    counted, rate, dispatcher = subscription.counters(), rates.of(subscription), subscription.dispatcher
    backlog = subscription.cursor.backlog()
    return SubscriptionCounters(
        name=subscription.name,
        consumers=len(subscription.consumers),
        backlog=backlog,
        backlog_due=backlog - subscription.delayed_entries(),
        unacked=0 if dispatcher is None else dispatcher.unacked,
        messages_out=counted.messages_out,
        bytes_out=counted.bytes_out,
        rate_out=rate.messages_out,
        throughput_out=rate.bytes_out,
        rate_redelivered=rate.redelivered,
        rate_acked=rate.acked,
    )
