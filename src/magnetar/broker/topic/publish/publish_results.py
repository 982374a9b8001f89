"""The results of one topic's entries, once per group commit: receipts to producers, and what was stored."""

from __future__ import annotations

from operator import attrgetter
from typing import Final, cast

from magnetar.broker.topic.publish.producer import PendingEntry
from magnetar.broker.topic.publish.producers import Producers
from magnetar.broker.topic.publish.write_stats import NOTHING, WritePeriod, WriteStats
from magnetar.model.errors import PersistenceError
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.log.write_group import PendingExtent, WriteTimes

_PRODUCER: Final = attrgetter("producer")


class PublishResults:
    """Counts what was stored since the topic was loaded, and answers the producers."""

    __slots__ = ("_idle", "_producers", "bytes_in", "msg_in", "written")

    def __init__(self, producers: Producers) -> None:
        self._producers = producers
        self.msg_in = 0
        self.bytes_in = 0
        self.written: WriteStats | None = None
        """How the disk takes them; None before the first, and while none comes."""
        self._idle: WritePeriod | None = None

    def durable(self, extent: PendingExtent) -> None:
        """Entries are on disk: a receipt for each, one call per stretch of one producer."""
        results = cast("list[PendingEntry]", extent.tags)
        counts = extent.counts
        n = len(results)
        self.msg_in += n if counts is None else sum(counts)
        self.bytes_in += extent.size
        if n == 1:
            producer = results[0].producer
            producer.msg_in += 1 if counts is None else counts[0]
            producer.bytes_in += extent.size
            if producer.open:
                producer.connection.receipts(extent.ledger, extent.entry, results)
            else:
                producer.connection.dropped(1)
            return
        producers = list(map(_PRODUCER, results))
        alone = producers.count(producers[0]) == n
        start = 0
        while start < n:
            producer = producers[start]
            stop = n if alone else start + 1
            while stop < n and producers[stop] is producer:
                stop += 1
            producer.msg_in += stop - start if counts is None else sum(counts[start:stop])
            producer.bytes_in += sum(map(len, extent.entries[start:stop])) if stop - start < n else extent.size
            if producer.open:
                producer.connection.receipts(extent.ledger, extent.entry + start, results[start:stop])
            else:
                producer.connection.dropped(stop - start)
            start = stop

    def stored(self, extent: PendingExtent, times: WriteTimes) -> None:
        """Count entries that were made durable, and how long their group took."""
        (self.written or self.counted()).stored(extent, times)

    def failed(self, extent: PendingExtent, error: PersistenceError) -> None:
        """The disk refused: errors for these entries, then every producer has to come again (rule 3.3.5)."""
        self.counted().refused(extent)
        for result in cast("list[PendingEntry]", extent.tags):
            if result.producer.open:
                result.producer.connection.failed((result,), error)
            else:
                result.producer.connection.dropped(1)
        self._producers.close_all()

    def counted(self) -> WriteStats:
        """Return what counts the disk's part."""
        written = self.written
        if written is None:
            written = self.written = WriteStats()
            self._idle = NOTHING
        return written

    @property
    def period(self) -> WritePeriod | None:
        """How the disk took the entries of the last period; None before the first entry."""
        written = self.written
        return self._idle if written is None else written.last

    def turn(self) -> None:
        """End a period; after one without an entry nothing is kept but that there were some."""
        if self.written is not None and not self.written.turn():
            self.written = None


def detach(log: ManagedLedger) -> None:
    """The topic is closed and its producers with it: entries in flight are only counted down on their connections."""
    log.on_durable = _closed
    log.on_failed = _closed_and_failed
    log.on_group = log.on_counted = _nothing


def _closed(extent: PendingExtent) -> None:
    for result in cast("list[PendingEntry]", extent.tags):
        result.producer.connection.dropped(1)


def _closed_and_failed(extent: PendingExtent, error: PersistenceError) -> None:
    _closed(extent)


def _nothing(*_: object) -> None: ...
