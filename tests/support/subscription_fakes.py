"""A log, a cursor and a connection in memory, as naive as possible: what the subscription is tested against."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from magnetar.broker.topic.ports import Done, EntryRun
from magnetar.model.ids import Position
from magnetar.model.ordinal_bitmap import OrdinalBitmap
from magnetar.storage.ledgers.stored_run import StoredRun

LEDGER_ENTRIES = 50
"""Short ledgers, so that runs end at ledger boundaries."""


class FakeLog:
    """Entries from ``resident`` on are in memory, older ones come from "disk" when the test calls ``finish_read``."""

    def __init__(self) -> None:
        self.entries: list[bytes] = []
        self.counts: list[int] = []
        self.first = 0
        self.end = 0
        self.resident = 0
        self.reads: list[tuple[int, int, int, Callable[[EntryRun | Exception], None]]] = []
        self.reads_total = 0

    def append(self, *counts: int) -> None:
        for count in counts:
            self.entries.append(b"entry-%d" % len(self.entries))
            self.counts.append(count)
        self.end = len(self.entries)

    def run(self, start: int, entries_max: int) -> StoredRun:
        ledger = start // LEDGER_ENTRIES
        stop = min(start + entries_max, self.end, (ledger + 1) * LEDGER_ENTRIES)
        counts = self.counts[start:stop]
        plain = all(count == 1 for count in counts)
        return StoredRun(start, ledger, start % LEDGER_ENTRIES, self.entries[start:stop], None if plain else counts)

    def cached(self, start: int, entries_max: int, bytes_max: int) -> StoredRun | None:
        assert self.first <= start
        if start < self.resident or start >= self.end:
            return None
        return self.run(start, entries_max)

    def read(self, start: int, entries_max: int, bytes_max: int, done: Callable[[EntryRun | Exception], None]) -> None:
        assert start < self.end
        self.reads_total += 1
        self.reads.append((start, entries_max, bytes_max, done))
        assert len(self.reads) == 1, "more than one read under way"

    def finish_read(self, error: Exception | None = None) -> None:
        start, entries_max, _, done = self.reads.pop(0)
        done(error if error is not None else self.run(max(start, self.first), entries_max))

    def position(self, ordinal: int) -> Position:
        return Position(ordinal // LEDGER_ENTRIES, ordinal % LEDGER_ENTRIES)

    def exact_ordinal(self, position: Position) -> int | None:
        ordinal = position.ledger * LEDGER_ENTRIES + position.entry
        return ordinal if self.first <= ordinal < self.end else None

    def ordinal(self, position: Position) -> int:
        return min(max(position.ledger * LEDGER_ENTRIES + position.entry, self.first), self.end)


class FakeCursor:
    """A set of acknowledged ordinals and a dict of live bits; everything is durable at once."""

    def __init__(self, log: FakeLog, mark_delete: int = -1) -> None:
        self.jumped = 0
        self.attended = False
        self.times_written = 0
        self.log = log
        self.acked: set[int] = set(range(mark_delete + 1))
        self.live: dict[int, int] = {}
        self.jumps = 0
        self.properties: dict[str, str] = {}

    def acknowledged_ranges(self, at: int = 0) -> Iterator[tuple[int, int]]:
        for ordinal in sorted(self.acked):
            if ordinal > self.mark_delete and ordinal >= at:
                yield ordinal, ordinal + 1

    @property
    def acknowledged_stretches(self) -> int:
        above = [ordinal for ordinal in self.acked if ordinal > self.mark_delete]
        return sum(1 for ordinal in above if ordinal - 1 not in self.acked)

    def acknowledged_of(self, ordinals: OrdinalBitmap, stop: int) -> int:
        return sum(1 for ordinal in self.acked if self.mark_delete < ordinal < stop and ordinal in ordinals)

    def unacknowledged(self, start: int, stop: int) -> int:
        return sum(1 for ordinal in range(start, stop) if ordinal not in self.acked)

    @property
    def mark_delete(self) -> int:
        return self.next_unacknowledged(0) - 1

    @property
    def has_partial_batches(self) -> bool:
        return bool(self.live)

    def acknowledge(self, ordinals: Sequence[int], durable: Done | None = None) -> None:
        for ordinal in ordinals:
            if ordinal < self.log.end:
                self.acked.add(ordinal)
                self.live.pop(ordinal, None)
        if durable is not None:
            durable()

    def acknowledge_until(self, ordinal: int, durable: Done | None = None) -> None:
        self.acknowledge(range(min(ordinal + 1, self.log.end)), durable)

    def acknowledge_indexes(
        self, ordinal: int, remaining: tuple[int, ...], batch_size: int, durable: Done | None = None
    ) -> bool:
        if ordinal not in self.acked and ordinal < self.log.end:
            bits = sum(word << (64 * i) for i, word in enumerate(remaining))
            self.live[ordinal] = self.live.get(ordinal, (1 << batch_size) - 1) & bits
            if not self.live[ordinal]:
                self.acknowledge([ordinal])
        if durable is not None:
            durable()
        return ordinal in self.acked

    def acknowledged(self, ordinal: int) -> bool:
        return ordinal in self.acked

    def next_unacknowledged(self, ordinal: int) -> int:
        while ordinal in self.acked:
            ordinal += 1
        return ordinal

    def next_acknowledged(self, ordinal: int, stop: int) -> int:
        return next((o for o in range(ordinal, stop) if o in self.acked), stop)

    def remaining_indexes(self, ordinal: int) -> tuple[int, ...]:
        bits = self.live.get(ordinal)
        if bits is None:
            return ()
        words = []
        while bits:
            words.append(bits & (1 << 64) - 1)
            bits >>= 64
        return tuple(words)

    def reset(self, ordinal: int, durable: Done | None = None) -> None:
        self.acked = set(range(ordinal))
        self.live.clear()
        if durable is not None:
            durable()

    def backlog(self) -> int:
        return sum(1 for o in range(self.log.end) if o not in self.acked)

    def trimmed(self) -> None:
        self.jumps += 1
        self.acknowledge_until(self.log.first - 1)


class FakeConnection:
    """Records (ordinal, redelivery count, ack set, epoch) of everything it was given."""

    def __init__(self) -> None:
        self.writable = True
        self.writable_for = 1 << 60
        self.got: list[tuple[int, int, tuple[int, ...], int | None]] = []
        self.slices: list[tuple[int, int]] = []
        self.passed: list[bytes] = []
        self.active: list[bool] = []
        self.closed = 0
        self.ended = 0

    def deliver(self, run: EntryRun, start: int, stop: int, epoch: int | None) -> None:
        assert 0 <= start < stop <= len(run.entries)
        self.slices.append((run.first + start, run.first + stop))
        for i in range(start, stop):
            self._take(run, i, 0, (), epoch)

    def deliver_picked(self, run: EntryRun, indexes: Sequence[int], epoch: int | None) -> None:
        assert list(indexes) == sorted(set(indexes))
        for i in indexes:
            self._take(run, i, 0, (), epoch)

    def deliver_one(
        self, run: EntryRun, index: int, redelivery_count: int, ack_set: tuple[int, ...], epoch: int | None
    ) -> None:
        self._take(run, index, redelivery_count, ack_set, epoch)

    def deliver_unstored(self, entries: Sequence[bytes]) -> None:
        self.passed += entries
        self.writable_for -= len(entries)
        if self.writable_for <= 0:
            self.writable = False

    def _take(self, run: EntryRun, index: int, count: int, ack_set: tuple[int, ...], epoch: int | None) -> None:
        ordinal = run.first + index
        assert run.entries[index] == b"entry-%d" % ordinal
        assert run.ledger * LEDGER_ENTRIES + run.entry + index == ordinal
        self.got.append((ordinal, count, ack_set, epoch))
        self.writable_for -= 1
        if self.writable_for <= 0:
            self.writable = False

    @property
    def ordinals(self) -> list[int]:
        return [ordinal for ordinal, _, _, _ in self.got]

    def active_change(self, active: bool) -> None:
        self.active.append(active)

    def close(self) -> None:
        self.closed += 1

    def end_of_topic(self) -> None:
        self.ended += 1
