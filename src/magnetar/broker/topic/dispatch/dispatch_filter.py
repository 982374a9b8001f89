"""What stands between a log and a subscription: how far it may be read, and which entries are not for consumers.

A topic without a rule has no filter, and its pump pays one ``is None`` per round. Each feature that has a rule (open
transactions, delayed messages, entries reserved by a pending acknowledgement) says it in one object, a
:class:`DispatchRule`; the :class:`DispatchFilter` of a subscription joins those that hold for its type. Everything is
asked in stretches of ordinals and *before* anything is read, so a million closed entries cost little and no disk.
An ordinal is

* **open**: it may be sent (if it is not acknowledged);
* **closed**: passed over now. It stays in the backlog. The feature that closed it calls ``Subscription.let_through``
  when it opens, otherwise it is not sent before the next rewind;
* **dead**: closed, and not for any consumer ever: the broker acknowledges it itself when the pump comes along
  (rule 5.9.15: markers, entries of aborted transactions).

Replays are asked too: an entry that was closed while it was out is taken from the replay queue instead of sent.

To use it: subclass :class:`DispatchRule`, override what you need, hand it to ``Subscriptions.add_dispatch_rule`` (all
subscriptions, also later ones) or ``Subscription.add_dispatch_rule`` (one), and report what changes:

* the readable end moved, entries became dead: ``Subscriptions.dispatch_filter_changed()``, or ``entries_appended()`` of
  the one subscription, once per group;
* entries opened that may have been passed over: ``let_through(ordinals)``, in the order in which they are to go out;
  with the rule if it does not hold for all types: the others have had those entries at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from magnetar.broker.topic.dispatch.late_queue import LateQueue
from magnetar.broker.topic.ports import SubscriptionCursor
from magnetar.model.subscription_types import SubType

STEPS: Final = 256
"""Stretches that are passed over before others have their turn."""
_STRETCH: Final = 1 << 14
"""The longest of them, and dead entries that are enough for one turn: a transaction may have left a million."""
_WINDOW: Final = 256


class DispatchRule:
    """One feature's say. Defaults: everything may be sent. All ranges are half-open, ``start < stop``."""

    counted = False
    """Whether ``delayed`` counts everything that is closed and not dead.

    Then lost entries can be distinguished from closed ones.
    """
    why = "entries are held back"
    """What ``magnetar explain`` says of entries beyond the readable end."""

    def holds_for(self, sub_type: SubType) -> bool:
        """Whether subscriptions of this type obey; asked whenever a subscription gets its first consumer."""
        return True

    def readable_end(self, end: int) -> int:
        """No entry from here on may be sent (nor passed over); at most ``end``."""
        return end

    def next_open(self, start: int, stop: int) -> int:
        """The first ordinal of the range that is open, or ``stop``."""
        return start

    def next_closed(self, start: int, stop: int) -> int:
        """The first ordinal of the range that is closed, or ``stop``."""
        return stop

    def dead(self, start: int, stop: int) -> Sequence[int]:
        """Those closed ordinals of the range that the broker acknowledges itself."""
        return ()

    def last_living(self, start: int, stop: int) -> int:
        """The last ordinal of the range that is not dead, or ``start - 1``."""
        while stop > start:
            low = max(start, stop - _WINDOW)
            dead = frozenset(self.dead(low, stop))
            while stop > low:
                if stop - 1 not in dead:
                    return stop - 1
                stop -= 1
        return start - 1

    def delayed(self, cursor: SubscriptionCursor, end: int) -> int:
        """Entries of this backlog that wait for their time, for statistics (rule 5.10.1)."""
        return 0


