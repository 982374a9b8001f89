"""What a consumer without queues does about its topics: permits when there is room, and back what comes without."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from magnetar.client.aio.topics.demanded_consumer import DemandedConsumer
from magnetar.client.aio.topics.due_timer import DueTimer
from magnetar.client.aio.topics.topic_consumer import TopicConsumer
from magnetar.client.machines.prefetch.prefetch_budget import PrefetchBudget


class Prefetch:
    """The I/O around the `PrefetchBudget` of one consumer."""

    def __init__(self, size: int) -> None:
        """``size``: entries that may be held unasked, over all topics."""
        self.budget = PrefetchBudget[DemandedConsumer](size)
        self._loop = asyncio.get_running_loop()
        self._timer = DueTimer(self._loop, self.permit)
        self._receives = self._threads = 0
        self._closed = False

    def note(self, one: DemandedConsumer) -> None:
        """Take note of what has changed about a topic."""
        if self._closed:
            return
        self._look_at(one)
        if self.budget.excess and one.hand_back():
            self._look_at(one)
        self.permit()

    def _look_at(self, one: DemandedConsumer) -> None:
        if one.receives:
            permits, unfinished = one.consumption.permits, one.consumption.chunks.incomplete
            self.budget.note(one, holds=one.waiting > 0, permitted=permits.one_may_come, unfinished=unfinished)
        else:
            self.budget.left(one)

    def permit(self) -> None:
        """Permit what there is room for, and come back when it is time for more."""
        if self._closed:
            return
        for one in self.budget.grant(self._loop.time()):
            one.permit()
        self._timer.by(self.budget.due)

    @contextmanager
    def receiving(self) -> Iterator[None]:
        """Count a receive that waits; when it ends without it, what came for it is handed back."""
        self._receives += 1
        self._count()
        try:
            yield
        finally:
            self._receives -= 1
            self._count()
            self.trim()

    def wanted(self, threads: int) -> bool:
        """Note how many threads wait; returns whether more is held than may be."""
        self._threads = threads
        self._count()
        return self.budget.excess

    def _count(self) -> None:
        self.budget.receiving = self._receives + self._threads

    def trim(self) -> None:
        """Hand back what no caller waits for any more, the last that came first."""
        for one in reversed(self.budget.holding if self.budget.excess else ()):
            if self.budget.excess and one.hand_back():
                self._look_at(one)

    def left(self, one: TopicConsumer) -> None:
        """Forget a topic that is left."""
        if isinstance(one, DemandedConsumer):
            self.budget.left(one)
        self.permit()

    def put_back(self, one: TopicConsumer) -> None:
        """Have what was put back come again: there is no room for it."""
        if isinstance(one, DemandedConsumer):
            one.return_all()
            self.note(one)

    def close(self) -> None:
        """Permit nothing any more."""
        self._closed = True
        self._timer.end()
