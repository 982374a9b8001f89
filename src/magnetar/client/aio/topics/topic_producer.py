"""One producer on one topic or partition: the I/O around `Publication`.

What is added in one turn of the loop is written together. A batch that waits for company has one timer, and so has the
oldest entry without a receipt.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Final

from magnetar.client.aio.client_environment import Environment
from magnetar.client.aio.connections.attachment import Attachment
from magnetar.client.aio.connections.wire_connection import WireConnection
from magnetar.client.aio.topics import receipt as receipts
from magnetar.client.aio.topics.producer_options import ProducerOptions
from magnetar.client.aio.topics.receipt import FateToken, Receipt
from magnetar.client.errors import (
    AlreadyClosedError,
    ClientTimeoutError,
    ConnectionLostError,
    MessageTooLargeError,
    RefusedError,
)
from magnetar.client.machines.outgoing.batch_wait import NEVER
from magnetar.client.machines.outgoing.entry_fate import EntryFate, PublishCounters
from magnetar.client.machines.outgoing.outgoing_message import EntryMaker, OutgoingMessage
from magnetar.client.machines.outgoing.publication import Publication
from magnetar.client.machines.outgoing.unconfirmed_entry import UnconfirmedEntry
from magnetar.model.errors import ServerError
from magnetar.model.names import TopicName
from magnetar.protocol import commands as c
from magnetar.protocol.batches import Batch
from magnetar.runtime.event import Event

_WRITE_BYTES: Final = 256 << 10
_SENT_AGAIN: Final = frozenset({ServerError.ChecksumError, ServerError.PersistenceError})
"""The broker refused the bytes as they arrived or could not store them now; the same entry may pass next time."""


class TopicProducer:
    """One partition's producer."""

    def __init__(self, topic: str, environment: Environment, options: ProducerOptions) -> None:
        self.topic = topic
        self.name = options.name or ""
        self.partition = TopicName.parse(topic).partition_index
        self._options = options
        self._environment = environment
        self._loop = asyncio.get_running_loop()
        self._queue: Publication | None = None
        self._producer_id = -1
        self._topic_epoch: int | None = None
        self._epoch = 0
        self._room, self._idle = Event(), Event()
        self._writing = False
        self._memory = environment.memory
        self._messages_max = options.limits.pending_messages or sys.maxsize
        self._batch_timer: asyncio.TimerHandle | None = None
        self._deadline_timer: asyncio.TimerHandle | None = None
        self._failure: Exception | None = None
        self.counters = PublishCounters()
        self._attachment = Attachment(
            topic, environment.lookup, environment.rng, self._open, self._fail, timeout=environment.timeout
        )

    async def opened(self) -> None:
        """Wait until it is open for the first time."""
        await self._attachment.opened()

    @property
    def connected(self) -> bool:
        """Whether it is open at a broker at the moment."""
        return self._attachment.connection is not None and self._failure is None

    @property
    def last_sequence_id(self) -> int:
        """The highest sequence id that the broker has confirmed, -1 if there is none."""
        return -1 if self._queue is None else self._queue.last_sequence_id

    async def _open(self, connection: WireConnection) -> None:
        options = self._options
        producer_id = connection.new_handle()
        command = options.command(
            self.topic, producer_id, connection.new_request_id(), self.name, self._epoch, self._topic_epoch
        )
        what = f"open producer {self.name or '(unnamed)'} on {self.topic}"
        connection.producers[producer_id] = self
        patient = options.access_mode is c.ProducerAccessMode.WaitForExclusive
        try:
            answer = await connection.request(command, c.CommandProducerSuccess, what, patient=patient)
        except BaseException as error:
            if connection.producers.pop(producer_id, None) is not None and connection.lost is None:
                connection.send(c.CommandCloseProducer(producer_id, connection.new_request_id()))
            if isinstance(error, RefusedError) and error.code is ServerError.ProducerBlockedQuotaExceededException:
                self._fail_pending(error)  # and go on when there is room (rule 4.6.7)
            raise
        if connection.lost is not None:
            raise connection.lost
        self._epoch += 1
        self._topic_epoch = answer.topic_epoch
        self._producer_id = producer_id
        self.name = answer.producer_name
        schema_version = answer.schema_version if options.schema is not None else None
        sealer = options.sealer
        maker = EntryMaker(
            self.name, options.compression, schema_version or None, None if sealer is None else sealer.seal
        )
        queue = self._queue
        if queue is None:
            queue = Publication(
                self.topic, maker, options.limits, connection.max_message_size,
                overhead=sealer.overhead if sealer else 0, memory=self._memory,
            )  # fmt: skip
            self._queue = queue
            begin = -1 if options.initial_sequence_id is None else options.initial_sequence_id
            queue.last_sequence_id = answer.last_sequence_id if options.initial_sequence_id is None else begin
            queue.begin_at(queue.last_sequence_id + 1)
        else:
            queue.maker = maker
            limit, now_ms = connection.max_message_size, self._environment.clock.now_ms()
            for one, size in queue.limit_to(limit, self._loop.time(), now_ms):
                self._tell_failed([one], MessageTooLargeError(self.topic, size, limit))
            self._after_fates()
        queue.opened(producer_id)
        self._loop.call_soon(self._write_now)

    def add(self, message: OutgoingMessage) -> Receipt:
        """Add a message; its receipt gets the message's id. Raises QueueFullError, MessageTooLargeError, and why the
        producer ended."""
        fate = self._add(message, None)
        return Receipt(fate, fate.messages - 1, self._loop)

    def hurry(self, *, any_delay: bool = False) -> None:
        """Send what waits for company as soon as nothing else is on its way: a caller waits for it."""
        queue = self._queue
        if queue is not None:
            queue.hurry(any_delay=any_delay)
            if queue.batch_due <= self._loop.time():
                self._write_soon()

    def add_content(self, content: bytes) -> Receipt:
        """Add a message that is bytes alone; its receipt gets the message's id. Raises as `add`."""
        queue = self._queue
        free = self._memory.free > 0
        if free and queue is not None and queue.messages < self._messages_max and self._failure is None:
            fate = queue.join(content)
            if fate is not None:
                return Receipt(fate, fate.messages - 1, self._loop)
        return self.add(OutgoingMessage(content))

    def add_contents(self, contents: Sequence[bytes]) -> list[Receipt]:
        """Add messages that are bytes alone, as many as the queue has room for, and return their receipts.

        Raises as `add`, but not for want of room; those before the one that is refused were added.
        """
        room = max(self._messages_max - self.usable().messages, 0)
        add, memory = self.add_content, self._memory
        return [add(content) for content in contents[:room] if memory.free > 0]

    def add_content_with(self, content: bytes, token: FateToken) -> None:
        """Add a message that is bytes alone, whose fate ``token`` gets. Raises as `add`."""
        queue = self._queue
        free = self._memory.free > 0
        if free and queue is not None and queue.messages < self._messages_max and self._failure is None:
            fate = queue.join(content)
            if fate is not None:
                fate.tokens.append((fate.messages - 1, token))
                return
        self._add(OutgoingMessage(content), token)

    def join_many(self, contents: Sequence[bytes], at: int, stop: int) -> tuple[EntryFate | None, int]:
        """Add what may join an open batch, from ``at`` on, without tokens; returns their fate and how many it is."""
        queue = self._queue
        if queue is None or self._failure is not None:
            return None, 0
        return queue.join_many(contents, at, min(stop, at + max(self._messages_max - queue.messages, 0)))

    def add_with(self, message: OutgoingMessage, token: FateToken) -> None:
        """Add a message whose fate ``token`` gets. Raises as `add`."""
        self._add(message, token)

    def _add(self, message: OutgoingMessage, token: FateToken | None) -> EntryFate:
        queue = self.usable()
        if queue.full:
            raise receipts.no_room(self.topic, self.name, queue.messages)
        memory = self._memory
        if memory.free <= 0 or (token is None and memory.full):  # what threads have let in has a token
            raise receipts.no_memory(self.topic, memory.limit)
        now = self._loop.time()
        fate = queue.add(message, token, now, self._environment.clock.now_ms())
        self.after_adding(queue, now)
        return fate

    def after_adding(self, queue: Publication, now: float) -> None:
        """See to it that what was added to the queue is written and does not wait for ever."""
        due = queue.batch_due
        if due <= now or queue.unwritten:
            self._write_soon()  # with what comes in this turn
        if now < due < NEVER and self._batch_timer is None:
            self._batch_timer = self._loop.call_at(due, self._batch_is_due)
        if self._deadline_timer is None and queue.next_deadline != NEVER:
            self._deadline_timer = self._loop.call_at(queue.next_deadline, self._deadline)

    def add_made(self, entries: Sequence[bytes], batch: Batch) -> EntryFate:
        """Add a batch that was made for the `usable` queue, or the chunks of one message."""
        queue = self.usable()
        ids = batch.sequence_id, batch.highest_sequence_id
        now = self._loop.time()
        fate = queue.add_made(entries, ids, batch.messages, now, self._environment.clock.now_ms())
        self.after_adding(queue, now)
        return fate

    def usable(self) -> Publication:
        """Return the queue. Raises why the producer ended."""
        if self._failure is not None:
            raise self._failure
        assert self._queue is not None, "wait until it is open"
        return self._queue

    @property
    def pending(self) -> int:
        """How many messages have no receipt yet."""
        return 0 if self._queue is None else self._queue.messages

    @property
    def full(self) -> bool:
        """Whether a message would be refused for want of room. Raises why the producer ended."""
        return self.usable().full or self._memory.full

    async def room(self, *, of_memory: bool = False) -> None:
        """Wait until a message may be added, or only until memory is free. Raises why the producer ended."""
        memory = self._memory
        while (self.usable().full and not of_memory) or memory.full:
            self._room.clear()
            if memory.full:
                memory.waiting.add(self._room.set)
            await self._room.wait()

    async def flush(self) -> None:
        """Send what waits for company, and wait until every message has met its fate."""
        queue = self.usable()
        self._close_batches(queue)
        while not self.usable().idle:
            self._idle.clear()
            await self._idle.wait()

    def _close_batches(self, queue: Publication) -> None:
        queue.close_batches(self._loop.time(), self._environment.clock.now_ms())
        self._write_soon()

    def _batch_is_due(self) -> None:
        self._batch_timer = None
        queue = self._queue
        if queue is None:
            return
        if self._loop.time() < queue.batch_due < NEVER:  # a later batch than the one the timer was for
            self._batch_timer = self._loop.call_at(queue.batch_due, self._batch_is_due)
        elif queue.batch_due != NEVER:
            self._close_batches(queue)

    def _write_soon(self) -> None:
        if not self._writing and self.connected:
            self._writing = True
            self._loop.call_soon(self._write_now)

    def _write_now(self) -> None:
        self._writing = False
        connection, queue = self._attachment.connection, self._queue
        if queue is None or connection is None or connection.lost is not None:
            return
        if connection.writable and queue.batch_due <= (now := self._loop.time()):
            queue.close_batches(now, self._environment.clock.now_ms())
        while connection.writable and (frames := queue.frames(_WRITE_BYTES)):
            connection.write(b"".join(frames))

    def on_writable(self) -> None:
        """Go on writing, now that the socket takes more."""
        self._write_now()

    def on_receipt(self, receipt: c.CommandSendReceipt) -> None:
        """Complete the messages of an entry."""
        assert self._queue is not None
        try:
            done = self._queue.receipted(receipt)
        except ConnectionLostError as error:
            self._leave(error)
            return
        place = receipt.message_id
        ledger, entry = (-1, -1) if place is None else (place.ledger, place.entry)
        self._complete(done, ledger, entry)
        self._after_fates()

    def _complete(self, done: UnconfirmedEntry, ledger: int, entry: int) -> None:
        fate = done.fate
        self.counters.stored(done.messages, done.size, self._loop.time() - done.since)
        fate.stored(self.topic, self.partition, ledger, entry, () if done.places is None else tuple(done.places))
        receipts.tell_stored(fate)

    def on_send_error(self, error: c.CommandSendError) -> None:
        """Send again what may pass next time, and fail the messages of what never will."""
        assert self._queue is not None
        what = f"publish to {self.topic} as {self.name}"
        if error.error in _SENT_AGAIN:
            self._leave(ConnectionLostError(f"{what}: {error.message}"))
            return
        try:
            done = self._queue.refused(error.sequence_id)
        except ConnectionLostError as lost:
            self._leave(lost)
            return
        self._tell_failed(done, self._refused(what, error))
        self._after_fates()

    def _refused(self, what: str, error: c.CommandSendError) -> RefusedError:
        connection = self._attachment.connection
        if connection is None:
            return RefusedError(what, error.error, error.message)
        return connection.refused(what, error.error, error.message)

    def _leave(self, error: Exception) -> None:
        """Give the handle up on this connection, and open it anew."""
        connection = self._attachment.connection
        if connection is not None and connection.lost is None:
            connection.producers.pop(self._producer_id, None)
            connection.send(c.CommandCloseProducer(self._producer_id, connection.new_request_id()))
        self.on_lost(error)

    def on_lost(self, error: Exception) -> None:
        """Keep what has no receipt for the next connection, but for what is in a transaction and was written."""
        failed = [] if self._queue is None else self._queue.lost()
        for one in failed:
            receipts.tell_failed(one.fate, receipts.lost_in_transaction(self.topic, error))
        if failed:
            self._after_fates()
        self._attachment.on_lost(error)

    def _deadline(self) -> None:
        self._deadline_timer = None
        queue = self._queue
        assert queue is not None
        now = self._loop.time()
        if expired := queue.expire(now, self._environment.clock.now_ms()):
            seconds = self._options.limits.send_timeout
            self._tell_failed(expired, receipts.no_receipt(self.topic, self.name, seconds, self._attachment.trouble))
            self._after_fates()
        if queue.next_deadline != NEVER:
            self._deadline_timer = self._loop.call_at(max(queue.next_deadline, now + 0.001), self._deadline)

    def _after_fates(self) -> None:
        assert self._queue is not None
        if not self._queue.full:
            self._room.set()
        if self._queue.idle:
            self._idle.set()
        elif self._queue.batch_due <= self._loop.time():
            self._write_soon()

    def _fail(self, error: Exception) -> None:
        """Fail everything, since it will never be open again."""
        self._failure = error
        self._fail_pending(error)

    def _fail_pending(self, error: Exception) -> None:
        if self._queue is not None:
            self._tell_failed(self._queue.give_up(), error)
        self._room.set()
        self._idle.set()

    def _tell_failed(self, entries: Sequence[UnconfirmedEntry], error: Exception) -> None:
        for one in entries:
            self.counters.failed += one.messages
            receipts.tell_failed(one.fate, error)

    def forked(self, error: Exception) -> None:
        """Refuse everything in a process that was forked off."""
        self._failure = error

    async def close(self, deadline: float | None = None) -> None:
        """Close it at the broker, too, which has until then for its answer; messages without a receipt fail."""
        if self._failure is None:
            connection = await self._attachment.close()
            self._fail(AlreadyClosedError(f"{self.topic}: the producer is closed"))
            for timer in filter(None, (self._batch_timer, self._deadline_timer)):
                timer.cancel()
            await self._close_at(connection, deadline)

    async def _close_at(self, connection: WireConnection | None, deadline: float | None) -> None:
        if connection is None or connection.lost is not None:
            return
        connection.producers.pop(self._producer_id, None)
        command = c.CommandCloseProducer(self._producer_id, connection.new_request_id())
        try:
            await connection.request(
                command, c.CommandSuccess, f"close the producer on {self.topic}", deadline=deadline
            )
        except (ConnectionLostError, ClientTimeoutError, RefusedError):
            pass  # what is gone is closed