class DispatchFilter:
    """The reasons of one subscription, as its pump asks them."""

    def __init__(self) -> None:
        self.late = LateQueue()
        self._all: list[DispatchRule] = []
        self._holding: tuple[DispatchRule, ...] = ()

    def __bool__(self) -> bool:
        return bool(self._all)

    def add(self, rule: DispatchRule, sub_type: SubType | None) -> None:
        self._all.append(rule)
        self.choose(sub_type)

    def remove(self, rule: DispatchRule, sub_type: SubType | None) -> None:
        self._all.remove(rule)
        self.choose(sub_type)

    def choose(self, sub_type: SubType | None) -> None:
        """The subscription is of this type now."""
        self._holding = tuple(r for r in self._all if sub_type is None or r.holds_for(sub_type))

    def obeys(self, rule: DispatchRule) -> bool:
        """Whether ``rule`` holds for the type that the subscription has now."""
        return rule in self._holding

    @property
    def counted(self) -> bool:
        """Whether :attr:`DispatchRule.counted` is true of all rules that hold."""
        return all(rule.counted for rule in self._holding)

    def why_unreadable(self) -> str:
        """What the rules say that have a readable end below everything."""
        return "; ".join(rule.why for rule in self._holding if rule.readable_end(1 << 62) < 1 << 62)

    # -- asked by the pump -------------------------------------------------------------------------------------

    def readable_end(self, end: int) -> int:
        """What is durable may be read up to here."""
        for rule in self._holding:
            end = min(end, rule.readable_end(end))
        return end

    def next_open(self, start: int, stop: int) -> int:
        """The first ordinal of the range that is open to all rules, or ``stop``."""
        at, agreed = start, 0
        holding = self._holding
        while at < stop and agreed < len(holding):
            for rule in holding:
                found = rule.next_open(at, stop)
                agreed = agreed + 1 if found == at else 1
                at = found
                if at >= stop or agreed >= len(holding):
                    break
        return at

    def next_closed(self, start: int, stop: int) -> int:
        """The first ordinal of the range that a rule closes, or ``stop``."""
        for rule in self._holding:
            if start >= stop:
                break
            stop = rule.next_closed(start, stop)
        return stop

    def dead(self, start: int, stop: int) -> list[int]:
        """Closed ordinals of the range that the broker acknowledges itself, ascending."""
        found = [dead for rule in self._holding if (dead := rule.dead(start, stop))]
        return list(found[0]) if len(found) == 1 else sorted({ordinal for dead in found for ordinal in dead})

    def delayed(self, cursor: SubscriptionCursor, end: int) -> int:
        """Entries of this backlog that wait for their time."""
        return sum(rule.delayed(cursor, end) for rule in self._holding)

    def closed(self, start: int, stop: int) -> Iterable[tuple[int, int]]:
        """The closed stretches of a short range."""
        while start < stop:
            first = self.next_closed(start, stop)
            if first >= stop:
                return
            start = self.next_open(first, stop)
            yield first, start

    def pass_over(self, cursor: SubscriptionCursor, start: int, end: int) -> tuple[int, bool, list[int]]:
        """Walk from ``start`` to the first entry that is neither acknowledged nor closed.

        Returns where that is (or ``end``), whether it is the place or only as far as one turn goes, and the dead
        entries on the way.
        """
        dead: list[int] = []
        for _ in range(STEPS):
            start = cursor.next_unacknowledged(start)
            if start >= end:
                return end, True, dead
            at = self.next_open(start, min(start + _STRETCH, end))
            if at == start:
                return start, True, dead
            dead += self.dead(start, at)
            start = at
            if len(dead) >= _STRETCH:
                break
        return start, start >= end, dead


def last_visible(dispatch_rules: Sequence[DispatchRule], first: int, end: int) -> int:
    """The last ordinal that consumers may see, ``first - 1`` if none.

    Below every readable end, not dead (rule 5.9.12).
    """
    for rule in dispatch_rules:
        end = min(end, rule.readable_end(end))
    last = end - 1
    while last >= first:
        before = last
        for rule in dispatch_rules:
            last = rule.last_living(first, last + 1)
        if last == before:
            return last
    return first - 1
