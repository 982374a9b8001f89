"""Notices that a subscription's mark-delete position has moved: for statistics, and for the end of the topic."""

from __future__ import annotations

from magnetar.broker.topic.dispatch.members import Members
from magnetar.broker.topic.ports import SubscriptionCursor
from magnetar.broker.topic.subscription.subscription_stats import Totals
from magnetar.runtime.clock import Clock


class MarkDeleteWatch:
    """Asked after everything that may acknowledge; sends REACHED_END_OF_TOPIC once (rule 5.9.11).

    ``created``: the cursor was made with the subscription; ``terminated``: the topic was when this was loaded.
    """

    __slots__ = ("_clock", "_cursor", "_end_sent", "_mark", "_members", "_totals", "terminated")

    def __init__(
        self, cursor: SubscriptionCursor, members: Members, totals: Totals, clock: Clock, *, created: bool,
        terminated: bool,
    ) -> None:  # fmt: skip
        self._cursor = cursor
        self._members = members
        self._totals = totals
        self._clock = clock
        self._mark = cursor.mark_delete
        self.terminated = terminated
        self._end_sent = terminated and not created and cursor.backlog() == 0

    def moved(self, now_ms: int) -> None:
        """The position may have moved, at this time."""
        mark = self._cursor.mark_delete
        if mark != self._mark:
            self._mark = mark
            self._totals.last_mark_delete_advanced_ms = now_ms
            if self.terminated:
                self.check_end()

    def moved_now(self) -> None:
        """The position may have moved just now."""
        self.moved(self._clock.now_ms())

    def sought(self) -> None:
        """A seek set the position, which is no progress."""
        self._mark = self._cursor.mark_delete
        self._end_sent = False

    def terminate(self) -> None:
        """No entry will follow."""
        self.terminated = True
        if self._members.by_state:
            self.check_end()

    def check_end(self) -> None:
        """Send the end of the topic if nothing is left, acknowledgements included."""
        if not self._end_sent and self._cursor.backlog() == 0:
            self._end_sent = True
            for consumer in self._members.consumers:
                consumer.connection.end_of_topic()
