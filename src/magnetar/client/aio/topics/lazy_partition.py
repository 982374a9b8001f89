"""A partition that is opened when it gets its first message (``lazy_start_partitioned_producers``).

It stands where its `TopicProducer` will stand, and takes messages until that is open; then it hands them over in their
order, in one turn of the loop, and is replaced. An opening that fails fails the messages that waited for it; the next
message begins another one.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable

from magnetar.client.aio.client_environment import Environment
from magnetar.client.aio.topics import receipt as receipts
from magnetar.client.aio.topics.producer_options import ProducerOptions
from magnetar.client.aio.topics.receipt import FateToken, Receipt
from magnetar.client.aio.topics.topic_producer import TopicProducer
from magnetar.client.errors import AlreadyClosedError
from magnetar.client.machines.outgoing.early_messages import EarlyFate, EarlyMessages
from magnetar.client.machines.outgoing.entry_fate import PublishCounters
from magnetar.client.machines.outgoing.outgoing_message import OutgoingMessage
from magnetar.model.names import TopicName
from magnetar.runtime.event import Event


class LazyPartition:
    """One partition's producer before it is open."""

    def __init__(
        self,
        topic: str,
        environment: Environment,
        options: ProducerOptions,
        on_open: Callable[[LazyPartition, TopicProducer], None],
    ) -> None:
        """``on_open`` is called once, with what stands in its place from then on."""
        self.topic = topic
        self.name = options.name or ""
        self.partition = TopicName.parse(topic).partition_index
        self.last_sequence_id = -1
        self.connected = True
        """Nothing is known to be lost."""
        self.counters = PublishCounters()
        self._environment = environment
        self._options = options
        self._on_open = on_open
        self._loop = asyncio.get_running_loop()
        self._memory = environment.memory
        self._messages_max = options.limits.pending_messages or sys.maxsize
        self._early = EarlyMessages(environment.memory)
        self._failure: Exception | None = None
        self._opening: asyncio.Task[TopicProducer] | None = None
        self._open: TopicProducer | None = None

    @property
    def pending(self) -> int:
        """How many messages have no receipt yet."""
        return len(self._early)

    @property
    def full(self) -> bool:
        """Whether a message would be refused for want of room. Raises why the producer ended."""
        if self._open is not None:
            return self._open.full
        self._check()
        return len(self._early) >= self._messages_max or self._memory.full

    async def opened(self) -> TopicProducer:
        """Open it unless it is open, and return what takes its place from then on. Raises why it cannot be opened."""
        self._check()
        if self._open is None:
            opening = self._begin()
            await asyncio.wait([opening])
            self._check()
            return opening.result()
        return self._open

    def _begin(self) -> asyncio.Task[TopicProducer]:
        opening = self._opening
        if opening is None:
            opening = self._opening = self._loop.create_task(self._run())
            opening.add_done_callback(lambda one: one.cancelled() or one.exception())  # it may not be awaited
        return opening

    async def _run(self) -> TopicProducer:
        opened = TopicProducer(self.topic, self._environment, self._options)
        try:
            await opened.opened()
        except BaseException as error:
            await opened.close()
            self._opening = None
            if isinstance(error, Exception):
                self.counters.failed += self._early.fail(error)
            raise
        opened.counters = self.counters
        self._hand_over(opened)
        return opened

    def _hand_over(self, opened: TopicProducer) -> None:
        now, now_ms = self._loop.time(), self._environment.clock.now_ms()
        queue = opened.usable()
        while (one := self._early.take()) is not None:
            message, fate = one
            try:
                queue.add(message, fate, now, now_ms)
            except Exception as error:  # too large, or not to be encrypted
                self.counters.failed += 1
                fate.set_exception(error)
        self._memory.wake()  # what was refused gave its memory back
        opened.after_adding(queue, now)
        opened.hurry(any_delay=True)  # they have waited
        self._open = opened
        self._on_open(self, opened)

    def add(self, message: OutgoingMessage) -> Receipt:
        """Add a message; its receipt gets the message's id. Raises QueueFullError, and why the producer ended."""
        if self._open is not None:
            return self._open.add(message)
        return Receipt(self._add(message, None), 0, self._loop)

    def add_content(self, content: bytes) -> Receipt:
        """Add a message that is bytes alone. Raises as `add`."""
        return self.add(OutgoingMessage(content))

    def add_with(self, message: OutgoingMessage, token: FateToken) -> None:
        """Add a message whose fate ``token`` gets. Raises as `add`."""
        if self._open is not None:
            self._open.add_with(message, token)
        else:
            self._add(message, token)

    def _add(self, message: OutgoingMessage, token: FateToken | None) -> EarlyFate:
        self._check()
        if len(self._early) >= self._messages_max:
            raise receipts.no_room(self.topic, self.name, len(self._early))
        memory = self._memory
        if memory.free <= 0 or (token is None and memory.full):  # as `TopicProducer` has it
            raise receipts.no_memory(self.topic, memory.limit)
        fate = self._early.add(message, token)
        _ = self._begin()
        return fate

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def hurry(self, *, any_delay: bool = False) -> None:
        """Let nothing wait for company: what is early is sent as soon as the partition is open."""
        if self._open is not None:
            self._open.hurry(any_delay=any_delay)

    async def room(self) -> None:
        """Wait until a message may be added. Raises why it cannot be opened, and why the producer ended."""
        while self.full:
            if self._early or self._open is not None:
                await (await self.opened()).room()
                return
            room = Event()  # nothing is here: others have all the memory
            self._memory.waiting.add(room.set)
            try:
                await room.wait()
            finally:
                self._memory.waiting.discard(room.set)

    async def flush(self) -> None:
        """Wait until every message that was added has met its fate."""
        if self._early:
            try:
                opened = await self.opened()
            except Exception:
                self._check()
                return  # they have met it
            await opened.flush()
        elif self._open is not None:
            await self._open.flush()

    def forked(self, error: Exception) -> None:
        """Refuse everything in a process that was forked off."""
        self._failure = error
        if self._open is not None:
            self._open.forked(error)

    async def close(self, deadline: float | None = None) -> None:
        """End what is being opened; messages that waited for it fail. ``deadline``: as of a `TopicProducer`."""
        if self._open is not None:
            await self._open.close(deadline)
        if self._failure is not None:
            return
        self._failure = AlreadyClosedError(f"{self.topic}: the producer is closed")
        self.connected = False
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait([self._opening])
        self.counters.failed += self._early.fail(self._failure)
