"""Reads for a dispatcher and has sent what it decides: the inner loop of a subscription.

One round: replay first (rule 5.5.5), then new entries from ``read_at``. What memory has is sent in the same turn
of the loop; after ``turn_entries_max`` entries the rest waits for the next turn, so one subscription cannot starve the
others. At most one disk read is under way; when it returns, the loop goes on. There is no task and no callback per
entry: work is done on runs and slices of runs.

Acknowledged entries (holes) are skipped. Ordinals below the log's first are gone: a cursor before it jumps (rule
4.3.2).

With a :class:`DispatchFilter` a round first sorts out what is closed in a replay, then sends what was passed over and
is open now, then goes on with new entries up to the readable end, past those that are closed.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence

from magnetar.broker.delivery.dispatchers.dispatcher import Dispatcher
from magnetar.broker.delivery.dispatchers.shared_chunks import SharedChunks
from magnetar.broker.topic.dispatch.batch_sizes import BatchSizes, live_counts
from magnetar.broker.topic.dispatch.dispatch_filter import STEPS, DispatchFilter, DispatchRule
from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.broker.topic.dispatch.dispatch_throttle import DispatchThrottle
from magnetar.broker.topic.dispatch.entry_reads import EntryReads
from magnetar.broker.topic.dispatch.entry_sender import EntrySender
from magnetar.broker.topic.dispatch.members import Members
from magnetar.broker.topic.dispatch.unreadable_ranges import UnreadableRanges
from magnetar.broker.topic.ports import EntryRun, Log, SubscriptionCursor
from magnetar.runtime.clock import Clock


class Pump:
    """Owned by one subscription, on one loop. ``turn()`` may be called at any time, also from within a turn."""

    __slots__ = (
        "_clock", "_closed", "_cursor", "_log", "_next_turn", "_settings", "_sticky_keys", "_topic_log", "_turning",
        "consumers", "dispatch_filter", "members", "on_acknowledged", "read_at", "reads", "run_at", "sender", "sizes",
        "throttle",
    )  # fmt: skip

    def __init__(
        self,
        source: Log,
        cursor: SubscriptionCursor,
        settings: DispatchSettings,
        clock: Clock,
        sticky_keys: Callable[[Sequence[bytes]], list[bytes]],
        members: Members,
    ) -> None:
        self.members = members
        self.consumers = members.by_state
        self.dispatch_filter: DispatchFilter | None = None
        self.on_acknowledged: Callable[[], None] = _nothing
        """The pump acknowledged something itself: entries that the dispatch filter calls dead."""
        self._clock = clock
        self.read_at = cursor.next_unacknowledged(cursor.mark_delete + 1)
        """Ordinal of the next new entry."""
        self.sizes = BatchSizes(source)
        """Batch sizes of the topic's own entries."""
        self._log = self._topic_log = source
        self._cursor = cursor
        self.sender = EntrySender(self.consumers, cursor, clock)
        self._settings = settings
        self._sticky_keys = sticky_keys
        self.reads = EntryReads(members, source, cursor, settings, self)
        self.run_at: Callable[[int, int], EntryRun | None] = self.reads.run_at
        """Where entries come from; a limit of rates puts itself in between."""
        self.throttle: DispatchThrottle | None = None
        """None: no limit of rates."""
        self._turning = False
        self._next_turn: asyncio.Handle | None = None
        self._closed = False

    @property
    def end(self) -> int:
        """Ordinal after the last entry that may be read."""
        end = self._log.end
        return end if self.dispatch_filter is None else self.dispatch_filter.readable_end(end)

    @property
    def dispatcher(self) -> Dispatcher | None:
        """What chooses the consumers; None before the first one."""
        return self.members.dispatcher

    @property
    def unreadable(self) -> UnreadableRanges:
        """What of the backlog is damaged on disk, and what was skipped for that."""
        return self.reads.unreadable

    def next_ahead(self) -> int | None:
        """The next new entry that may be sent, as far as one turn of the loop can see; changes nothing."""
        end = self.end
        start = self._cursor.next_unacknowledged(max(self.read_at, self._log.first))
        if start < end and self.dispatch_filter is not None:
            start, found, _ = self.dispatch_filter.pass_over(self._cursor, start, end)
            if not found:
                return None
        return start if start < end else None

    def delayed(self) -> int:
        """Entries of the backlog that wait for their time."""
        dispatch_filter = self.dispatch_filter
        return dispatch_filter.delayed(self._cursor, self._log.end) if dispatch_filter else 0

    def take_settings(self, settings: DispatchSettings) -> None:
        """Obey these from now on."""
        self._settings = self.reads.settings = settings

    def let_through(self, ordinals: Iterable[int], rule: DispatchRule | None = None) -> None:
        """These entries are open now and are sent, in this order, unless they are acknowledged.

        ``rule``: the one that had closed them; nothing happens if it does not hold for this subscription's type. Those
        that a consumer has are taken from it without counting a redelivery; what the pump has not reached yet it will
        find by itself.
        """
        dispatcher, dispatch_filter = self.members.dispatcher, self.dispatch_filter
        if dispatcher is None or dispatch_filter is None or not self.consumers:
            return
        if rule is None or dispatch_filter.obeys(rule):
            read_at, cursor = self.read_at, self._cursor
            passed = [ordinal for ordinal in ordinals if ordinal < read_at and not cursor.acknowledged(ordinal)]
            dispatch_filter.late.extend(dispatcher.take_back(passed))
            self.turn()

    def restart(self) -> None:
        """Forget what is under way and begin again: for a subscription that stands still and should not."""
        self._cancel_next_turn()
        self._turning = False
        self.reads.restart()
        self.turn()

    def rewind(self) -> None:
        """Read again from the first unacknowledged entry."""
        self._jump_trimmed()
        self.reads.rewound_from(self.read_at)
        self.read_at = self._cursor.next_unacknowledged(self._cursor.mark_delete + 1)
        if self.dispatch_filter is not None:
            self.dispatch_filter.late.clear()

    def read_through(self, source: Log) -> None:
        """Read from there from now on, from the first unacknowledged entry."""
        self._log = source
        self.reads.change_source(source)
        self.rewind()

    def close(self) -> None:
        """Nothing is sent any more; a read under way is ignored when it returns."""
        self._closed = True
        self.on_acknowledged = _nothing
        self.dispatch_filter = None
        if self.throttle is not None:
            self.throttle.close()
        self._cancel_next_turn()
        self.reads.close()

    def _cancel_next_turn(self) -> None:
        if self._next_turn is not None:
            self._next_turn.cancel()
            self._next_turn = None

    def turn(self) -> int:
        """Send what can be sent now; the number of entries dealt with."""
        dispatcher = self.members.dispatcher
        if self._turning or self._closed or dispatcher is None or self._next_turn is not None:
            return 0
        if dispatcher.only_forward and (passed := self._pass_on(dispatcher)):
            return passed
        self._turning = True
        dispatcher.new_turn()
        most = left = self._settings.turn_entries_max
        try:
            while (done := self._round(dispatcher) or self.reads.met_suspects()) > 0:
                if (left := left - done) <= 0:
                    self._next_turn = asyncio.get_running_loop().call_soon(self._go_on)
                    break
        finally:
            self._turning = False
            out = 0 if dispatcher.in_replay else self.read_at
            self.reads.let_go(out if self.consumers else self._log.end)
        return most - left

    def _pass_on(self, dispatcher: Dispatcher) -> int:
        """Send what has just become durable, in one piece, if nothing else is to be looked at: how much, if that was
        all.

        It decides what the rounds would decide, and is most of what a thousand topics in turn have to do for each. Only
        from the topic's own log: a compacted source remembers what it was asked for, even if no consumer takes it.
        """
        source, cursor, sender, start = self._log, self._cursor, self.sender, self.read_at
        if (
            start >= (end := source.end) or start < source.first or self.dispatch_filter is not None
            or self.throttle is not None or source is not self._topic_log
            or sender.chunk_of is not None or sender.parts.has_partial_batches
        ):  # fmt: skip
            return 0
        run = source.cached(start, end - start, self._settings.dispatcher_max_read_size_bytes)
        if run is None or run.counts is not None:
            return 0
        entries = run.entries
        count = len(entries)
        stop = start + count
        if stop != end or cursor.next_unacknowledged(start) != start or cursor.next_acknowledged(start, stop) != stop:
            return 0
        active = dispatcher.take_all(count)
        if active is None:
            return 0
        self.read_at = stop
        consumer = self.consumers[active]
        consumer.connection.deliver(run, 0, count, consumer.epoch)
        size = len(entries[0]) if count == 1 else sum(map(len, entries))
        sender.sent(consumer, count, count, size, self._clock.now_ms())
        return count

    def _go_on(self) -> None:
        self._next_turn = None
        self.turn()

    def _round(self, dispatcher: Dispatcher) -> int:
        """Entries dealt with; 0 when nothing more can be done before something happens."""
        if self.dispatch_filter is not None:
            return self._filtered_round(dispatcher, self.dispatch_filter)
        plan = dispatcher.plan_replay()
        if plan:
            return self._replay(dispatcher, plan)
        source = self._log
        if self.read_at >= source.end or not (wanted := dispatcher.wanted()):
            return 0
        if self.read_at < source.first:
            self._jump_trimmed()
        start = self._cursor.next_unacknowledged(self.read_at)
        if start >= source.end:
            self.read_at = max(self.read_at, min(start, source.end))
            return 0
        self.read_at = start
        self.read_at = self._give(dispatcher, start, min(start + wanted, source.end))
        return self.read_at - start

    def _filtered_round(self, dispatcher: Dispatcher, dispatch_filter: DispatchFilter) -> int:
        suspects = self.reads.suspects
        if suspects is not None and suspects.over(self.read_at, only_forward=dispatcher.only_forward):
            self.reads.suspects = None
            dispatch_filter.remove(suspects, self.members.sub_type)
        if not dispatch_filter and not dispatch_filter.late:
            self.dispatch_filter = None
            return self._round(dispatcher)
        plan = dispatcher.plan_replay()
        if plan:
            return 1 if self._sort_out(dispatcher, dispatch_filter, plan) else self._replay(dispatcher, plan)
        if not (wanted := dispatcher.wanted()):
            return 0
        if self.read_at < self._log.first:
            self._jump_trimmed()
        if dispatch_filter.late:
            return self._send_late(dispatcher, dispatch_filter, wanted)
        end = dispatch_filter.readable_end(self._log.end)
        if self.read_at >= end:
            return 0
        start, found, dead = dispatch_filter.pass_over(self._cursor, self.read_at, end)
        self.read_at = start
        if dead:
            self._cursor.acknowledge(dead)  # from here on nothing is out or queued: no dispatcher has to look for it
            self.on_acknowledged()
        if start >= end:
            return 0
        if not found:
            return max(STEPS, len(dead))
        self.read_at = self._give(dispatcher, start, min(start + wanted, end))
        return self.read_at - start

    def _sort_out(self, dispatcher: Dispatcher, dispatch_filter: DispatchFilter, plan: list[int]) -> bool:
        """Whether something that was to be replayed at the front of ``plan`` is closed; it is taken out."""
        start = plan[0]
        stop = min(plan[-1] + 1, start + self._settings.dispatcher_max_read_batch_size)
        changed = False
        for low, high in dispatch_filter.closed(start, stop):
            changed |= dispatcher.withdraw(range(low, high))
        if changed and (dead := dispatch_filter.dead(start, stop)):
            self._bury(dead)
        return changed

    def _bury(self, dead: list[int]) -> None:
        """Acknowledge what is for no consumer; one may have some of it."""
        self._cursor.acknowledge(dead)
        dispatcher = self.members.dispatcher
        if dispatcher is not None and self.consumers:
            dispatcher.acknowledged(next(iter(self.consumers)), dead)
        self.on_acknowledged()

    def _send_late(self, dispatcher: Dispatcher, dispatch_filter: DispatchFilter, wanted: int) -> int:
        """Send the first consecutive ones of what was passed over; entries dealt with."""
        late, cursor = dispatch_filter.late, self._cursor
        front = late.front(wanted)
        start = front[0]
        gone = start < self._log.first or cursor.acknowledged(start) or dispatcher.has(start)
        if gone or dispatch_filter.next_open(start, start + 1) != start:
            late.drop(1)
            if not gone:
                self._bury(dispatch_filter.dead(start, start + 1))
            return 1
        stop = start + 1
        for ordinal in front[1:]:
            if ordinal != stop or dispatcher.has(ordinal):
                break
            stop += 1
        reached = self._give(dispatcher, start, stop)
        late.drop(min(reached, stop) - start)
        return reached - start

    def _give(self, dispatcher: Dispatcher, start: int, stop: int) -> int:
        """Let the dispatcher assign unacknowledged entries from ``start`` on, send them; the ordinal after the last.

        ``start`` itself if no consumer takes one or the disk has to be asked first.
        """
        run = self.run_at(start, stop - start)
        if run is None:
            return start
        if run.first > start:
            # only a compacted topic has gaps; what is in one is as good as acknowledged
            return run.first
        stop = min(run.first + len(run.entries), stop)
        if stop > start + 1:
            stop = self._cursor.next_acknowledged(start, stop)
            if self.dispatch_filter is not None:
                stop = self.dispatch_filter.next_closed(start, stop)
        low, high = start - run.first, stop - run.first
        key_slot = dispatcher.key_slot
        slots = None
        if key_slot is not None:
            slots = list(map(key_slot, self._sticky_keys(run.entries[low:high])))
        sender = self.sender
        if sender.chunk_of is not None and isinstance(dispatcher, SharedChunks):
            dispatcher.note_chunks(start, list(map(sender.chunk_of, run.entries[low:high])))
        slices, reached = dispatcher.assign(start, stop, live_counts(run, low, high, self.sizes, sender.parts), slots)
        if slices:
            send, counts = self.sender.send, dispatcher.redelivery_counts()
            for piece in slices:
                send(run, piece, counts)
        return reached

    def _replay(self, dispatcher: Dispatcher, plan: list[int]) -> int:
        start = plan[0]
        if start < self._log.first:
            dispatcher.acknowledged_until(self._log.first - 1)
            return 1
        reach = start + self._settings.dispatcher_max_read_batch_size
        span = plan[bisect_left(plan, reach) - 1] + 1 - start
        run = self.run_at(start, span)
        if run is None:
            return 0
        low = start - run.first
        high = min(len(run.entries), low + span)
        slices = dispatcher.replay(start, run.first + high, live_counts(run, low, high, self.sizes, self.sender.parts))
        if slices:
            send, counts = self.sender.send, dispatcher.redelivery_counts()
            for piece in slices:
                send(run, piece, counts)
        sent = sum(piece.stop - piece.start for piece in slices)
        return sent or int(dispatcher.plan_replay() != plan)

    def skip_unreadable(self) -> int:
        """What cannot be read and is in the way counts as acknowledged; how many entries that were not."""
        left = self.reads.skip_unreadable()
        self._bury(left)
        self.turn()
        return len(left)

    def _jump_trimmed(self) -> None:
        if self._cursor.mark_delete < self._log.first - 1:
            self._cursor.trimmed()
        self.read_at = max(self.read_at, self._log.first)


def _nothing() -> None: ...
