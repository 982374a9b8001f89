"""What keeps a subscription within its limits of rates: a stand-in for the source of its pump's entries (rule 14.6).

A pump without limits takes entries from ``EntryReads.run_at`` and counts what went out by ``Consumer.sent``. A throttle
takes the place of both: it hands out no more of a run than the limits have room for, charges what was sent to each of
them, and hands out nothing while one is used up, which to the pump is a disk that has not answered. It then
stands in the line of the limit that takes longest, and turns the pump when it is woken (docs/decisions/036).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from magnetar.broker.throttling.rate_limit import LimitLevel, RateLimit
from magnetar.broker.topic.dispatch.consumer import Consumer
from magnetar.broker.topic.dispatch.entry_reads import EntryReads
from magnetar.broker.topic.dispatch.entry_sender import EntrySender
from magnetar.broker.topic.ports import EntryRun, SubscriptionCursor
from magnetar.storage.ledgers.stored_run import StoredRun

CAUGHT_UP_ENTRIES: Final = 1000
"""Up to this backlog a subscription counts as keeping up (Pulsar's managedLedgerCursorBackloggedThreshold)."""


class ThrottledPump(Protocol):
    """What a throttle needs of the pump."""

    reads: EntryReads
    run_at: Callable[[int, int], EntryRun | None]
    sender: EntrySender
    throttle: DispatchThrottle | None

    def turn(self) -> object:
        """Send what can be sent now."""
        ...


class DispatchThrottle:
    """One subscription's, while it has a limit. Stands in its pump while there are limits."""

    __slots__ = (
        "_also_caught_up", "_charged", "_cursor", "_entries_for_messages", "_progress", "_pump", "_served", "limits",
        "times", "waits_for",
    )  # fmt: skip

    def __init__(self, pump: ThrottledPump, cursor: SubscriptionCursor) -> None:
        self._pump = pump
        self._cursor = cursor
        self.limits: tuple[RateLimit, ...] = ()
        """From the narrowest to the widest."""
        self.waits_for: RateLimit | None = None
        """The limit in whose line it stands."""
        self.times: dict[tuple[LimitLevel, bool], int] = {}
        """How often it had to wait, by level and whether for bytes."""
        self._entries_for_messages = False
        self._also_caught_up = True
        self._charged = True
        """Whether what is sent now counts."""
        self._progress = False
        """Whether it has sent something since it was woken."""
        self._served: set[RateLimit] = set()
        """The limits that have called it since it last sent something: it stands in none of their lines again."""

    def set_limits(
        self, limits: tuple[RateLimit, ...], *, entries_for_messages: bool = False, also_caught_up: bool = True
    ) -> None:
        """Obey these from now on; what waited for another one goes on."""
        self._entries_for_messages = entries_for_messages
        self._also_caught_up = also_caught_up
        pump = self._pump
        if limits != self.limits:
            self._leave()
            self.limits = limits
        if limits:
            pump.throttle, pump.run_at, pump.sender.sent = self, self.run_at, self.sent
        else:
            self._let_go()
        pump.turn()

    def close(self) -> None:
        """The pump sends nothing any more."""
        self._leave()
        self._let_go()

    def _let_go(self) -> None:
        pump = self._pump
        pump.throttle, pump.run_at, pump.sender.sent = None, pump.reads.run_at, Consumer.sent

    def _leave(self) -> None:
        if self.waits_for is not None:
            self.waits_for.leave(self)
            self.waits_for = None

    # in place of the pump's own ------------------------------------------------------------------------------------

    def run_at(self, start: int, entries_max: int) -> EntryRun | None:
        """As much of the run that covers ``start`` as may be sent now; None: wait for the disk or for a limit."""
        if self.waits_for is not None:
            return None
        run = self._pump.reads.run_at(start, entries_max)
        if run is None or run.first > start:
            return run
        self._charged = self._also_caught_up or self._cursor.backlog() > CAUGHT_UP_ENTRIES
        if not self._charged:
            return run
        messages = size = _EVERYTHING
        slowest, longest = None, -1.0
        for limit in self.limits:
            room = limit.room()
            if room is None or (limit.waiting and limit not in self._served):
                wait = limit.wait_s()
                if wait > longest:
                    slowest, longest = limit, wait
            else:
                messages, size = min(messages, room[0]), min(size, room[1])
        if slowest is not None:
            why = slowest.level, slowest.by_bytes
            self.times[why] = self.times.get(why, 0) + 1
            self.waits_for = slowest
            slowest.wait(self)
            return None
        return self._part(run, start, entries_max, messages, size)

    def _part(self, run: EntryRun, start: int, entries_max: int, messages: int, size: int) -> EntryRun:
        """Entries as long as there is room before them: the last one may be larger than what was left."""
        entries, low = run.entries, start - run.first
        high = min(len(entries), low + entries_max)
        counts = None if self._entries_for_messages else run.counts
        if counts is None:
            high = min(high, low + messages)
        if counts is not None or size < _EVERYTHING:
            for index in range(low, high):
                messages -= 1 if counts is None else counts[index]
                size -= len(entries[index])
                if messages <= 0 or size <= 0:
                    high = index + 1
                    break
        if low == 0 and high == len(entries):
            return run
        if run.counts is None:
            return StoredRun(start, run.ledger, run.entry + low, entries[low:high], None, run.message_index + low)
        before, part = run.counts[:low], run.counts[low:high]
        return StoredRun(start, run.ledger, run.entry + low, entries[low:high], part, run.message_index + sum(before))

    def sent(self, consumer: Consumer, entries: int, messages: int, size: int, now_ms: int) -> None:
        """Count what went out, and charge it to all limits."""
        Consumer.sent(consumer, entries, messages, size, now_ms)
        if self._charged:
            self._progress = True
            charged = entries if self._entries_for_messages else messages
            for limit in self.limits:
                limit.charge(charged, size)

    # waiting -----------------------------------------------------------------------------------------------------

    def wake(self) -> bool:
        """A limit has room: send what it has room for."""
        served, self.waits_for = self.waits_for, None
        if served is not None:
            self._served.add(served)
        self._progress = False
        self._pump.turn()
        if self._progress or self.waits_for is None:
            self._served.clear()
        return False

    @property
    def waiting(self) -> bool:
        """Whether a limit holds it up, and is going to wake it."""
        return self.waits_for is not None and self.waits_for.will_wake(self)


_EVERYTHING: Final = 1 << 62
