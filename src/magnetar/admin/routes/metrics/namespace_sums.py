"""Sums of the topics' numbers: of each namespace, of each bundle, and of the broker.

The families ``pulsar_ml_…`` exist for namespaces only, as in Apache Pulsar. The other sums of a namespace are shown
only if topics are not, or every total in a dashboard would count twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import add
from typing import Final

from magnetar.admin.routes.metrics import broker_families as broker
from magnetar.admin.routes.metrics import topic_families as families
from magnetar.admin.routes.metrics.text_format import Group, quoted
from magnetar.admin.values.counters import StoredCounters, TopicCounters, WriteCounters
from magnetar.config.settings import Settings

LATENCY_BOUNDS: Final = ("0.0_0.5", "0.5_1.0", "1.0_5.0", "5.0_10.0", "10.0_20.0", "20.0_50.0", "50.0_100.0",
                          "100.0_200.0", "200.0_1000.0")  # fmt: skip
SIZE_BOUNDS: Final = ("0.0_128.0", "128.0_512.0", "512.0_1024.0", "1024.0_2048.0", "2048.0_4096.0", "4096.0_16384.0",
                       "16384.0_102400.0", "102400.0_1048576.0")  # fmt: skip
_NO_WRITES: Final = WriteCounters((0,) * 11, (0,) * 11, (0,) * 10, 0)
_NOT_STORED: Final = StoredCounters(*(0,) * len(StoredCounters._fields))


def latencies(buckets: Sequence[float]) -> tuple[float, ...]:
    """Counts, their number, and the sum in microseconds, of buckets whose last member is the sum in milliseconds."""
    counts = buckets[:-1]
    return (*counts, sum(counts), buckets[-1] * 1000)


def sizes(buckets: Sequence[float]) -> tuple[float, ...]:
    """Counts, their number, and the sum in bytes."""
    counts = buckets[:-1]
    return (*counts, sum(counts), buckets[-1])


class Sums:
    """The sums of one namespace, of one bundle, or of everything."""

    __slots__ = (
        "_disk", "_latency", "_sizes", "bytes_out", "delayed", "failed", "ledgers", "messages_out", "numbers", "stored",
        "system_bytes_in", "topics", "transactions", "written",
    )  # fmt: skip

    def __init__(self) -> None:
        self.topics = self.ledgers = self.failed = self.messages_out = self.bytes_out = self.system_bytes_in = 0
        self.delayed = 0
        self.written = False
        self.numbers: list[float] = [0] * len(families.TOPIC)
        self.stored = _NOT_STORED
        self.transactions: list[float] = [0, 0, 0]
        self._latency: Sequence[float] = _NO_WRITES.latency
        self._disk: Sequence[float] = _NO_WRITES.disk
        self._sizes: Sequence[float] = _NO_WRITES.sizes

    def add(self, counters: TopicCounters, numbers: Sequence[float]) -> None:
        """Add one topic; ``numbers`` are those of :data:`topic_families.TOPIC`."""
        self.topics += 1
        self.numbers = list(map(add, self.numbers, numbers))
        self.messages_out += counters.messages_out
        self.bytes_out += counters.bytes_out
        self.delayed += sum([subscription.delayed for subscription in counters.subscriptions])
        if counters.system:
            self.system_bytes_in += counters.bytes_in
        if counters.stored is not None:
            self.ledgers += 1
            self.stored = StoredCounters(*map(add, self.stored, counters.stored))
        if counters.transactions is not None:
            self.transactions = list(map(add, self.transactions, counters.transactions))
        writes = counters.writes
        if writes is not None:
            self.written = True
            self._latency = list(map(add, self._latency, writes.latency))
            self._disk = list(map(add, self._disk, writes.disk))
            self._sizes = list(map(add, self._sizes, writes.sizes))
            self.failed += writes.failed

    def merge(self, other: Sums) -> None:
        """Add what was added to another one."""
        self.topics += other.topics
        self.numbers = list(map(add, self.numbers, other.numbers))
        self.messages_out += other.messages_out
        self.bytes_out += other.bytes_out
        self.delayed += other.delayed
        self.system_bytes_in += other.system_bytes_in
        self.ledgers += other.ledgers
        self.stored = StoredCounters(*map(add, self.stored, other.stored))
        self.transactions = list(map(add, self.transactions, other.transactions))
        self.written = self.written or other.written
        self._latency = list(map(add, self._latency, other._latency))
        self._disk = list(map(add, self._disk, other._disk))
        self._sizes = list(map(add, self._sizes, other._sizes))
        self.failed += other.failed

    @property
    def writes(self) -> WriteCounters:
        """How the disk took what was written."""
        return WriteCounters(tuple(self._latency), tuple(self._disk), tuple(self._sizes), self.failed)

    def number(self, attribute: str) -> float:
        """The sum of one column of :data:`topic_families.TOPIC`."""
        return self.numbers[_PLACES[attribute]]


_PLACES: Final = {column.attribute: place for place, column in enumerate(families.TOPIC)}


class NamespaceSums:
    """The sums of all namespaces; ``bundle_of`` names the bundle of a topic where bundles are shown."""

    def __init__(self, settings: Settings, host: str, bundle_of: Callable[[TopicCounters], str] | None) -> None:
        self._settings = settings
        self._broker = f"broker={quoted(host)}"
        self._cluster = f"cluster={quoted(settings.clusterName)}"
        self._bundle_of = bundle_of if settings.exposeBundlesMetricsInPrometheus else None
        self.by_namespace: dict[str, Sums] = {}
        self.by_bundle: dict[str, Sums] = {}

    @property
    def all(self) -> Sums:
        """The sums of all namespaces together."""
        found = Sums()
        for one in self.by_namespace.values():
            found.merge(one)
        return found

    def add(self, counters: TopicCounters, numbers: Sequence[float]) -> None:
        """Add one topic."""
        namespace = counters.topic.namespace.text
        _of(self.by_namespace, namespace).add(counters, numbers)
        if self._bundle_of is not None:
            _of(self.by_bundle, f"{namespace}/{self._bundle_of(counters)}").add(counters, numbers)

    def groups(self) -> Iterator[Group]:
        """The lines of namespaces and bundles, as groups."""
        count = Group([broker.TOPICS_COUNT])
        for namespace, sums in self.by_namespace.items():
            count.add(self._labels(namespace), (sums.topics,))
        yield count
        if not self._settings.exposeTopicLevelMetricsInPrometheus:
            yield from self._instead_of_topics()
        if self._settings.exposeManagedLedgerMetricsInPrometheus:
            yield from self._ledgers()
        if self._bundle_of is not None:
            yield self._bundles()

    def _labels(self, namespace: str) -> str:
        return f"{self._cluster},namespace={quoted(namespace)}"

    def _instead_of_topics(self) -> Iterator[Group]:
        topics = Group([column.family for column in families.TOPIC])
        stored = Group([column.family for column in families.STORED])
        writes = Group(families.WRITES)
        transactions = Group([column.family for column in families.TRANSACTIONS])
        others = Group(broker.OF_NAMESPACE)
        average = _PLACES["average_size"]
        for namespace, sums in self.by_namespace.items():
            labels, numbers = self._labels(namespace), list(sums.numbers)
            rate = sums.number("rate_in")
            numbers[average] = sums.number("throughput_in") / rate if rate else 0.0
            topics.add(labels, numbers)
            stored.add(labels, [getattr(sums.stored, column.attribute) for column in families.STORED])
            transactions.add(labels, sums.transactions)
            others.add(labels, (sums.messages_out, sums.bytes_out, sums.delayed))
            if sums.written:
                found = sums.writes
                writes.add(labels, (*latencies(found.latency), *latencies(found.disk), *sizes(found.sizes)))
        yield from (topics, stored, writes, transactions, others)

    def _ledgers(self) -> Iterator[Group]:
        ledgers, entry, disk, size = (Group(broker.LEDGER), *(Group([one]) for one in broker.LEDGER_BUCKETS))
        for namespace, sums in self.by_namespace.items():
            labels, found = self._labels(namespace), sums.writes
            ledgers.add(labels, ledger_numbers(sums))
            for group, bounds, counts in (
                (entry, LATENCY_BOUNDS, found.latency), (disk, LATENCY_BOUNDS, found.disk),
                (size, SIZE_BOUNDS, found.sizes),
            ):  # fmt: skip
                for bound, number in zip(bounds, counts, strict=False):
                    group.add(f'{labels},quantile="{bound}"', (number,))
        yield from (ledgers, entry, disk, size)

    def _bundles(self) -> Group:
        group = Group(broker.BUNDLE)
        for bundle, sums in self.by_bundle.items():
            group.add(f'{self._cluster},{self._broker},bundle={quoted(bundle)},metric="bundle"', bundle_numbers(sums))
        return group


def bundle_numbers(sums: Sums) -> tuple[float, ...]:
    """The numbers of :data:`broker_families.BUNDLE`."""
    number = sums.number
    return (
        number("rate_in"), number("rate_out"), sums.topics, number("consumers"), number("producers"),
        number("throughput_in"), number("throughput_out"),
    )  # fmt: skip


def ledger_numbers(sums: Sums) -> tuple[float, ...]:
    """The numbers of :data:`broker_families.LEDGER`."""
    stored, writes = sums.stored, sums.writes
    return (
        stored.write_bytes_rate, stored.write_bytes_rate, stored.write_rate, sum(writes.latency[:-1]), writes.failed,
        writes.latency[-2], writes.disk[-2], writes.sizes[-2], stored.mark_rate, sums.number("backlog"),
        stored.read_bytes_rate, stored.read_failures, stored.missed_rate, stored.read_rate, stored.reads,
        sums.number("storage_bytes"),
    )  # fmt: skip


def _of(sums: dict[str, Sums], word: str) -> Sums:
    found = sums.get(word)
    if found is None:
        found = sums[word] = Sums()
    return found
