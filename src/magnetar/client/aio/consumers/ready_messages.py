"""Messages that have come to a consumer of one topic or of several: who has them and who waits for them.

The topics take turns. What the first of them has at hand is taken from its list without any counting; when nothing is
at hand any more, the next one has its turn.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Generic

from magnetar.client.aio.consumers.prefetch import Prefetch
from magnetar.client.aio.topics.topic_consumer import TopicConsumer
from magnetar.client.errors import AlreadyClosedError, ForkedClientError
from magnetar.client.machines.message import Message, T
from magnetar.client.machines.message_queue import QueuedEntry
from magnetar.model.errors import InvalidValueError


class ReadyMessages(Generic[T]):
    """What a consumer takes from."""

    def __init__(self, topic: str, prefetch: int | None) -> None:
        """``prefetch``: entries that wait over all topics at most; None: each has a queue of its own."""
        self._topic = topic
        self._loop = asyncio.get_running_loop()
        self._members: dict[str, TopicConsumer] = {}
        self._prefetch = None if prefetch is None else Prefetch(prefetch)
        self._without_queue = prefetch == 0
        self._closed = False
        self._refusal: ForkedClientError | None = None
        """Why nothing can be called in this process; it is closed then, too."""
        self._failure: Exception | None = None
        self._at_hand: list[Message[T]] = []
        """What the first of the ready ones has at hand, the next message last."""
        self._ready: deque[TopicConsumer] = deque()
        """Those with messages in their queues; one may stand here with none."""
        self._in_ready: set[TopicConsumer] = set()
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._gathering = 0
        """How many of them wait for several messages, and leave one that comes alone to others."""
        self._lending: tuple[TopicConsumer, Message[T]] | None = None
        """Whose messages were lent, and the last one of them."""
        self.when_messages: Callable[[], object] | None = None
        """What is called once when messages have come, or there will be none any more."""
        self.recall: Callable[[], object] | None = None
        """What is called before messages that were lent are taken back: no thread takes one of them afterwards."""

    def _closed_error(self) -> Exception:
        return self._refusal or AlreadyClosedError(f"{self._topic}: the consumer is closed")

    async def _something(self, *, gathering: bool = False) -> None:
        """Wait until messages have come, or there will be none any more; ``gathering``: they may be left to others."""
        self._gathering += gathering
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._wake()  # it was this one's turn: let another have it
            elif waiter in self._waiters:
                self._waiters.remove(waiter)
            raise
        finally:
            self._gathering -= gathering

    async def heard(self) -> None:
        """Wait until messages have come, or entries without any. Raises why there will be none any more."""
        if not self._closed and self._failure is None:
            await self._something()
        if any(one.waiting for one in self._ready):
            self._wake()  # one who takes messages is to have them
        if self._closed:
            raise self._closed_error()
        if self._failure is not None:
            raise self._failure

    def receive_nowait(self) -> Message[T] | None:
        """Return a message that is here already, None if there is none. Raises AlreadyClosedError, and why a topic can
        be read no more."""
        at_hand = self._at_hand or self._refill()
        if not at_hand:
            return None
        message = at_hand.pop()
        if not at_hand:
            self._used_up(message)
        return message

    def take_many(self, most: int) -> list[Message[T]]:
        """Return up to ``most`` messages that are here already, in order; none if there are none. Raises as
        `receive_nowait`, if there is none before."""
        found: list[Message[T]] = []
        while len(found) < most:
            at_hand = self._at_hand
            if not at_hand:
                if found and self._closed:
                    break
                at_hand = self._refill(quiet=bool(found))
                if not at_hand:
                    break
            part = at_hand[len(found) - most :]
            del at_hand[len(found) - most :]
            part.reverse()
            found += part
            if not at_hand:
                self._used_up(part[-1])
        return found

    @property
    def on_demand(self) -> bool:
        """Whether messages come only while a caller waits for them."""
        return self._without_queue

    def lend(self, *, wanted: int) -> list[Message[T]]:
        """Return messages that another thread may take off the end of this very list; an empty one if none is here.

        To be called again when it is empty, which gives their permits back, and where there is no queue when
        ``wanted`` changes: how many wait, for whom messages are asked for. Raises as `receive_nowait`.
        """
        if self._without_queue:
            self._want(wanted)
        if self._lending is not None and not self._closed:
            one, last = self._lending
            lent: list[Message[Any]] = one.consumption.at_hand
            if lent:
                return lent
            self._lending = None
            if one.consumption.queue.lent and self._ready and self._ready[0] is one:
                self._used_up(last)
        if self._at_hand:
            self._ready[0].used_up(self._at_hand[0], back=True)  # it was counted for the loop alone
        at_hand = self._refill(across=True)
        self._at_hand = []  # a taker on the loop first takes back what is lent
        if at_hand:
            self._lending = self._ready[0], at_hand[0]
        return at_hand

    def _take_back(self) -> None:
        """Take back what was lent and is not taken, since the loop takes messages itself."""
        if self._lending is not None:
            (one, last), self._lending = self._lending, None
            if self.recall is not None:
                self.recall()
            one.used_up(last, back=True)

    def _want(self, wanted: int) -> None:
        """Ask for messages for so many threads, where there is no queue; what is lent and not wanted goes back."""
        if self._prefetch is None or self._closed:
            return
        if self._prefetch.wanted(wanted):
            self._take_back()
            self._prefetch.trim()
        self._prefetch.permit()

    def _refill(self, *, quiet: bool = False, across: bool = False) -> list[Message[T]]:
        """Return what the next one has at hand, nothing if none has. ``quiet``: errors wait for the next time.
        ``across``: of several entries at a time."""
        if self._closed:
            raise self._closed_error()
        if self._lending is not None:
            self._take_back()
        ready = self._ready
        while ready:
            at_hand = ready[0].refill(across=across)
            if at_hand:
                self._at_hand = at_hand
                return at_hand
            self._in_ready.discard(ready.popleft())
        if self._failure is not None and not quiet:
            raise self._failure
        self._at_hand = []
        return self._at_hand

    def _used_up(self, last: Message[T]) -> None:
        """Go on to the next one with messages, after the message that was the last at hand."""
        ready = self._ready
        one = ready[0]
        one.used_up(last)
        if len(ready) > 1 or not one.waiting:
            ready.popleft()
            if one.waiting:
                ready.append(one)
            else:
                self._in_ready.discard(one)
            self._at_hand = []

    def _has_messages(self, one: TopicConsumer) -> None:
        if self._members.get(one.topic) is not one:
            return  # it is subscribed at this moment, or has left: what it has now could not be acknowledged
        if one not in self._in_ready:
            self._in_ready.add(one)
            self._ready.append(one)
        self._failure = self._failure or one.failure
        if self.when_messages is not None:
            call, self.when_messages = self.when_messages, None
            call()
        if self._waiters:
            self._wake_for(one)

    def _wake_for(self, one: TopicConsumer) -> None:
        for _ in range(min(len(self._waiters), max(one.waiting, 1) + self._gathering)):
            self._wake()

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def take_entries(self, most: int, *, quiet: bool = False) -> list[tuple[TopicConsumer, int, QueuedEntry]]:
        """Take up to ``most`` messages as entries, the last of which may be a part of one, each with whose it is and
        the generation of its queue. Raises as `receive_nowait`, if not ``quiet``."""
        if self._closed:
            if quiet:
                return []
            raise self._closed_error()
        self._take_back()
        ready, found = self._ready, list[tuple[TopicConsumer, int, QueuedEntry]]()
        self._at_hand = []
        while ready and most > 0:
            one = ready[0]
            part = one.take_entries(most)
            most -= sum(entry.messages for entry in part)
            found += [(one, one.consumption.queue.generation, entry) for entry in part]
            ready.popleft()
            if one.waiting:
                ready.append(one)
            else:
                self._in_ready.discard(one)
        if not found and self._failure is not None and not quiet:
            raise self._failure
        return found

    def has_again(self, one: TopicConsumer) -> None:
        """Note that entries were put back."""
        if self._prefetch is not None:
            self._prefetch.put_back(one)
        if one.waiting:
            if one in self._in_ready:
                self._ready.remove(one)
            self._in_ready.add(one)
            self._ready.appendleft(one)
            self._at_hand = []
            self._wake_for(one)

    async def something(self, seconds: float) -> bool:
        """Wait until messages have come; returns False if the time is over before, or there will be none any more."""
        if self._closed or self._failure is not None:
            return False
        try:
            async with asyncio.timeout(seconds):
                await self._something()
        except TimeoutError:
            return False
        return True

    @property
    def several(self) -> bool:
        """Whether there are several internal topics."""
        return len(self._members) > 1

    def member_of(self, topic: str | None) -> TopicConsumer:
        """Return the one of a topic; None is the only one. Raises InvalidValueError, AlreadyClosedError."""
        if self._closed:
            raise self._closed_error()
        if topic is None and len(self._members) == 1:
            return next(iter(self._members.values()))
        found = self._members.get(topic or "")
        if found is None:
            raise InvalidValueError(
                f"{topic or 'the table, without a column __topic,'} is not among the topics of {self._topic}"
            )
        return found
