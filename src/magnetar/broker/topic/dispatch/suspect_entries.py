"""Entries that a consumer had when its connection was lost: those with unreadable metadata are skipped.

The broker stores what producers send and unpacks none of it on its way to consumers. A client that cannot read the
metadata of a message closes its connection (the C++ client, and those made from it), and would get the same message
when it is back. So what was out when a connection ended is looked at before it goes out again. What cannot be read is
dead to the subscription: acknowledged, named in the log, and shown among the skipped entries (docs/decisions/070).
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from typing_extensions import override

from magnetar.broker.topic.dispatch.dispatch_filter import DispatchRule
from magnetar.broker.topic.dispatch.unreadable_ranges import UnreadableRanges
from magnetar.broker.topic.ports import EntryRun, SubscriptionCursor
from magnetar.protocol.stored_metadata import stored_publish_time
from magnetar.runtime.log import RateLimitedLog

_NOWHERE: Final = (0, 0)

_limited = RateLimitedLog(logging.getLogger(__name__))


class SuspectEntries(DispatchRule):
    """One subscription's, from the end of a connection until all of its entries were looked at or acknowledged."""

    counted = True

    def __init__(self, name: str, cursor: SubscriptionCursor, skipped: UnreadableRanges) -> None:
        self._name = name
        self._cursor = cursor
        self._skipped = skipped
        self.until = 0
        """Entries from here on were not out."""
        self._unreadable: list[int] = []
        """Found, and not acknowledged when the last ones were looked for; at most a run of them."""
        self._looked_at = _NOWHERE
        """Where none is that is not in the list."""

    def extend(self, until: int) -> None:
        """A connection ended that may have had any unacknowledged entry before this one."""
        self.until = max(self.until, until)
        self._looked_at = _NOWHERE

    def over(self, read_at: int, *, only_forward: bool) -> bool:
        """Whether there is nothing left to look at; ``only_forward``: what is before ``read_at`` goes out no more."""
        if self._cursor.mark_delete + 1 >= self.until:
            return True
        # without a look it has not been read again yet
        return only_forward and read_at >= self.until and self._looked_at != _NOWHERE

    def met(self, run: EntryRun, start: int, stop: int) -> int:
        """How many of these entries cannot be read; they are dead from now on."""
        stop = min(stop, self.until, run.first + len(run.entries))
        known_from, known_to = self._looked_at
        if start >= stop or (known_from <= start and stop <= known_to):
            return 0
        first, entries, acknowledged = run.first, run.entries, self._cursor.acknowledged
        found = [
            ordinal
            for ordinal in range(start, stop)
            if stored_publish_time(entries[ordinal - first]) is None and not acknowledged(ordinal)
        ]
        self._looked_at = (known_from if known_to == start else start, stop)
        if new := sorted({*found}.difference(self._unreadable)):
            self._unreadable = sorted({*new, *(old for old in self._unreadable if not acknowledged(old))})
            self._skipped.add(new)
            where = f"{run.ledger}:{run.entry + new[0] - first}"
            text = "subscription %s: %d messages, the first of them %s, have metadata that no client can read: skipped"
            _limited.warning(self._name, text, self._name, len(new), where, extra={"subscription": self._name})
        return len(new)

    # asked by the dispatch filter --------------------------------------------------------------------------------

    @override
    def next_open(self, start: int, stop: int) -> int:
        at = bisect_left(self._unreadable, start)
        for ordinal in self._unreadable[at:]:
            if ordinal != start or start >= stop:
                break
            start += 1
        return start

    @override
    def next_closed(self, start: int, stop: int) -> int:
        at = bisect_left(self._unreadable, start)
        return min(self._unreadable[at], stop) if at < len(self._unreadable) else stop

    @override
    def dead(self, start: int, stop: int) -> Sequence[int]:
        return self._unreadable[bisect_left(self._unreadable, start) : bisect_left(self._unreadable, stop)]
