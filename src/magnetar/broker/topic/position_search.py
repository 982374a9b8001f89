"""Finding the first entry published at or after a time: binary search over a log's entries (SEMANTICS 5.9.2).

Publish times are the producers' and may step back; like Apache Pulsar's, the search then finds one of the borders.
"""

from __future__ import annotations

from collections.abc import Callable

from magnetar.broker.topic.ports import Log, Run
from magnetar.protocol.entries import publish_time

Answer = Callable[[int | Exception], None]


def first_since(log: Log, publish_time_ms: int, done: Answer) -> None:
    """``done`` gets the ordinal (``log.end`` if all are older) or the error that reading met; maybe at once."""
    _Search(log, publish_time_ms, done).step()


class _Search:
    """Entries below ``low`` are older, those from ``high`` on are not."""

    def __init__(self, log: Log, publish_time_ms: int, done: Answer) -> None:
        self._log = log
        self._wanted = publish_time_ms
        self._done = done
        self._low = log.first
        self._high = log.end

    def step(self) -> None:
        while self._low < self._high:
            middle = (self._low + self._high) // 2
            run = self._log.cached(middle, 1, 1)
            if run is None:
                self._log.read(middle, 1, 1, self._read)
                return
            self._judge(run)
        self._done(self._low)

    def _read(self, result: Run | Exception) -> None:
        if isinstance(result, Exception):
            self._done(result)
            return
        self._judge(result)
        self.step()

    def _judge(self, run: Run) -> None:
        if publish_time(run.entries[0]) < self._wanted:
            self._low = run.first + 1
        else:
            self._high = run.first
