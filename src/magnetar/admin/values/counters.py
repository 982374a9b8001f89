"""The few numbers that /metrics shows, as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from magnetar.model.names import TopicName


class TopicCounters(NamedTuple):
    """Present numbers of one loaded topic, for /metrics. Making them must be cheap: no disk, no copying of lists."""

    topic: TopicName
    producers: int
    consumers: int
    messages_in: int
    bytes_in: int
    rate_in: float
    rate_out: float
    throughput_in: float
    throughput_out: float
    backlog: int
    backlog_bytes: int
    storage_bytes: int
    subscriptions: Sequence[SubscriptionCounters]
    compaction: CompactionCounters | None = None
    """None for a topic without compaction."""
    writes: WriteCounters | None = None
    """None for a topic to which nothing was written since it was loaded."""
    stored: StoredCounters | None = None
    """None for a non-persistent topic."""
    transactions: TransactionCounters | None = None
    """None for a topic that no transaction sent to."""
    clients: Sequence[ProducerCounters] = ()
    """Its producers, if they were asked for."""
    messages_out: int = 0
    bytes_out: int = 0
    """With what subscriptions that are gone have sent."""
    publish_limited: int = 0
    """How often a publish rate made a connection wait."""
    system: bool = False
    """Whether it is the broker's own."""


class CompactionCounters(NamedTuple):
    """Compaction of one topic since it was loaded, and the size of its present view."""

    removed: int
    succeeded: int
    failed: int
    duration_ms: int
    entries: int
    bytes: int
    read_rate: float = 0.0
    """Bytes that the last run read per second, megabytes as in Apache Pulsar; so is what follows."""
    write_rate: float = 0.0
    write_latency: tuple[float, ...] = ()


class WriteCounters(NamedTuple):
    """How the disk took a topic's entries in the last period: counts per bucket and, last in each, the sum."""

    latency: tuple[float, ...]
    disk: tuple[float, ...]
    sizes: tuple[float, ...]
    failed: int


class StoredCounters(NamedTuple):
    """What only a topic that is stored has; rates per second."""

    offloaded_bytes: int
    quota_bytes: int
    quota_seconds: int
    oldest_seconds: int
    """-1: not known."""
    evictions_size: int
    evictions_time: int
    write_rate: float
    """Entries."""
    write_bytes_rate: float
    read_rate: float
    """Entries sent to consumers."""
    read_bytes_rate: float
    missed_rate: float
    """Of them, those that the disk was asked for."""
    missed_bytes_rate: float
    read_failures: int
    """In the last period, as what follows."""
    reads: int
    """Reads of the disk that succeeded."""
    delayed_index_bytes: int
    mark_rate: float
    """Records with acknowledgements."""


class TransactionCounters(NamedTuple):
    """A topic's part in transactions since it was loaded."""

    active: int
    committed: int
    aborted: int


class ProducerCounters(NamedTuple):
    """Present numbers of one producer."""

    name: str
    id: int
    rate_in: float
    throughput_in: float


class ConsumerCounters(NamedTuple):
    """Present numbers of one consumer."""

    name: str
    id: int
    rate_out: float
    throughput_out: float
    rate_redelivered: float
    rate_acked: float
    unacked: int
    blocked: int
    permits: int
    messages_out: int
    bytes_out: int


class CursorCounters(NamedTuple):
    """What a durable cursor wrote since the start."""

    written: int
    lost: int
    bytes: int
    ranges: int
    """Stretches of acknowledged entries with a gap before them."""


class SubscriptionCounters(NamedTuple):
    """Present numbers of one subscription, for /metrics."""

    name: str
    consumers: int
    backlog: int
    backlog_due: int
    """The backlog without delayed messages."""
    unacked: int
    messages_out: int
    bytes_out: int
    rate_out: float
    throughput_out: float
    rate_redelivered: float
    rate_acked: float
    delayed: int = 0
    in_replay: int = 0
    blocked: int = 0
    expired: int = 0
    rate_expired: float = 0.0
    rate_dropped: float = 0.0
    last_expired_ms: int = 0
    last_acked_ms: int = 0
    last_flow_ms: int = 0
    last_sent_ms: int = 0
    last_mark_ms: int = 0
    delayed_index_bytes: int = 0
    backlog_bytes: int = 0
    """0 unless it was asked for."""
    clients: Sequence[ConsumerCounters] = ()
    """Its consumers, if they were asked for."""
    cursor: CursorCounters | None = None
    """None unless it was asked for, and for a subscription that is not durable."""
    throttled: Sequence[tuple[str, int, int]] = ()
    """By reason, how often limits of messages and of bytes held it up; empty without limits."""


class CounterOptions(NamedTuple):
    """What is counted only on demand: it takes longer."""

    producers: bool = False
    consumers: bool = False
    cursors: bool = False
    subscription_backlog: bool = False


class Measured(NamedTuple):
    """One number of a family that is not of a topic."""

    family: str
    value: float
    labels: tuple[tuple[str, str], ...] = ()
    suffix: str = ""
    """What the sample's name has after the family's, such as ``_count``."""
