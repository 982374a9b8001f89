"""The numbers of each topic that /metrics shows, without the cost of whole statistics."""

from __future__ import annotations

from magnetar.admin.local_broker.stats.client_counters import consumer_counters, producer_counters
from magnetar.admin.local_broker.stats.subscription_stats import SUBSCRIPTIONS_PER_TURN, throttled
from magnetar.admin.values.counters import (
    CompactionCounters,
    CounterOptions,
    CursorCounters,
    StoredCounters,
    SubscriptionCounters,
    TopicCounters,
    TransactionCounters,
    WriteCounters,
)
from magnetar.broker.topic.compaction.compactor import Compactor
from magnetar.broker.topic.subscription.backlog import bytes_behind
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.broker.topic.throughput import Throughput
from magnetar.broker.topic.topic import Topic
from magnetar.broker.upkeep.rates import Rates
from magnetar.model.system_topics import is_system_topic
from magnetar.runtime.tasks import in_turns
from magnetar.storage.ledgers.managed_ledger import ManagedLedger

_MEGABYTE = 1 << 20


async def topic_counters(topic: Topic, rates: Rates, options: CounterOptions) -> TopicCounters | None:
    """The numbers of one loaded topic; others have turns where it has many subscriptions.

    None if the topic is closed meanwhile.
    """
    log = topic.log
    subscriptions: list[SubscriptionCounters] = []
    paces: list[Throughput] = []
    async for subscription in in_turns(topic.subscriptions.each(), SUBSCRIPTIONS_PER_TURN):
        subscriptions.append(_subscription(subscription, log, rates, options))
        paces.append(rates.of(subscription))
    if topic.closed:
        return None
    rate, sent = rates.of(topic), topic.sent()
    written = topic.results.period
    return TopicCounters(
        topic=topic.name,
        producers=len(topic.producers),
        consumers=sum([counted.consumers for counted in subscriptions]),
        messages_in=topic.msg_in,
        bytes_in=topic.bytes_in,
        rate_in=rate.messages_in,
        rate_out=rate.messages_out,
        throughput_in=rate.bytes_in,
        throughput_out=rate.bytes_out,
        backlog=sum([counted.backlog for counted in subscriptions]),
        backlog_bytes=bytes_behind(topic.log, topic.slowest()),
        storage_bytes=topic.log.retained_bytes(),
        subscriptions=subscriptions,
        compaction=None if topic.compactor is None else _compaction(topic.compactor),
        writes=None if written is None else WriteCounters(*written),
        stored=_stored(topic, rate, rates, paces),
        transactions=_transactions(topic),
        clients=producer_counters(topic, rates) if options.producers else (),
        messages_out=sent.messages,
        bytes_out=sent.bytes,
        publish_limited=0 if topic.checks.limit is None else topic.checks.limit.times,
        system=is_system_topic(topic.name),
    )


def _stored(topic: Topic, rate: Throughput, rates: Rates, paces: list[Throughput]) -> StoredCounters:
    quotas, policies, missed = topic.quotas, topic.policies, rates.missed(topic.log.id)
    oldest = quotas.oldest_published_ms
    return StoredCounters(
        offloaded_bytes=sum([ledger.bytes for ledger in topic.log.table.ledgers if ledger.offload is not None]),
        quota_bytes=policies.size_quota.limit,
        quota_seconds=policies.age_quota.limit,
        oldest_seconds=-1 if oldest < 0 else max(0, topic.clock.now_ms() - oldest) // 1000,
        evictions_size=quotas.evictions_size,
        evictions_time=quotas.evictions_time,
        write_rate=rate.entries_in,
        write_bytes_rate=rate.bytes_in,
        read_rate=sum([pace.entries_out for pace in paces]),
        read_bytes_rate=rate.bytes_out,
        missed_rate=missed.entries,
        missed_bytes_rate=missed.bytes,
        read_failures=missed.failures,
        reads=missed.reads,
        delayed_index_bytes=topic.delays.memory_bytes,
        mark_rate=sum([pace.marks for pace in paces]),
    )


def _transactions(topic: Topic) -> TransactionCounters | None:
    if topic.transactions is None:
        return None
    buffer = topic.transactions.buffer
    return TransactionCounters(len(buffer.open), buffer.committed, buffer.aborted)


def _compaction(compactor: Compactor) -> CompactionCounters:
    stats, view = compactor.stats, compactor.view
    seconds = stats.duration_ms / 1000
    return CompactionCounters(
        stats.removed, stats.successes, stats.failures, stats.duration_ms,
        entries=0 if view is None else view.entries,
        bytes=0 if view is None else view.bytes,
        read_rate=stats.bytes_read / _MEGABYTE / seconds if seconds else 0.0,
        write_rate=stats.bytes_written / _MEGABYTE / seconds if seconds else 0.0,
        write_latency=stats.write_latency,
    )  # fmt: skip


def _subscription(
    subscription: Subscription, log: ManagedLedger, rates: Rates, options: CounterOptions
) -> SubscriptionCounters:
    counted, rate, dispatcher = subscription.counters(), rates.of(subscription), subscription.dispatcher
    cursor = subscription.cursor
    backlog, delayed = cursor.backlog(), subscription.delayed_entries()
    return SubscriptionCounters(
        name=subscription.name,
        consumers=len(subscription.consumers),
        backlog=backlog,
        backlog_due=backlog - delayed,
        unacked=0 if dispatcher is None else dispatcher.unacked,
        messages_out=counted.messages_out,
        bytes_out=counted.bytes_out,
        rate_out=rate.messages_out,
        throughput_out=rate.bytes_out,
        rate_redelivered=rate.redelivered,
        rate_acked=rate.acked,
        delayed=delayed,
        in_replay=0 if dispatcher is None else dispatcher.in_replay,
        blocked=0 if dispatcher is None else int(dispatcher.blocked),
        expired=counted.expired,
        rate_expired=rate.expired,
        last_expired_ms=counted.last_expired_ms,
        last_acked_ms=counted.last_acked_ms,
        last_flow_ms=counted.last_flow_ms,
        last_sent_ms=counted.last_sent_ms,
        last_mark_ms=counted.last_mark_delete_advanced_ms,
        backlog_bytes=bytes_behind(log, cursor.mark_delete) if options.subscription_backlog else 0,
        clients=consumer_counters(subscription, rates) if options.consumers else (),
        cursor=_cursor(log, subscription) if options.cursors and subscription.durable else None,
        throttled=() if subscription.pump.throttle is None else throttled(subscription.pump.throttle),
    )


def _cursor(log: ManagedLedger, subscription: Subscription) -> CursorCounters | None:
    cursor = log.cursors.get(subscription.name)
    if cursor is None:
        return None  # it was deleted meanwhile
    return CursorCounters(cursor.times_written, cursor.times_lost, cursor.bytes_written, cursor.acknowledged_stretches)
