"""Delayed delivery of one topic: notices it at publish, keeps it on disk, closes what is not due (rules of group 7).

Theory of operation. A message with deliver_at_time is stored like any other. That it is delayed, and until when, goes
into the feature state ``delays`` in the same group as the entry itself: a restart reads that, not the backlog. While
entries are not due they are closed for Shared and Key_Shared subscriptions (rule 7.2); one timer of the topic opens
what became due and lets it through to the subscriptions, by time, then by position. Acknowledging, skipping, expiring
and seeking work on cursors and need nothing from here; an entry that has gone out once is due and never closed again
(rule 7.12).

Strict: nothing goes out before its time, and it goes out at its time (at most 10 ms and one turn of the loop later).
Not strict (rule 7.4): what is due within one tick goes at once, and a wake-up takes everything due within the next
tick.

A topic pays for this once per single message that is published (a search for two bytes in its metadata), and with a
dispatch filter while something is delayed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from typing_extensions import override

from magnetar.broker.delivery.delay_index import DelayIndex, pairs_of
from magnetar.broker.topic.dispatch.dispatch_filter import DispatchRule
from magnetar.broker.topic.ports import SubscriptionCursor
from magnetar.broker.topic.topic_feature import TopicFeature
from magnetar.model.errors import NotAllowedError
from magnetar.model.subscription_types import SubType
from magnetar.protocol.entries import DELIVER_AT, deliver_at
from magnetar.runtime.clock import Clock
from magnetar.storage.ledgers.feature_state import FeatureState, StateChange

if TYPE_CHECKING:
    from magnetar.model.topic_policies import DelayedDelivery, TopicPolicies
    from magnetar.storage.ledgers.managed_ledger import ManagedLedger

log = logging.getLogger(__name__)

DELAYS: Final = "delays"
_BATCH: Final = 5_000
"""Entries that one wake-up opens at most, times subscriptions to which they go; the next one follows at once."""
_BATCH_LEAST: Final = 20
"""But so many entries, however many subscriptions there are."""
_REST_S: Final = 0.01
"""The least time from one wake-up to the next."""
_NAP_S: Final = 60.0
"""And at most: the clock of the computer may be set."""


class DelayState:
    """What the feature state holds: (ordinal, time) of what is delayed.

    Entries that were not due when it was loaded.
    """

    def __init__(self, on_durable: Callable[[], None]) -> None:
        self.index = DelayIndex()
        self.on_durable = on_durable
        self._waiting: list[tuple[int, int]] = []
        self._writing: list[tuple[int, int]] = []

    def note(self, ordinal: int, time_ms: int) -> None:
        """An entry that was just appended; the feature state has to be touched in the same turn of the loop."""
        self._waiting.append((ordinal, time_ms))

    def changes(self) -> StateChange | None:
        """New entries of this group."""
        self._writing, self._waiting = self._waiting, []
        return StateChange(pairs_of(self._writing)) if self._writing else None

    def durable(self) -> None:
        """The new pairs are on disk; this comes before the entries themselves are announced."""
        written, self._writing = self._writing, []
        for ordinal, time_ms in written:
            self.index.add(ordinal, time_ms)
        self.on_durable()

    def lost(self) -> None:
        """The new pairs did not reach the disk, and neither did their entries."""
        self._waiting.clear()

    def snapshot(self) -> bytes:
        return self.index.dump()


class DelayedTopic(Protocol):
    """The topic's subscriptions, as this sees them."""

    def __len__(self) -> int:
        """How many subscriptions it has."""
        ...

    def add_dispatch_rule(self, rule: DispatchRule) -> None: ...
    def remove_dispatch_rule(self, rule: DispatchRule) -> None: ...
    def let_through(self, ordinals: Sequence[int], rule: DispatchRule | None = None) -> None: ...


