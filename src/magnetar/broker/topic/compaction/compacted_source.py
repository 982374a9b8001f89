"""A topic as a compacted reader sees it: the view up to its horizon, the log from there on (rule 5.9.13).

To the pump it is a log with gaps: a run may begin after what was asked for, and one without entries says only where
to go on. The place in the view is searched on disk once and then follows from the last read; what was read last is kept
until the next read.

Which view: the one that was current when reading began, to its end, then the log. A reader that changed over in the
middle would get the view's last values but not the deletions between the two horizons. It begins anew when it goes
back (seek, redelivery) or when the log lost what it wanted next.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable
from typing import Protocol

from magnetar.broker.topic.compaction.compacted_view import CompactedView, LastDone, unpack
from magnetar.broker.topic.position_search import Answer, first_since
from magnetar.model.ids import Position
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.ledgers.stored_run import StoredRun, cut

ReadDone = Callable[[StoredRun | Exception], None]


class ViewOwner(Protocol):
    """Where the current view comes from: the compactor."""

    @property
    def view(self) -> CompactedView | None: ...

    def unpinned(self) -> None:
        """A source has left a view."""
        ...


class CompactedSource:
    """For one subscription or one run of compaction. Implements :class:`magnetar.broker.topic.ports.Log`."""

    def __init__(self, log: ManagedLedger, views: ViewOwner) -> None:
        self.log = log
        self._views = views
        self._view: CompactedView | None = None
        """The one that is being read."""
        self._at = 0
        """Nothing below this is wanted unless the reader goes back."""
        self._raw = False
        """Whether the log itself is being read."""
        self._window: list[StoredRun] = []
        """What the last read of the view brought: all that stays in ``[_window_from, _window_to)``."""
        self._window_from = self._window_to = 0
        self._index = 0
        """Number in the view's log of the first entry after the window."""

    # the ends ----------------------------------------------------------------------------------------------------

    @property
    def first(self) -> int:
        """Lowest ordinal worth asking for."""
        return self.log.first if self._view is None and self._views.view is None else 0

    @property
    def end(self) -> int:
        """Ordinal after the last durable entry of the topic."""
        return self.log.end

    # reading -----------------------------------------------------------------------------------------------------

    def cached(self, start: int, entries_max: int, bytes_max: int) -> StoredRun | None:
        """Return, from memory, entries from ``start`` on, or where to go on."""
        view = self._choose(start)
        if view is None:
            if start < self.log.first:
                return gap(self.log.first)
            return self.log.cached(start, entries_max, bytes_max)
        if start == self._window_to and self._index:
            self._advance(view, entries_max, bytes_max)
        if not self._window_from <= start < self._window_to:
            return None
        window = self._window
        i = bisect_right(window, start, key=_first) - 1
        if i >= 0 and start < window[i].first + len(window[i].entries):
            return cut(window[i], start - window[i].first, entries_max, bytes_max)
        return window[i + 1] if i + 1 < len(window) else gap(self._window_to)

    def read(self, start: int, entries_max: int, bytes_max: int, done: ReadDone) -> None:
        """Read from disk; ``done`` gets a run. An empty one says that :meth:`cached` has it now."""
        view = self._choose(start)
        if view is None:
            self.log.read(start, entries_max, bytes_max, done)
        else:
            reading = _Reading(self, view, start, entries_max, bytes_max, done)
            # never at once: the caller is in the middle of a turn
            asyncio.get_running_loop().call_soon(reading.begin)

    def _advance(self, view: CompactedView, entries_max: int, bytes_max: int) -> None:
        """Move the window on if the next piece of the view is in memory."""
        if self._index >= view.log.end:
            self.keep(view, [], self._window_to, view.horizon, self._index)
            return
        run = view.log.cached(self._index, entries_max, bytes_max)
        if run is not None:
            runs = unpack(run)
            self.keep(view, runs, self._window_to, _end(runs[-1]), self._index + len(run.entries))

    def following(self, start: int) -> int | None:
        """Number, in the view's log, of the first entry from ``start`` on, if it is known without searching."""
        return self._index if self._index and start == self._window_to else None

    def keep(self, view: CompactedView, runs: list[StoredRun], start: int, stop: int, index: int) -> None:
        """Remember what was read of the view."""
        if view is self._view:
            self._window, self._window_from, self._window_to, self._index = runs, start, stop, index

    def _choose(self, start: int) -> CompactedView | None:
        """What ``start`` is to be read from; None is the log."""
        log, view = self.log, self._view
        back, self._at = start < self._at, start
        if not back and self._raw and start >= log.first:
            return None
        if not back and view is not None:
            if start < view.horizon:
                return view
            if start >= log.first:
                self._leave()
                self._raw = True
                return None
        self._leave()
        current = self._views.view
        self._raw = current is None or start >= current.horizon
        if self._raw or current is None:
            return None
        current.pins += 1
        self._view = current
        return current

    def last_compacted(self, shown: int, done: LastDone) -> bool:
        """Whether the last entry that may be seen, ``shown``, is compacted, or trimmed so that only the view is left.

        ``done`` gets the last that stays (rule 5.9.12).

        What follows it (open transactions, what is left of those that ended) is not to be waited for.
        """
        view = self._views.view
        if view is None or max(view.horizon, self.log.first) <= shown:
            return False
        view.last(done)
        return True

    def since(self, publish_time_ms: int, done: Answer) -> None:
        """Ordinal of the first entry that stays, or stands after the horizon, and is not older than that."""
        view = self._views.view
        if view is None:
            first_since(self.log, publish_time_ms, done)
            return

        def found(ordinal: int | Exception) -> None:
            if ordinal == view.horizon:
                first_since(
                    self.log, publish_time_ms, lambda o: done(o if isinstance(o, Exception) else max(o, view.horizon))
                )
            else:
                done(ordinal)

        view.since(publish_time_ms, found)

    def release(self) -> None:
        """Nothing is read here now: a view that was replaced need not be kept for this."""
        self._leave()
        self._raw = False

    def _leave(self) -> None:
        view, self._view = self._view, None
        self._window, self._window_from, self._window_to, self._index = [], 0, 0, 0
        if view is not None:
            view.pins -= 1
            self._views.unpinned()

    # positions ---------------------------------------------------------------------------------------------------

    def position(self, ordinal: int) -> Position:
        """(ledger, entry), also in a ledger that was trimmed if something of it stays."""
        view = self._views.view
        if view is not None and ordinal < self.log.first:
            found = view.position(ordinal)
            if found is not None:
                return found
        return self.log.position(ordinal)

    def ordinal(self, position: Position) -> int:
        """Ordinal of the first entry at or after ``position``."""
        view = self._views.view
        if view is not None and not self._retained(position):
            return view.ordinal(position) if position.ledger >= 0 else self.first
        return self.log.ordinal(position)

    def exact_ordinal(self, position: Position) -> int | None:
        """Ordinal of exactly this position, or None."""
        view = self._views.view
        if view is not None and not self._retained(position):
            return view.exact(position)
        return self.log.exact_ordinal(position)

    def _retained(self, position: Position) -> bool:
        ledgers = self.log.table.ledgers
        return bool(ledgers) and position.ledger >= ledgers[0].id


