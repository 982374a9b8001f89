"""Finding an entry by binary search over a log: the first that does not stand before what is wanted (rule 5.9.2).

Publish times are the producers' and may step back; like Apache Pulsar's, the search then finds one of the borders. An
entry that cannot be read says nothing: the next one that can speaks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from magnetar.broker.topic.ports import EntryRun, Log
from magnetar.protocol.stored_metadata import stored_publish_time

_UNTOLD_MAX: Final = 1000
"""Entries in a row that are asked before they count as not before."""

Answer = Callable[[int | Exception], None]


class FoundEntry(NamedTuple):
    ordinal: int
    """The ordinal in the log that was searched; its end if every entry stands before."""
    entry: bytes | None


def first_since(log: Log, publish_time_ms: int, done: Answer) -> None:
    """``done`` gets the ordinal (``log.end`` if all are older) or the error that reading met; maybe at once."""
    first_not(
        log,
        lambda entry: is_before(entry, publish_time_ms),
        lambda found: done(found if isinstance(found, Exception) else found.ordinal),
    )


def is_before(entry: bytes, publish_time_ms: int) -> bool | None:
    """Whether it was published before that time, None if it cannot be read."""
    time = stored_publish_time(entry)
    return None if time is None else time < publish_time_ms


def first_not(log: Log, before: Callable[[bytes], bool | None], done: Callable[[FoundEntry | Exception], None]) -> None:
    """The first entry that is not ``before``, of those that can be judged (not None); the log must be ordered by that.

    ``done`` gets the result, maybe at once.
    """
    _Search(log, before, done).step()


class _Search:
    """Entries below ``low`` stand before what is wanted, those from ``high`` on do not."""

    def __init__(
        self, log: Log, before: Callable[[bytes], bool | None], done: Callable[[FoundEntry | Exception], None]
    ) -> None:
        self._log = log
        self._before = before
        self._done = done
        self._low = log.first
        self._high = log.end
        self._entry: bytes | None = None
        self._untold = 0
        """Entries from the middle on that could not be judged."""

    def step(self) -> None:
        while self._low < self._high:
            middle = (self._low + self._high) // 2 + self._untold
            run = self._log.cached(middle, 1, 1)
            if run is None:
                self._log.read(middle, 1, 1, self._read)
                return
            self._judge(run)
        self._done(FoundEntry(self._low, self._entry))

    def _read(self, result: EntryRun | Exception) -> None:
        if isinstance(result, Exception):
            self._done(result)
            return
        self._judge(result)
        self.step()

    def _judge(self, run: EntryRun) -> None:
        entry = run.entries[0]
        before = self._before(entry)
        if before is None:
            self._untold += 1
            if run.first + 1 < self._high and self._untold < _UNTOLD_MAX:
                return
            # nothing from the middle on can be judged: what is wanted lies before, or is the first that could not be
            self._high = run.first + 1 - self._untold
        elif before:
            self._low = run.first + 1
        else:
            self._high = run.first - self._untold
            self._entry = entry
        self._untold = 0
