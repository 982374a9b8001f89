"""What one write of the journal makes durable, and who wants to hear of it.

Managed ledgers, cursors and the states of features know the journal by these faces only, and it knows them by these.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import accumulate
from operator import attrgetter, itemgetter
from typing import Final, Protocol

from magnetar.model.errors import PersistenceError

log = logging.getLogger(__name__)

CALLBACK_FAILED: Final = (
    "what was to happen after a write failed; the other topics' results are handed out nevertheless"
)

_FEW_EXTENTS: Final = 16
"""So many are never too many for one write, however large they are."""
_EXTENTS_MAX: Final = 256
_ENTRIES_MAX: Final = 1024
"""From so many entries on the next extent waits for the next write."""

_EXTENT: Final = itemgetter(1)
_ENTRIES: Final = attrgetter("entries")
Done = Callable[[], None]
Failed = Callable[[PersistenceError], None]


class ExtentOwner(Protocol):
    """The managed ledger, as the journal sees it."""

    on_counted: Callable[[PendingExtent, WriteTimes], None]
    """Called with an extent that is durable and how long its group took, some time after its results are out."""
    on_group: Callable[[], None]
    """Called when all of a group's extents are durable."""

    def extent_closed(self) -> None:
        """The open extent is being written: nothing may be added to it any more."""
        ...

    def extent_durable(self, extent: PendingExtent) -> None: ...
    def extent_failed(self, extent: PendingExtent, error: PersistenceError) -> None: ...


class DirtyCursor(Protocol):
    """A cursor with acknowledgments that are not on disk yet."""

    def render(self) -> bytes:
        """The record of what changed since the last call."""
        ...

    def lost(self) -> None:
        """What was rendered did not reach the disk: render everything the next time."""
        ...


class DirtyFeatureState(Protocol):
    """The state of a feature beside a log, with changes that are not on disk yet
    (`storage/ledgers/feature_state.py`)."""

    def render(self) -> list[bytes]:
        """The records of what changed since the last call."""
        ...

    def written(self) -> None:
        """What was rendered last is durable; said before the next render."""
        ...

    def lost(self) -> None:
        """What was rendered, and what changed since, did not reach the disk."""
        ...


WRITE_BOUNDS_MS: Final[tuple[float, ...]] = (0.5, 1.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 1000.0)
"""The buckets in which Apache Pulsar counts how long writes take."""


class WriteTimes:
    """How long one group took, made once for all of its extents: milliseconds, and the places of their buckets."""

    __slots__ = ("places", "waited_ms", "wrote_ms")

    def __init__(self, waited_ms: float, wrote_ms: float) -> None:
        self.waited_ms = waited_ms
        """From the group's oldest entry to its receipts."""
        self.wrote_ms = wrote_ms
        """Its write and sync alone."""
        self.places = bisect_left(WRITE_BOUNDS_MS, waited_ms), bisect_left(WRITE_BOUNDS_MS, wrote_ms)


class PendingExtent:
    """Entries of one ledger that will lie next to each other; once durable it serves as a piece of the cache."""

    __slots__ = (
        "counts", "entries", "entry", "index", "ledger", "length", "offset", "ordinal", "owner", "published_ms",
        "segment", "size", "tags",
    )  # fmt: skip

    def __init__(self, owner: ExtentOwner, ledger: int, entry: int, ordinal: int, index: int, now: int) -> None:
        self.owner = owner
        self.ledger = ledger
        self.entry = entry
        self.ordinal = ordinal
        self.index = index
        self.published_ms = now
        self.entries: list[bytes] = []
        self.counts: list[int] | None = None
        self.tags: list[object] = []
        """What the appender wants back with the result, one per entry."""
        self.size = 0
        self.segment = self.offset = self.length = 0