class _Reading:
    """One read of a view under way."""

    def __init__(
        self, source: CompactedSource, view: CompactedView, start: int, entries_max: int, bytes_max: int, done: ReadDone
    ) -> None:
        self._source = source
        self._view = view
        self._start = start
        self._entries_max = entries_max
        self._bytes_max = bytes_max
        self._done = done
        self._index = 0

    def begin(self) -> None:
        index = self._source.following(self._start)
        if index is None:
            self._view.index_of(self._start, self._found)
        else:
            self._found(index)

    def _found(self, index: int | Exception) -> None:
        view = self._view
        if isinstance(index, Exception):
            self._done(index)
        elif index >= view.log.end:
            self._source.keep(view, [], self._start, view.horizon, index)
            self._done(gap(self._start))
        else:
            self._index = index
            run = view.log.cached(index, self._entries_max, self._bytes_max)
            if run is not None:
                self._arrived(run)
            else:
                view.log.read(index, self._entries_max, self._bytes_max, self._arrived)

    def _arrived(self, result: StoredRun | Exception) -> None:
        if isinstance(result, Exception):
            self._done(result)
            return
        runs = unpack(result)
        self._source.keep(self._view, runs, self._start, _end(runs[-1]), self._index + len(result.entries))
        self._done(gap(self._start))


def gap(ordinal: int) -> StoredRun:
    """Nothing, and ``ordinal`` is where to go on."""
    return StoredRun(ordinal, -1, -1, [], None)


def _end(run: StoredRun) -> int:
    return run.first + len(run.entries)


def _first(run: StoredRun) -> int:
    return run.first
