"""Reading entries from segments: one thread, one large read at a time, checksums checked, extents whole.

Whole extents are taken, up to four megabytes at once, and put into the cache; the subscription that asked gets its part
and finds the rest in memory. So catching up neither hops to the thread per entry nor loads the backlog.

What is in no segment any more because its ledger was offloaded is read from its copy, a piece at a time and in other
threads; caching and reading ahead are the same. A read of an entry whose copy cannot be read gets the error, and
nothing else is given in its place.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import Final, NamedTuple, TypeVar

from magnetar.model.errors import PersistenceError, UnreadableError
from magnetar.storage.backends.journal_backend import (
    JournalBackend,
    ReadBuffer,
    index_name,
    is_shortage,
    segment_name,
)
from magnetar.storage.ledgers.archive import Archive
from magnetar.storage.ledgers.entry_cache import EntryCache
from magnetar.storage.ledgers.large_reads import LargeReads
from magnetar.storage.ledgers.ledger import Ledger
from magnetar.storage.ledgers.managed_ledger import NEVER, ManagedLedger, ReadDone
from magnetar.storage.ledgers.stored_run import StoredRun, cut
from magnetar.storage.log import records
from magnetar.storage.log.segment import ExtentOffsets, SegmentIndexes, Span, index_bytes, spans_of
from magnetar.storage.log.segment_scan import places_of

log = logging.getLogger(__name__)

T = TypeVar("T")

_READ_BYTES: Final = 4 << 20
"""The size of a read that continues another, in whole extents; measured: 1 MB 580, 2 MB 800, 4 MB 820-990 MB/s."""
_FIRST_READ_BYTES: Final = 1 << 19
"""The size of a read that continues none, and of each of many that do."""
_BUFFER_BYTES: Final = _READ_BYTES + (1 << 19)
_READS_AHEAD: Final = 3
"""How many reads are begun ahead after one that continues another."""
_RECENT: Final = 32
"""How many of the last reads are looked at to know how many logs are being read at once."""
_GAP_MAX: Final = 64 << 10
"""Bytes of other ledgers that are rather read over than stepped over."""


class _Extent(NamedTuple):
    run: StoredRun
    size: int


_NAMED_MAX: Final = 10_000
"""Damaged places that are remembered, so that each is logged once."""


class _Reading:
    """One read under way, and its waiters: none yet, if it was begun ahead."""

    __slots__ = ("further", "managed", "place", "start", "waiters")

    def __init__(self, managed: ManagedLedger, start: int, place: str, further: int) -> None:
        self.managed = managed
        self.start = start
        self.place = place
        """What is read, for messages."""
        self.further = further
        """How many reads may follow it unasked."""
        self.waiters: list[Callable[[StoredRun | Exception], None]] = []


class EntryReader:
    """Reads for all logs. ``thread`` has one worker: no other thread touches files and indexes.

    A read that begins where the last read of its log ended is read ahead for: the next megabytes are on their way into
    the cache while the first is being sent.
    """

    def __init__(
        self, backend: JournalBackend, cache: EntryCache, thread: Executor, archive: Archive,
        archive_threads: Executor, ahead: Executor,
    ) -> None:  # fmt: skip
        self._archive = archive
        self._archive_threads = archive_threads
        self._backend = backend
        self._indexes = SegmentIndexes(backend)
        # it has a part of its own: what is read once soon makes room for the next, in memory that is still warm
        self._cache = cache
        self._thread = thread
        self.large = LargeReads(backend, ahead, _BUFFER_BYTES)
        """Used in the thread only. Entries are copied out of its buffers once."""
        self._under_way: dict[tuple[int, int], _Reading] = {}
        self._recent: deque[int] = deque(maxlen=_RECENT)
        """The logs that were read last."""
        self._closed = False
        self._named: set[tuple[int, int]] = set()
        """Log and ordinal of what was said to be damaged."""
        self.reads = 0
        self.bytes_read = 0
        self.copies_read = 0
        """Pieces of offloaded ledgers."""
        self.copy_bytes_read = 0
        self.missed: dict[int, list[int]] = {}
        """Entries and bytes read, failures and successes since they were last taken, by log."""
        self.joined = 0
        """Reads that were under way already when they were asked for."""
        self.begun = 0

    def close(self) -> None:
        """The store is being closed: what is under way is answered, nothing is read ahead any more."""
        self._closed = True

    def read(self, managed: ManagedLedger, start: int, entries_max: int, bytes_max: int, done: ReadDone) -> None:
        """See :meth:`ManagedLedger.read`."""
        reading = self._under_way.get((managed.id, start))
        if reading is None:
            if managed.read_end == start:
                reading = self._begin(managed, start, _READS_AHEAD)
            else:
                reading = self._begin(managed, start, 0, _FIRST_READ_BYTES)
        else:
            self.joined += 1
            reading.further = _READS_AHEAD
        if reading is None:
            error = UnreadableError(
                f"{managed.name}: the entry at {managed.position(start)} is not in any segment; the log of the "
                "start names what was found damaged and where its bytes are kept",
                managed.spans.following(start) or managed.end,
            )
            asyncio.get_running_loop().call_soon(done, error)
            return

        def answer(result: StoredRun | Exception) -> None:
            done(result if isinstance(result, Exception) else cut(result, start - result.first, entries_max, bytes_max))

        reading.waiters.append(answer)

    def read_on(self, managed: ManagedLedger) -> None:
        """The reader that was read ahead for comes near the end of that: read more, so that it never waits for the
        disk."""
        managed.ahead_from = NEVER
        newest = self._under_way.get((managed.id, managed.newest_read))
        if newest is not None:
            newest.further = _READS_AHEAD
        elif managed.read_end >= 0 and self._wanted(managed, managed.read_end):
            self._begin(managed, managed.read_end, _READS_AHEAD - 1)

    async def forget(self, number: int) -> None:
        """Close a segment that is about to be removed."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._forget, number)

    def _forget(self, number: int) -> None:
        self._indexes.forget(number)
        self.large.forget(number)
        self._backend.forget(number)

    def in_thread(self, work: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        """Do something in the reader's thread, which alone touches files and indexes; after all that it was given."""
        return asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    def _begin(self, managed: ManagedLedger, start: int, further: int, size: int = 0) -> _Reading | None:
        span = managed.spans.holding(start)
        if span is not None:
            place, thread = segment_name(span.segment), self._thread
            # what is begun for one of many logs would be in the way of the others' reads
            alone = not size and set(self._recent) == {managed.id}
            work = partial(self._read, span, start, size or self._share(), alone)
        else:
            ledger = managed.table.holding(start)
            if ledger.offload is None:
                return None
            place, thread = ledger.offload.key, self._archive_threads
            work = partial(self._read_copy, ledger, start)
        reading = self._under_way[managed.id, start] = _Reading(managed, start, place, further)
        managed.newest_read = start
        self.begun += 1
        self._recent.append(managed.id)
        if further == 1:
            managed.ahead_from = start
        under_way = asyncio.get_running_loop().run_in_executor(thread, work)
        under_way.add_done_callback(lambda future: self._finished(reading, future))
        return reading

    def _share(self) -> int:
        """Bytes for one read: less if many logs are read at once, so that what was read ahead is still there when it is
        used."""
        share = self._cache.read_max // ((_READS_AHEAD + 1) * len(set(self._recent)))
        return min(max(share, _FIRST_READ_BYTES), _READ_BYTES)

    def _finished(self, reading: _Reading, work: asyncio.Future[list[_Extent]]) -> None:
        managed = reading.managed
        del self._under_way[managed.id, reading.start]
        missed = self.missed.setdefault(managed.id, [0, 0, 0, 0])
        error = work.exception()
        if error is not None:
            missed[2] += 1
            self._failed(reading, error)
            return
        extents = work.result()
        missed[0] += sum([len(extent.run.entries) for extent in extents])
        missed[1] += sum([extent.size for extent in extents])
        missed[3] += 1
        for extent in extents:
            self._cache.put_read(managed.cached_runs, extent.run, extent.size)
        last = extents[-1].run
        end = managed.read_end = last.first + len(last.entries)
        if reading.further and self._wanted(managed, end):
            # before anybody is answered: the disk works while they send
            self._begin(managed, end, reading.further - 1)
        self._answer(reading, extents[0].run)

    def _wanted(self, managed: ManagedLedger, start: int) -> bool:
        """Whether entries from ``start`` on exist and are neither in memory nor on their way."""
        known = (managed.id, start) in self._under_way or managed.cached_runs.find(start, 1, 1) is not None
        return not known and start < managed.end and not managed.deleted and not self._closed

    def _failed(self, reading: _Reading, error: BaseException) -> None:
        if not isinstance(error, PersistenceError):
            error = PersistenceError(f"{reading.managed.name}: reading {reading.place} failed: {error}")
        if reading.waiters and self._is_news(reading, error):
            log.error("%s", error)
        self._answer(reading, error)

    def _answer(self, reading: _Reading, result: StoredRun | Exception) -> None:
        for waiter in reading.waiters:
            try:
                waiter(result)
            except Exception:
                log.exception("what was to happen with the entries of %s failed; others get them", reading.managed.name)

    def _is_news(self, reading: _Reading, error: BaseException) -> bool:
        """Log damage once, however often it is read: it stays."""
        if not isinstance(error, UnreadableError):
            return True
        place = (reading.managed.id, reading.start)
        if place in self._named:
            return False
        if len(self._named) >= _NAMED_MAX:
            self._named.clear()
        self._named.add(place)
        return True

    # in the reader's thread --------------------------------------------------------------------------------------

    def _read(self, span: Span, start: int, size_max: int, alone: bool) -> list[_Extent]:
        places = self.places(span)
        i = places.find(start)
        out: list[_Extent] = []
        left = size_max
        # after the span's end may lie what a failed write left
        stop = bisect_left(places.firsts, span.end)
        if i < 0 or i >= stop:
            raise self._hole(span, start, places)
        while not out or (i < stop and places.lengths[i] <= left):
            last = self._stretch(places, i, stop, left)
            at = places.offsets[i]
            size = places.offsets[last] + places.lengths[last] - at
            data, begin = self.large.read(span.segment, at, size)
            self.reads += 1
            self.bytes_read += size
            left -= size
            if last + 1 < stop:
                if places.lengths[last + 1] <= left:
                    self._begin_next(span, places, last + 1, stop, left)
                elif alone:
                    self._begin_next(span, places, last + 1, stop, size_max)
            for j in range(i, last + 1):
                try:
                    out.append(self._extent(span, data, begin + places.offsets[j] - at))
                except PersistenceError as error:
                    self.large.forget(span.segment)
                    if not out:
                        if isinstance(error, UnreadableError):
                            error.stop = places.firsts[j + 1] if j + 1 < stop else span.end
                        raise
                    return out  # a read of what is damaged gets the error
            i = last + 1
        first = out[0].run
        if not first.first <= start < first.first + len(first.entries):
            raise self._hole(span, start, places)
        return out

    def _begin_next(self, span: Span, places: ExtentOffsets, i: int, stop: int, bytes_max: int) -> None:
        last = self._stretch(places, i, stop, bytes_max)
        at = places.offsets[i]
        self.large.begin(span.segment, at, places.offsets[last] + places.lengths[last] - at)

    def _hole(self, span: Span, ordinal: int, places: ExtentOffsets) -> PersistenceError:
        at = bisect_right(places.firsts, ordinal)
        stop = min(places.firsts[at], span.end) if at < len(places.firsts) else span.end
        text = f"ordinal {ordinal} of log {span.log} is missing in {segment_name(span.segment)}"
        return UnreadableError(text, max(stop, ordinal + 1))

    def _read_copy(self, ledger: Ledger, start: int) -> list[_Extent]:
        """Read from the ledger's copy outside the directory, in one of several threads."""
        copy, entry = ledger.offload, start - ledger.ordinal
        assert copy is not None
        piece = self._archive.piece(copy, ledger.id, entry)
        if not piece.entry <= entry < piece.entry + len(piece.entries) <= ledger.entries:
            raise PersistenceError(
                f"{copy.key} gave entries {piece.entry} to {piece.entry + len(piece.entries) - 1} of ledger "
                f"{ledger.id} where entry {entry} was asked for"
            )
        first, index = ledger.ordinal + piece.entry, piece.message_index
        run = StoredRun(first, ledger.id, piece.entry, piece.entries, piece.counts, index)
        size = sum(map(len, piece.entries))
        self.copies_read += 1
        self.copy_bytes_read += size
        return [_Extent(run, size)]

    def _stretch(self, places: ExtentOffsets, i: int, stop: int, bytes_max: int) -> int:
        """Last extent that one read beginning at extent ``i`` takes."""
        begin, last = places.offsets[i], i
        while last + 1 < stop:
            end = places.offsets[last] + places.lengths[last]
            offset = places.offsets[last + 1]
            if offset - end > _GAP_MAX or offset + places.lengths[last + 1] - begin > bytes_max:
                break
            last += 1
        return last

    def _extent(self, span: Span, data: bytes | ReadBuffer, at: int) -> _Extent:
        try:
            head, entries, counts, size = records.read_extent(data, at)
        except records.RecordError as error:
            raise UnreadableError(
                f"{segment_name(span.segment)} cannot be read at the entries of log {span.log} from {span.first} on: "
                f"{error}. The file is left as it is; restore it from a backup or skip these messages",
                span.end,
            ) from error
        if head.log != span.log:
            raise PersistenceError(
                f"{index_name(span.segment)} leads to another log's entries; remove it to have it rebuilt"
            )
        run = StoredRun(head.ordinal, head.ledger, head.entry, entries, counts, head.message_index)
        return _Extent(run, size)

    def places(self, span: Span) -> ExtentOffsets:
        """Where the extents of a span lie, from an index that is made anew if it is unreadable. In the reader's
        thread."""
        try:
            return self._indexes.places(span)
        except (OSError, records.RecordError) as error:
            if is_shortage(error):
                raise
            log.error("%s is unreadable (%s); it is made anew from its segment", index_name(span.segment), error)
            everything = places_of(self._backend, span.segment)
            self._rebuild(span.segment, everything)
            found = everything.get((span.log, span.ledger))
            if found is None:
                raise PersistenceError(f"{segment_name(span.segment)} holds nothing of log {span.log}") from error
            span.places = found
            return found

    def _rebuild(self, number: int, everything: dict[tuple[int, int], ExtentOffsets]) -> None:
        try:
            self._backend.write_index(number, index_bytes(number, spans_of(number, everything)))
        except OSError as error:
            log.error("%s cannot be written: %s", index_name(number), error)