class Delays(DispatchRule, TopicFeature):
    """One per loaded topic. ``append`` takes the place of the log's while the policy says that delays are honoured."""

    counted = True

    def __init__(
        self, topic: DelayedTopic, ledger: ManagedLedger, clock: Clock, policy: DelayedDelivery, strict: bool
    ) -> None:
        self._topic = topic
        self._log = ledger
        self._plain = ledger.append
        self._clock = clock
        self._policy = policy
        self._strict = strict
        self._state: DelayState | None = None
        self._feature_state: FeatureState | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._woken_s = -_REST_S
        self._gating = False
        feature_state = ledger.feature_states.get(DELAYS)
        if policy.active and feature_state is not None and feature_state.exists:
            self._open(forget_below=ledger.first)

    @property
    def index(self) -> DelayIndex | None:
        """None: nothing was ever delayed here since the topic was loaded."""
        return None if self._state is None else self._state.index

    @property
    def memory_bytes(self) -> int:
        """About what the index takes."""
        return self._state.index.memory_bytes if self._state is not None and self._state.index.closed else 0

    @override
    def policies_changed(self, before: TopicPolicies, now: TopicPolicies) -> None:
        """Take the new policy; what is delayed already stays so."""
        self._policy = now.delayed_delivery

    @override
    def close(self) -> None:
        """The topic is let go; the index stays with the log."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._state is not None:
            self._state.on_durable = _nothing

    # publishing -----------------------------------------------------------------------------------------------------

    @property
    def append(self) -> Callable[[bytes, int, object], int]:
        """How entries get into the log."""
        return self._append if self._policy.active else self._plain

    def _append(self, entry: bytes, messages: int, tag: object) -> int:
        """Append like ``ManagedLedger.append``. Raises NotAllowedError if the delay is too long (rule 7.10)."""
        # the search is not a call, it runs once per message; a batch is delayed as a whole, though clients never delay
        # one (rule 7.11)
        if entry.find(DELIVER_AT, 10, 10 + (entry[7] << 16 | entry[8] << 8 | entry[9])) < 0:
            return self._plain(entry, messages, tag)
        time_ms = deliver_at(entry)
        if not time_ms:
            return self._plain(entry, messages, tag)
        now, policy = self._clock.now_ms(), self._policy
        if 0 < policy.max_delay_ms < time_ms - now:
            raise NotAllowedError(f"Exceeds max allowed delivery delay of {policy.max_delay_ms} milliseconds")
        ordinal = self._plain(entry, messages, tag)
        if time_ms > self._horizon(now):
            # the policy was off when the topic was loaded: what was delayed before has gone out
            state = self._state or self._open(forget_below=ordinal)
            state.note(ordinal, time_ms)
            assert self._feature_state is not None
            self._feature_state.touch()
        return ordinal

    def _horizon(self, now_ms: int) -> int:
        """What is due up to then may go out."""
        return now_ms if self._strict else now_ms + self._policy.tick_ms

    # the index ------------------------------------------------------------------------------------------------------

    def _open(self, forget_below: int) -> DelayState:
        feature_state = self._feature_state = self._log.feature_state(DELAYS)
        state = self._state = feature_state.open(self._restore)
        state.on_durable = self._added
        state.index.forget_below(forget_below)
        self._added()
        return state

    def _restore(self, snapshot: bytes | None, changes: Sequence[bytes]) -> DelayState:
        state = DelayState(_nothing)
        now = self._clock.now_ms()
        try:
            if snapshot is not None:
                state.index.load(snapshot, now)
            for change in changes:
                state.index.load_pairs(change, now)
        except ValueError as error:
            name = self._log.name
            log.error("topic %s: its delayed messages go out at once: %s", name, error, extra={"topic": name})
        return state

    def _added(self) -> None:
        """Entries are in the index that may be the next ones."""
        assert self._state is not None
        due = self._state.index.next_due()
        if due is None:
            return
        if not self._gating:
            self._gating = True
            self._topic.add_dispatch_rule(self)
        if self._timer is None or due < self._timer_ms:
            self._arm(due)

    def _arm(self, due_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        rest = self._woken_s + _REST_S - loop.time()
        wait = min(max((due_ms - self._clock.now_ms()) / 1000, rest, 0.0), _NAP_S)
        self._timer_ms = due_ms
        self._timer = loop.call_later(wait, self._wake)

    def _wake(self) -> None:
        self._timer = None
        assert self._state is not None
        index = self._state.index
        now = self._clock.now_ms()
        first = self._log.first
        index.forget_below(first)
        due = index.next_due()
        if due is not None and due <= now:
            most = max(_BATCH // max(len(self._topic), 1), _BATCH_LEAST)
            opened = index.take_due(self._horizon(now), most)
            if len(opened) < most:
                self._woken_s = asyncio.get_running_loop().time()
            self._topic.let_through(opened, self)
        due = index.next_due()
        if due is not None:
            self._arm(due)
        elif self._gating:
            self._gating = False
            self._topic.remove_dispatch_rule(self)

    # what the dispatch filter asks ---------------------------------------------------------------------------------

    @override
    def holds_for(self, sub_type: SubType) -> bool:
        return sub_type in (SubType.Shared, SubType.Key_Shared)

    @override
    def next_open(self, start: int, stop: int) -> int:
        return self._state.index.closed.next_clear(start, stop) if self._state is not None else start

    @override
    def next_closed(self, start: int, stop: int) -> int:
        return self._state.index.closed.next_set(start, stop) if self._state is not None else stop

    @override
    def delayed(self, cursor: SubscriptionCursor, end: int) -> int:
        if self._state is None:
            return 0
        closed = self._state.index.closed
        return closed.count(cursor.mark_delete + 1, end) - cursor.acknowledged_of(closed, end)


def _nothing() -> None: ...
