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


class CompactionCounters(NamedTuple):
    """Compaction of one topic since it was loaded, and the size of its present view."""

    removed: int
    succeeded: int
    failed: int
    duration_ms: int
    entries: int
    bytes: int


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


class StorageCounters(NamedTuple):
    """Present numbers of the embedded store, for /metrics."""

    sync_data: bool
    """Whether receipts wait for the disk (journalSyncData)."""
    failing: bool
    writes: int
    syncs: int
    bytes_written: int
    pending_bytes: int
    segment: int
    cache_bytes: int
    cache_bytes_max: int
