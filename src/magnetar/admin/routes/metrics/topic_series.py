"""The series of topics, subscriptions and clients, in pieces: a hundred thousand topics make millions of lines.

The text format requires all lines of a family together, so the numbers of all topics are collected first. With
``exposeTopicLevelMetricsInPrometheus=false`` those of a namespace are added up as they come, and nothing is noted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any, Final

from magnetar.admin.routes.metrics import topic_families as families
from magnetar.admin.routes.metrics.family import Family
from magnetar.admin.routes.metrics.namespace_sums import NamespaceSums, latencies, sizes
from magnetar.admin.routes.metrics.text_format import Group, lines, quoted
from magnetar.admin.values.counters import (
    CompactionCounters,
    CounterOptions,
    SubscriptionCounters,
    TopicCounters,
    WriteCounters,
)
from magnetar.config.settings import Settings

_PARTITION = "-partition-"
_STEP: Final = 200
"""Subscriptions of one topic that are added in one step."""


def counter_options(settings: Settings) -> CounterOptions:
    """What is to be counted for these settings."""
    return CounterOptions(
        settings.exposeProducerLevelMetricsInPrometheus,
        settings.exposeConsumerLevelMetricsInPrometheus,
        settings.exposeManagedCursorMetricsInPrometheus,
        settings.exposeSubscriptionBacklogSizeInPrometheus,
    )


def _numbers(columns: Sequence[families.Column]) -> Callable[[Any], tuple[float, ...]]:
    return attrgetter(*(column.attribute for column in columns))


_STORED = _numbers(families.STORED)
_COMPACTION = _numbers(families.COMPACTION)
_TRANSACTIONS = _numbers(families.TRANSACTIONS)
_SUBSCRIPTION = _numbers(families.SUBSCRIPTION)
_CONSUMER = _numbers(families.CONSUMER)
_CURSOR = _numbers(families.CURSOR)


def topic_numbers(counters: TopicCounters) -> tuple[float, ...]:
    """The numbers of :data:`topic_families.TOPIC`."""
    c = counters
    return (
        len(c.subscriptions), c.producers, c.consumers, c.rate_in, c.rate_out, c.throughput_in, c.throughput_out,
        c.throughput_in / c.rate_in if c.rate_in else 0.0, c.messages_in, c.bytes_in, c.backlog, c.publish_limited,
        c.storage_bytes, c.storage_bytes, c.backlog_bytes,
    )  # fmt: skip


def write_numbers(writes: WriteCounters) -> tuple[float, ...]:
    """The numbers of :data:`topic_families.WRITES`."""
    return (*latencies(writes.latency), *latencies(writes.disk), *sizes(writes.sizes))


class TopicSeries:
    """Add all topics' counters, then ask for the lines."""

    def __init__(
        self, settings: Settings, host: str = "", bundle_of: Callable[[TopicCounters], str] | None = None
    ) -> None:
        """``host`` names the broker; ``bundle_of`` the bundle of a topic, where bundles are shown."""
        self._cluster = f"cluster={quoted(settings.clusterName)}"
        self._per_topic = settings.exposeTopicLevelMetricsInPrometheus
        self._split = settings.splitTopicAndPartitionLabelInPrometheus
        self._options = counter_options(settings)
        self.sums = NamespaceSums(settings, host, bundle_of)
        self._groups: dict[str, Group] = {}

    def _group(self, word: str, columns: Sequence[families.Column | Family]) -> Group:
        found = self._groups.get(word)
        if found is None:
            made = [column.family if isinstance(column, families.Column) else column for column in columns]
            found = self._groups[word] = Group(made)
        return found

    async def add_all(self, counted: AsyncIterator[TopicCounters]) -> None:
        """Add the numbers of all topics; others have turns meanwhile."""
        async for counters in counted:
            for step, _ in enumerate(self.add(counters)):
                if step:
                    await asyncio.sleep(0)

    def add(self, counters: TopicCounters) -> Iterator[None]:
        """Add one topic's numbers, in steps: others may have a turn after each."""
        numbers = topic_numbers(counters)
        self.sums.add(counters, numbers)
        if not self._per_topic:
            return
        labels = self._labels(counters)
        self._group("topic", families.TOPIC).add(labels, numbers)
        stored = counters.stored
        if stored is not None:
            self._group("stored", families.STORED).add(labels, _STORED(stored))
            evictions = self._group("evictions", [families.EVICTIONS])
            evictions.add(f'{labels},quota_type="size"', (stored.evictions_size,))
            evictions.add(f'{labels},quota_type="time"', (stored.evictions_time,))
        if counters.writes is not None:
            self._group("writes", families.WRITES).add(labels, write_numbers(counters.writes))
        if counters.compaction is not None:
            self._compaction(labels, counters.compaction)
        if counters.transactions is not None:
            self._group("transactions", families.TRANSACTIONS).add(labels, _TRANSACTIONS(counters.transactions))
        for producer in counters.clients:
            average = producer.throughput_in / producer.rate_in if producer.rate_in else 0.0
            self._group("producers", families.PRODUCER).add(
                f'{labels},producer_name={quoted(producer.name)},producer_id="{producer.id}"',
                (producer.rate_in, producer.throughput_in, average),
            )
        for number, subscription in enumerate(counters.subscriptions):
            if number % _STEP == 0:
                yield
            self._subscription(counters, labels, subscription)

    def _labels(self, counters: TopicCounters) -> str:
        name = counters.topic.fqn
        more = ""
        if self._split:
            parent, marked, index = name.rpartition(_PARTITION)
            whole = not (marked and index.isdecimal())
            name, more = (name, ',partition="-1"') if whole else (parent, f',partition="{index}"')
        return f'{self._cluster},namespace="{counters.topic.namespace.text}",topic={quoted(name)}{more}'

    def _compaction(self, labels: str, counted: CompactionCounters) -> None:
        self._group("compaction", families.COMPACTION).add(labels, _COMPACTION(counted))
        if counted.write_latency:
            latency = self._group("compaction latency", families.COMPACTION_LATENCY)
            latency.add(labels, latencies(counted.write_latency))

    def _subscription(self, topic: TopicCounters, labels: str, subscription: SubscriptionCounters) -> None:
        name = quoted(subscription.name)
        own = f"{labels},subscription={name}"
        self._group("subscriptions", families.SUBSCRIPTION).add(own, _SUBSCRIPTION(subscription))
        if self._options.subscription_backlog:
            size = self._group("subscription backlog", families.SUBSCRIPTION_BACKLOG)
            size.add(own, (subscription.backlog_bytes,))
        for reason, by_messages, by_bytes in subscription.throttled:
            events = self._group("dispatch throttled", families.DISPATCH_THROTTLED)
            events.add(f'{own},reason="{reason}"', (by_messages, by_bytes))
        for consumer in subscription.clients:
            whose = f'{own},consumer_name={quoted(consumer.name)},consumer_id="{consumer.id}"'
            self._group("consumers", families.CONSUMER).add(whose, _CONSUMER(consumer))
        if subscription.cursor is not None:
            ledger = f'namespace="{topic.topic.namespace.text}",ledger_name={quoted(topic.topic.fqn)}'
            whose = f"{self._cluster},{ledger},cursor_name={name}"
            self._group("cursors", families.CURSOR).add(whose, _CURSOR(subscription.cursor))

    def lines(self) -> Iterator[str]:
        """All lines of topics and namespaces, in pieces."""
        yield from lines([*self._groups.values(), *self.sums.groups()])