class PendingMove:
    """Whole records of extents that stand in the log already and get a second place."""

    __slots__ = ("begun", "data", "done", "failed", "offset", "records")

    def __init__(
        self, data: bytes, count: int, begun: Done, done: Callable[[int, int], None], failed: Failed
    ) -> None:  # fmt: skip
        self.data = data
        self.records = count
        self.begun = begun
        """Called when it is being written: the next group may have another one."""
        self.done = done
        """Called with the segment and the offset of ``data`` in it when it is durable."""
        self.failed = failed
        self.offset = 0


class WriteGroup:
    """What one write will make durable."""

    __slots__ = (
        "began", "cursors", "ended", "extents", "feature_states", "kept", "move", "oldest", "records", "waiters",
    )  # fmt: skip

    def __init__(self) -> None:
        self.feature_states: dict[DirtyFeatureState, None] = {}
        self.extents: list[tuple[int, PendingExtent]] = []
        self.records: list[bytes] = []
        self.kept: list[bytes] = []
        """Those of ``records`` that go into the next group if this one cannot be written."""
        self.cursors: dict[DirtyCursor, None] = {}
        self.waiters: list[tuple[Done, Failed | None]] = []
        self.move: PendingMove | None = None
        self.began = 0.0
        """When its writing began, in seconds of a steady clock that measures and decides nothing."""
        self.oldest = 0.0
        """When its first entry came."""
        self.ended = 0.0
        """When it was durable."""

    def held_back(self) -> WriteGroup:
        """Keep as many extents as one write should have, and return a group of the others, which is written next.

        The results of a write are handed out without a pause, so ten thousand entries of a thousand topics kept
        everybody else waiting for 40 ms (docs/decisions/078). The others are as if they had come a moment later: only
        extents ever are, and none where something else might count on being durable together with them.
        """
        others = WriteGroup()
        extents = self.extents
        if len(extents) <= _FEW_EXTENTS or self.records or self.waiters or self.feature_states or self.move is not None:
            return others
        ends = accumulate(map(len, map(_ENTRIES, map(_EXTENT, extents[: _EXTENTS_MAX - 1]))))
        kept = bisect_left(list(ends), _ENTRIES_MAX) + 1
        if kept < len(extents):
            self.extents, others.extents = extents[:kept], extents[kept:]
            others.oldest = self.oldest
        return others

    def hand_out(self, segment: int, times: WriteTimes) -> None:
        """Give the owners of the extents, which are sorted, their results.

        All that concerns one log is done at once: a thousand of them are in no cache any more at a second look.
        """
        extents = self.extents
        last = len(extents) - 1
        for at, (_, extent) in enumerate(extents):
            owner = extent.owner
            extent.segment = segment
            try:
                owner.extent_durable(extent)
                owner.on_counted(extent, times)
            except Exception:
                log.exception(CALLBACK_FAILED)
            if at == last or extents[at + 1][1].owner is not owner:
                try:
                    owner.on_group()
                except Exception:
                    log.exception(CALLBACK_FAILED)

    def withdraw(self, unwritten: list[bytes], done: Done) -> None:
        """Leave these records out, and ``done``, which waits for them and for nothing else."""
        for record in unwritten:
            self.records.remove(record)
            self.kept.remove(record)
        with suppress(ValueError):  # called already
            self.waiters.remove((done, None))

    def measured(self) -> tuple[WriteTimes, int]:
        """How long it took, and how many entries it had."""
        times = WriteTimes((self.ended - self.oldest) * 1000, (self.ended - self.began) * 1000)
        return times, sum(map(len, map(_ENTRIES, map(_EXTENT, self.extents))))

    def __bool__(self) -> bool:
        return self.move is not None or self.pressing

    @property
    def pressing(self) -> bool:
        """Whether there is more than a move."""
        return bool(self.extents or self.records or self.cursors or self.waiters or self.feature_states)


def by_log(item: tuple[int, PendingExtent]) -> tuple[int, int]:
    """Sort extents by their logs, and those of one log as they came."""
    return item[0], item[1].ordinal


def call_all(callbacks: Iterable[Done]) -> None:
    """Call each; one that raises is logged and keeps no other from its turn."""
    for callback in callbacks:
        try:
            callback()
        except Exception:
            log.exception(CALLBACK_FAILED)
