"""Entries in memory: what was written a moment ago, what a subscription still waits for, what was read ahead; one
bounded budget for all logs.

Written entries are kept for ten to twenty seconds for any reader, in a fifth of the budget. Entries that are evicted
from there, or were there longer, stay as far as there is space if a subscription with consumers has not acknowledged
them. Runs of small entries, which cost most to read again, are packed end to end and stay for any subscription; entries
that no subscription needs go. Entries read from the disk have up to two fifths. Entries that consumers waited for go
some seconds after the consumers have received them. Parts drop their oldest pieces first, whatever log they belong to:
tailing readers find what they want because they want it at once, and catching up reads the disk in pieces that are used
before they are pushed out. Of what is waited for, the newest goes first, an eighth in a row, unless the oldest was
waited for during a whole period of :meth:`EntryCache.tidy`: a consumer that lags by more than there is room for wants
the oldest next, and would find nothing of what it wants if that went (docs/decisions/062).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Mapping
from itertools import islice
from operator import itemgetter
from types import MappingProxyType
from typing import Final, Protocol

from magnetar.storage.ledgers.stored_run import FEW, LARGE, PackedEntries, PackedRun, StoredRun, cut, joined

_ENTRY_OVERHEAD: Final = 64
"""What CPython adds to the bytes of an entry, rounded up: the header of the object and its place in a list."""
_RUN_OVERHEAD: Final = 320
"""What CPython adds to a run: the tuple, its numbers and list, its places among its log's runs and in the order. Where
a thousand topics get a message each in turn, every entry is a run."""
_PACKED_OVERHEAD: Final = 600
"""The same of a packed run, with the headers of its two pieces of memory."""
_PACKED_ENTRY_OVERHEAD: Final = 4
_PACK_BELOW: Final = 1024
"""Bytes of an entry, on average, below which packing saves more than it costs."""
_PACK_FROM: Final = 16
"""Entries of a run from which on it is packed."""
_AGED_AHEAD: Final = 64
"""This part of what is kept of what was written goes at once, so that not every piece looks at all parts."""
_TURNED_AWAY: Final = 8
"""This part of what is waited for is free before more is taken in, once there was no room: what is left to the disk
lies together there."""
_TIDIED_MAX: Final = 1000
"""Pieces of each part that one call of :meth:`EntryCache.tidy` lets go."""


class Waiting(Protocol):
    """A cursor, as the cache sees it."""

    id: int
    attended: bool

    @property
    def mark_delete(self) -> int: ...


_NOBODY: Final[Mapping[str, Waiting]] = MappingProxyType({})
_NO_READERS: Final[dict[int, Waiting]] = {}
"""Never changed: most logs have none, and a dictionary for each would take 64 bytes."""


_FIRST: Final = itemgetter(0)
"""Where a run begins."""


class CachedRuns:
    """The cached pieces of one log, ascending, not overlapping."""

    __slots__ = ("_cursors", "readers", "runs")

    def __init__(self, cursors: Mapping[str, Waiting] = _NOBODY) -> None:
        """``cursors``: the durable ones of the log, now and later."""
        self._cursors = cursors
        self.readers: dict[int, Waiting] = _NO_READERS
        """Those that are not durable, by id; :meth:`came` and :meth:`went` keep it."""
        self.runs: list[StoredRun | PackedRun] = []

    def find(self, start: int, entries_max: int, bytes_max: int) -> StoredRun | None:
        """Entries from ``start`` on, one at least, in one piece or several of few large entries; None: not cached."""
        runs = self.runs
        if (
            runs
            and (run := runs[-1]).first == start
            and len(run.entries) <= min(entries_max, bytes_max // LARGE)
            and isinstance(run, StoredRun)
        ):
            return run  # what has just come
        i = bisect_right(runs, start, key=_FIRST) - 1
        if i < 0:
            return None
        run = runs[i]
        low = start - run.first
        n = len(run.entries)
        if low >= n:
            return None
        if isinstance(run, PackedRun):
            return run.cut(low, entries_max, bytes_max)
        if n - low < FEW and i + 1 < len(runs) and n - low < entries_max and len(run.entries[low]) >= LARGE:
            return joined(runs, i, low, entries_max, bytes_max)
        return cut(run, low, entries_max, bytes_max)

    def insert(self, run: StoredRun) -> bool:
        """Whether ``run`` has its place now: not if its beginning is there already."""
        runs = self.runs
        i = bisect_right(runs, run.first, key=_FIRST)
        if i and run.first < runs[i - 1].first + len(runs[i - 1].entries):
            return False
        runs.insert(i, run)
        return True

    def at(self, first: int) -> int:
        """Where the piece is that begins there; -1 if it is gone."""
        runs = self.runs
        if runs and runs[0].first == first:
            return 0  # the oldest, which is looked for most
        i = bisect_right(runs, first, key=_FIRST) - 1
        return i if i >= 0 and runs[i].first == first else -1

    def drop(self, first: int) -> None:
        """Let go of the piece that begins there, if it is there."""
        i = self.at(first)
        if i >= 0:
            del self.runs[i]

    def awaited(self, last: int, *, by_consumers: bool = False) -> bool:
        """Whether a subscription has not acknowledged everything up to ``last``; one with consumers, if asked so."""
        for cursor in self._cursors.values():
            if cursor.mark_delete < last and (cursor.attended or not by_consumers):
                return True
        return any(cursor.mark_delete < last for cursor in self.readers.values())

    def acknowledged(self, last: int) -> bool:
        """Whether all subscriptions have acknowledged everything up to ``last``; not if there is none."""
        return bool(self._cursors or self.readers) and not self.awaited(last)

    def came(self, reader: Waiting) -> None:
        """A cursor that is not durable was made."""
        self.readers = {**self.readers, reader.id: reader}

    def went(self, reader: object) -> None:
        """It is used no more."""
        self.readers = {number: other for number, other in self.readers.items() if other is not reader} or _NO_READERS

    def all_went(self) -> None:
        """None of them is used any more."""
        self.readers = _NO_READERS


_Piece = tuple[CachedRuns, int, int, int]
"""Whose it is, where it begins, bytes with all overhead, entries."""


def _awaited(piece: _Piece) -> bool:
    cached, first, _, entries = piece
    return cached.at(first) >= 0 and cached.awaited(first + entries - 1)


def _done(piece: _Piece) -> bool:
    """Whether it is gone, or no subscription needs it."""
    cached, first, _, entries = piece
    return cached.at(first) < 0 or cached.acknowledged(first + entries - 1)


def _wanted(piece: _Piece) -> bool:
    """Whether a consumer or reader waits for it, or any subscription if it is packed."""
    cached, first, _, entries = piece
    at = cached.at(first)
    return at >= 0 and cached.awaited(first + entries - 1, by_consumers=isinstance(cached.runs[at], StoredRun))


class _Part:
    """Some of the pieces, in the order they came, and their bytes."""

    __slots__ = ("bytes", "old", "pieces")

    def __init__(self) -> None:
        self.pieces: deque[_Piece] = deque()
        self.bytes = 0
        self.old = 0
        """So many of them, the first, were there at the last quiet moment, too."""

    def popleft(self) -> _Piece:
        piece = self.pieces.popleft()
        self.bytes -= piece[2]
        if self.old:
            self.old -= 1
        return piece

    def pop(self) -> _Piece:
        """Take out the newest piece, or the oldest if it was there at the last quiet moment, too."""
        if self.old:
            return self.popleft()
        piece = self.pieces.pop()
        self.bytes -= piece[2]
        return piece

    def sift(self, most: int) -> list[_Piece]:
        """Take out the pieces that no consumer waits for, of the first old ones, and at most so many; then all are
        old."""
        pieces = self.pieces
        gone: list[_Piece] = []
        kept: list[_Piece] = []
        for _ in range(min(self.old, most)):
            piece = pieces.popleft()
            (kept if _wanted(piece) else gone).append(piece)
        pieces.extendleft(reversed(kept))
        self.old = len(pieces)
        self.bytes -= sum([size for _, _, size, _ in gone])
        return gone

    def purge(self) -> list[_Piece]:
        """Take out the pieces that are gone from their logs."""
        gone = [piece for piece in self.pieces if piece[0].at(piece[1]) < 0]
        if gone:
            self.old -= sum([piece[0].at(piece[1]) < 0 for piece in islice(self.pieces, self.old)])
            self.pieces = deque([piece for piece in self.pieces if piece[0].at(piece[1]) >= 0])
            self.bytes -= sum([size for _, _, size, _ in gone])
        return gone


class EntryCache:
    """The budget."""

    def __init__(self, bytes_max: int) -> None:
        self._recent, self._awaited, self._read = _Part(), _Part(), _Part()
        self.entries_put = self.entries_gone = self.evictions = 0
        """Entries that came and went since the start, and how many pieces they went in."""
        self._cleared = 0
        """Pieces, about, that are still counted and gone with their logs."""
        self._take_in_below = 0
        """Bytes of what is waited for below which more of it is taken in again; 0: there is room."""
        self.set_bytes_max(bytes_max)

    def set_bytes_max(self, bytes_max: int) -> None:
        """Change the budget, and drop the oldest pieces that it does not cover."""
        self.bytes_max = bytes_max
        self.recent_max = bytes_max // 5
        """For what was written a moment ago."""
        self.read_max = bytes_max * 2 // 5
        """For what was read from the disk."""
        self._age()

    @property
    def bytes(self) -> int:
        """What is held now, CPython's own overhead counted in."""
        return self._recent.bytes + self._awaited.bytes + self._read.bytes

    def put(self, cached: CachedRuns, run: StoredRun, size: int) -> None:
        """Remember ``run``, which was written (``size`` bytes of entries), unless its beginning is there already."""
        first, runs = run.first, cached.runs
        if not runs or first >= runs[-1].first + len(runs[-1].entries):
            runs.append(run)
        elif not cached.insert(run):
            return
        entries = len(run.entries)
        size += _RUN_OVERHEAD + _ENTRY_OVERHEAD * entries
        self.entries_put += entries
        recent = self._recent
        recent.bytes += size
        recent.pieces.append((cached, first, size, entries))
        if recent.bytes > self._room:
            self._age(self.recent_max // _AGED_AHEAD)

    def put_read(self, cached: CachedRuns, run: StoredRun, size: int) -> None:
        """The same of a run that was read from the disk."""
        if not cached.insert(run):
            return
        entries = len(run.entries)
        size += _RUN_OVERHEAD + _ENTRY_OVERHEAD * entries
        self.entries_put += entries
        self._read.bytes += size
        self._read.pieces.append((cached, run.first, size, entries))
        if self._read.bytes > self.read_max or self.bytes > self.bytes_max:
            self._make_room()
        self._measure()

    def _measure(self) -> None:
        """How many bytes may be written before something has to go."""
        self._room = min(self.recent_max, self.bytes_max - self._awaited.bytes - self._read.bytes)

    def _age(self, ahead: int = 0) -> None:
        """What was written some time ago stays only if it is waited for; so many bytes more go, if any have to."""
        recent = self._recent
        most = self.recent_max - ahead if recent.bytes > self.recent_max else self.recent_max
        while recent.bytes > most and len(recent.pieces) > 1:
            self._age_oldest()
        self._let_go_awaited()
        if self.bytes > self.bytes_max:
            self._make_room()
        self._measure()

    def _age_oldest(self) -> None:
        piece = self._recent.popleft()
        cached, first, _, entries = piece
        i = cached.at(first)
        awaited = self._awaited
        if awaited.bytes < self._take_in_below:
            self._take_in_below = 0
        there_is_room = not self._take_in_below or awaited.old > 0
        kept = None
        if there_is_room and i >= 0 and cached.awaited(first + entries - 1):
            kept = self._packed(piece, i)
        if kept is None:
            self.entries_gone += entries
            self.evictions += 1
            if i >= 0:
                del cached.runs[i]
        else:
            awaited.pieces.append(kept)
            awaited.bytes += kept[2]

    def _packed(self, piece: _Piece, i: int) -> _Piece | None:
        """As the run at ``i`` is to be kept for those who wait. None: it is large, and they are not there."""
        cached, first, size, entries = piece
        bare = size - _RUN_OVERHEAD - _ENTRY_OVERHEAD * entries
        if entries < _PACK_FROM or bare >= _PACK_BELOW * entries:
            return piece if cached.awaited(first + entries - 1, by_consumers=True) else None
        run = cached.runs[i]
        assert isinstance(run, StoredRun)
        entries_packed = PackedEntries(run.entries)
        cached.runs[i] = PackedRun(first, run.ledger, run.entry, entries_packed, run.counts, run.message_index)
        packed = bare + _PACKED_OVERHEAD + _PACKED_ENTRY_OVERHEAD * entries
        return cached, first, packed, entries

    def _make_room(self) -> None:
        """Keep within the budget; the newest piece that was written, and that was read, stays whatever its size."""
        read = self._read
        self._let_go_awaited()
        self._let_go_read()
        while read.bytes > self.read_max and len(read.pieces) > 1:
            self._drop(read.popleft())
        awaited = self._awaited
        while self.bytes > self.bytes_max and awaited.pieces:
            if not self._take_in_below:
                self._take_in_below = awaited.bytes - awaited.bytes // _TURNED_AWAY
            self._drop(awaited.pop())
        for part in (read, self._recent):
            while self.bytes > self.bytes_max and len(part.pieces) > 1:
                self._drop(part.popleft())

    def tidy(self) -> bool:
        """Let go of what was waited for or read and is acknowledged by now, and of what was there at the last such call
        and no consumer waits for; called every few seconds.

        Returns whether there is more to look at, so that others can have their turn before the next call.
        """
        recent = self._recent
        for _ in range(min(recent.old, _TIDIED_MAX)):
            self._age_oldest()
        self._let_go_awaited()
        self._let_go_read()
        for part in (self._awaited, self._read):
            for piece in part.sift(_TIDIED_MAX):
                self._drop(piece)
        if self._cleared and self._pieces <= _TIDIED_MAX:
            self._purge()
        self._measure()
        if recent.old:
            return True
        recent.old = len(recent.pieces)
        return False

    @property
    def _pieces(self) -> int:
        return len(self._recent.pieces) + len(self._awaited.pieces) + len(self._read.pieces)

    def _purge(self) -> None:
        self._cleared = 0
        for part in (self._recent, self._awaited, self._read):
            for piece in part.purge():
                self._drop(piece)

    def _let_go_awaited(self) -> None:
        part = self._awaited
        for _ in range(_TIDIED_MAX):
            if not part.pieces or _awaited(part.pieces[0]):
                return
            self._drop(part.popleft())

    def _let_go_read(self) -> None:
        part = self._read
        for _ in range(_TIDIED_MAX):
            if not part.pieces or not _done(part.pieces[0]):
                return
            self._drop(part.popleft())

    def _drop(self, piece: _Piece) -> None:
        cached, first, _, entries = piece
        self.entries_gone += entries
        self.evictions += 1
        cached.drop(first)

    def clear(self, cached: CachedRuns) -> None:
        """Drop a log's pieces. Their budget is given back when half of all pieces are such, or in a quiet moment."""
        self._cleared += len(cached.runs)
        cached.runs.clear()
        if self._cleared * 2 > self._pieces:
            self._purge()
            self._measure()
