"""One consumer on one topic or partition: the I/O around `Consumption`.

What one turn of the loop makes necessary (permits, acknowledgements) is written once, at its end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from magnetar.client.aio.client_environment import Environment
from magnetar.client.aio.connections.attachment import Attachment
from magnetar.client.aio.connections.wire_connection import WireConnection
from magnetar.client.aio.topics.ack_receipts import AckReceipts
from magnetar.client.aio.topics.chunk_watch import ChunkWatch
from magnetar.client.aio.topics.consumer_options import ConsumerOptions, left_out, start_data
from magnetar.client.aio.topics.due_timer import DueTimer
from magnetar.client.aio.topics.subscription_requests import SubscriptionRequests
from magnetar.client.aio.topics.version_hold import VersionHold
from magnetar.client.errors import ClientTimeoutError, ConnectionLostError, RefusedError, UndeliverableError
from magnetar.client.machines.ack_pace import AckPace
from magnetar.client.machines.acknowledgement import Place
from magnetar.client.machines.consumption import Consumption
from magnetar.client.machines.message import Message
from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.message_queue import QueuedEntry
from magnetar.client.machines.redelivery.last_deliveries import DeadMessage
from magnetar.client.values.written_schema import SchemaReading
from magnetar.model.names import TopicName
from magnetar.model.subscription_types import SubType
from magnetar.protocol import commands as c
from magnetar.protocol.codec import encode


class TopicConsumer:
    """One partition's consumer."""

    def __init__(
        self,
        topic: str,
        environment: Environment,
        options: ConsumerOptions,
        on_messages: Callable[[TopicConsumer], None],
        on_dead: Callable[[TopicConsumer, list[DeadMessage]], None] | None = None,
    ) -> None:
        """``on_messages`` is called when there are messages in the queue, ``on_dead`` with what comes no more."""
        self.topic = topic
        self.partition = TopicName.parse(topic).partition_index
        self.active = True
        """Whether a Failover subscription gives it messages."""
        self.ended = False
        """Whether the topic was terminated and everything was read."""
        self.failure: Exception | None = None
        self._environment = environment
        self._options = options
        self._on_messages, self._on_dead = on_messages, on_dead
        self._loop = asyncio.get_running_loop()
        self._ordered = ordered = options.sub_type in (SubType.Exclusive, SubType.Failover)
        start = options.start
        reading = None if options.values is None else SchemaReading(options.values)
        self.consumption = Consumption(
            topic,
            self.partition,
            options.limits,
            ordered=ordered,
            skip_to=left_out(start, inclusive=options.start_inclusive),
            unpacked_max=environment.bounds.unpacked,
            unsealer=options.unsealer,
            reading=reading,
        )
        self.consumption.intake.sealed_stay = environment.bounds.sealed and options.sealed_stay
        self._hold: VersionHold | None = None
        if reading is not None and reading.needs_versions:
            self._hold = VersionHold(topic, reading, environment.lookup, self._take_in)
        self._start, self._inclusive = start, options.start_inclusive
        self._settling = self._closing = self._seeking = self._unsubscribed = False
        self._due_timer = DueTimer(self._loop, self._redeliver_due)
        delivery = options.delivery
        self._pace = AckPace(delivery.ack_group_time, delivery.ack_group_size, at_once=delivery.ack_receipts)
        self._ack_timer = DueTimer(self._loop, self._settle)
        self._timed = options.limits.redelivery.ack_timeout is not None
        self._receipts = AckReceipts(topic) if options.delivery.ack_receipts else None
        self._chunk_watch = ChunkWatch(self._loop, environment.clock, self.consumption, self.settle_soon)
        self.on_redelivery: Callable[[TopicConsumer, str, Sequence[Place]], None] | None = None
        """Hears which entries are asked for again, and by which callback of interceptors."""
        self._attachment = Attachment(
            topic, environment.lookup, environment.rng, self._open, self.fail, timeout=environment.timeout
        )
        self.requests = SubscriptionRequests(topic, options.subscription, self._attachment, environment.timeout)
        """What it asks the broker and waits for."""

    async def opened(self) -> None:
        """Wait until it is subscribed for the first time."""
        await self._attachment.opened()

    @property
    def connected(self) -> bool:
        """Whether it is subscribed at a broker at the moment."""
        return self._attachment.connection is not None and self.failure is None

    async def _open(self, connection: WireConnection) -> None:
        consumer_id = connection.new_handle()
        connection.consumers[consumer_id] = self
        start = None if self._options.durable else self._start_data()
        epoch = self.consumption.epoch if self._ordered else None
        try:
            await connection.request(
                self._options.command(self.topic, consumer_id, connection.new_request_id(), start, epoch),
                c.CommandSuccess,
                f"subscribe {self._options.subscription} to {self.topic}",
            )
        except BaseException:
            if connection.consumers.pop(consumer_id, None) is not None and connection.lost is None:
                connection.send(c.CommandCloseConsumer(consumer_id, connection.new_request_id()))
            raise
        if connection.lost is not None:
            raise connection.lost
        self.requests.consumer_id = consumer_id
        self.consumption.opened(consumer_id)
        if self.consumption.acknowledgements.waiting:
            self._pace.hurry()  # before messages are asked for: what is acknowledged is not to come again
        self._seeking = False
        self._loop.call_soon(self._settle)

    def _start_data(self) -> c.MessageIdData | None:
        """Return where a reader begins, or goes on after what it has given to the application."""
        found = self.consumption.queue.last_taken
        if found is not None:
            self.consumption.restart_after(found)
            return c.MessageIdData(found.ledger_id(), found.entry_id(), batch_index=found.batch_index())
        return None if self._start is None else start_data(self._start, inclusive=self._inclusive)

    def on_message(self, message: c.CommandMessage) -> None:
        """Take an entry in."""
        if self._seeking or self._closing or self.failure is not None:
            return  # it was sent before the seek, and the subscription is opened anew; or it comes to others
        if self._hold is None or not self._hold.takes(message):
            self._take_in(message)

    def _take_in(self, message: c.CommandMessage) -> None:
        consumption = self.consumption
        try:
            consumption.received(message)
        except UndeliverableError as error:
            self.fail(error)
            return
        if (on_entry := self._environment.bounds.on_entry) is not None:
            on_entry(len(message.entry))
        self._on_messages(self)
        if consumption.redeliveries.dead:
            self._bury()
        if consumption.chunks.waiting:
            self._chunk_watch.go_on()
        self.settle_soon()

    def on_active(self, active: bool) -> None:
        """Note whether it is the one that a Failover subscription gives messages."""
        self.active = self._chunk_watch.active = active

    def on_end_of_topic(self) -> None:
        """Note that no message will ever be added."""
        self.ended = True
        self._on_messages(self)

    def on_lost(self, error: Exception) -> None:
        """Forget what comes again."""
        self._let_go()
        self.consumption.lost()
        self._attachment.on_lost(error)

    def _let_go(self) -> None:
        """Forget entries that wait for the definition of their schema."""
        if self._hold is not None:
            self._hold.clear()

    @property
    def waiting(self) -> int:
        """How many messages have come and were not taken."""
        return self.consumption.waiting + (0 if self._hold is None else self._hold.waiting)

    def refill(self, *, across: bool = False) -> list[Message[Any]]:
        """Return the messages at hand, the next one last, which are to be taken from this very list; ``across``
        entries, or of one only."""
        consumption = self.consumption
        if not consumption.refill(across=across):
            self.settle_soon()  # the messages may be damaged, which is reported to the broker
        return consumption.at_hand

    def used_up(self, last: Message[Any], *, back: bool = False) -> None:
        """Note that nothing is at hand any more, with the message that was taken last; ``back``: put back the rest."""
        taken = self.consumption.take_back() if back else self.consumption.used_up()
        if self._timed and taken:
            redeliveries = self.consumption.redeliveries
            redeliveries.handed_out(last, self._loop.time())
            self._wake_at(redeliveries.next_due)
        self.settle_soon()

    def take_entries(self, most: int) -> list[QueuedEntry]:
        """Take up to ``most`` messages as entries."""
        found = self.consumption.take_entries(most)
        if self._timed:
            self.consumption.redeliveries.handed_out_entries([one.envelope for one in found], self._loop.time())
            self._wake_at(self.consumption.redeliveries.next_due)
        self.settle_soon()
        return found

    def settle_soon(self) -> None:
        """Write what is due at the end of this turn of the loop."""
        if not self._settling:
            self._settling = True
            self._loop.call_soon(self._settle)

    def _settle(self) -> None:
        self._settling = False
        connection = self._attachment.connection
        if connection is None or connection.lost is not None:
            return
        commands = self.consumption.commands(acks=self._acks_due())
        if self._receipts is not None:
            commands = self._receipts.asked(connection, commands)
        if commands:
            connection.write(b"".join([encode(command) for command in commands]))

    def _acks_due(self) -> bool:
        """Whether acknowledgements are to be written now; otherwise there is a timer for them."""
        if not (count := self.consumption.acknowledgements.count):
            return False
        now = self._loop.time()
        due = self._pace.due(now, count)
        if due <= now or self._closing or self._seeking:
            self._pace.written(now)
            return True
        self._ack_timer.by(due)
        return False

    def pause(self, paused: bool) -> None:
        """Ask for no more messages, or go on."""
        self.consumption.paused = paused
        self.settle_soon()

    def refuse(
        self,
        message_id: MessageId,
        delay: float | None = None,
        redelivery_count: int = 0,
        error: BaseException | str | None = None,
    ) -> None:
        """Have a message come again after ``delay`` seconds, by default after that of its redelivery count; after its
        last delivery it goes to the dead letters, with what ``error`` says."""
        self.consumption.redeliveries.refuse(message_id, self._loop.time(), delay, redelivery_count, error)
        self._wake_at(self.consumption.redeliveries.next_due)

    def acknowledge(self, message: Message[Any] | MessageId) -> asyncio.Future[None] | None:
        """Take a message as done with; returns what to await where receipts are wanted."""
        if not isinstance(message, Message):
            self.consumption.acknowledge(message)
        elif not self.consumption.acknowledge_message(message):
            return None
        self.settle_soon()
        return self.ack_answer()

    def acknowledge_cumulative(self, message: Message[Any] | MessageId) -> asyncio.Future[None] | None:
        """Take a message and all before it as done with; returns what to await where receipts are wanted."""
        self.consumption.acknowledge_cumulative(message.message_id() if isinstance(message, Message) else message)
        self.settle_soon()
        return self.ack_answer()

    def ack_answer(self) -> asyncio.Future[None] | None:
        """Return what to await for what was acknowledged in this turn of the loop; None where there is nothing."""
        if self._receipts is None or not self.consumption.acknowledgements.waiting:
            return None
        return self._receipts.stored()

    def done_with(self, message: Message[Any]) -> None:
        """Acknowledge the original of a letter."""
        self.acknowledge(message)

    def bring_again(self, message_id: MessageId, delay: float) -> None:
        """Have a message come again after ``delay`` seconds, even if this was its last delivery."""
        self.consumption.redeliveries.bring_again(message_id, self._loop.time(), delay)
        self._wake_at(self.consumption.redeliveries.next_due)

    def redeliver_all(self) -> None:
        """Have everything come again that is not acknowledged."""
        self._count_held()
        self.consumption.redeliver_all()
        self.settle_soon()

    def _count_held(self) -> None:
        """Take in what waits for the definition of its schema, since it comes again with all else."""
        try:
            for message in () if self._hold is None else self._hold.withdraw():
                self.consumption.received(message)
        except UndeliverableError as error:
            self.fail(error)

    def _wake_at(self, due: float) -> None:
        if not self._closing:
            self._due_timer.by(due)

    def _redeliver_due(self) -> None:
        consumption = self.consumption
        # Timers of an event loop may come a moment early.
        refused, late = consumption.redeliver_due(self._loop.time() + 0.001)
        for method, places in (("on_negative_acks_send", refused), ("on_ack_timeout_send", late)):
            if places and self.on_redelivery is not None:
                self.on_redelivery(self, method, places)
        self._bury()
        self._wake_at(consumption.redeliveries.next_due)
        self.settle_soon()

    def _bury(self) -> None:
        if self._on_dead is not None and (dead := self.consumption.redeliveries.take_dead()):
            self._on_dead(self, dead)

    async def seek(self, command: c.CommandSeek, start: MessageId | None) -> None:
        """Move the subscription; what was received before is forgotten, and comes again if that is refused."""
        before, asked = (self._start, self._inclusive), None
        what, until = f"seek {self._options.subscription} on {self.topic}", self.requests.deadline()

        async def ask(connection: WireConnection, deadline: float) -> tuple[WireConnection, int]:
            nonlocal asked
            asked, openings = connection, self._attachment.life.openings
            moved = replace(command, consumer_id=self.requests.consumer_id, request_id=connection.new_request_id())
            self._seeking = True
            self._settle()  # acknowledgements that wait are older than the seek, and would undo a part of it later
            self._let_go()
            if (taken := self.consumption.queue.last_taken) is not None:
                self._start, self._inclusive = taken, False  # a reader goes on there if the seek comes to nothing
            begins = None if self._options.durable else left_out(self._start, inclusive=self._inclusive)
            self.consumption.restart(begins)
            await connection.request(moved, c.CommandSuccess, what, deadline=deadline)
            return connection, openings

        try:
            connection, openings = await self.requests.patiently(what, ask, until)
        except (RefusedError, ClientTimeoutError):
            if asked is not None and self._attachment.connection is asked:
                self._leave(asked)  # what was forgotten comes again
            raise
        self._inclusive, self._start = start is None or self._options.start_inclusive, start or before[0]
        # A broker may begin with the whole batch that it is to go into, and a reader with the entry of its start.
        within = start is not None and command.message_id is not None and command.message_id.entry == start.entry_id()
        skips = within or not self._options.durable
        self.consumption.restart(left_out(start, inclusive=self._inclusive) if skips else None)
        if self._attachment.connection is connection:
            self._leave(connection)  # the broker has not closed it, as it should have (rule 5.9.3)
        try:
            async with asyncio.timeout_at(until):
                await self._attachment.reopened(openings)
        except TimeoutError:
            raise ClientTimeoutError(
                f"{what}: it has moved, and was not connected again{self._attachment.why}"
            ) from None

    def _leave(self, connection: WireConnection) -> None:
        connection.consumers.pop(self.requests.consumer_id, None)
        if connection.lost is None:
            connection.send(c.CommandCloseConsumer(self.requests.consumer_id, connection.new_request_id()))
        self.on_lost(ConnectionLostError(f"{self.topic}: subscribed anew after a seek"))

    async def unsubscribe(self, *, force: bool = False) -> None:
        """Delete the subscription, and with it this consumer."""
        if not self._unsubscribed:
            await self.requests.unsubscribe(force=force)
            self._unsubscribed = True
            await self._attachment.close()

    def fail(self, error: Exception) -> None:
        """Give nothing any more."""
        self.failure = self.requests.failure = error
        self._on_messages(self)

    async def close(self, deadline: float | None = None) -> None:
        """Write what is due, and close it at the broker, too, which has until then for its answer."""
        self._closing = True
        for timer in (self._due_timer, self._ack_timer, self._chunk_watch):
            timer.end()
        self._let_go()
        self._settle()
        if self._receipts is not None:
            await self._receipts.close()
        connection = await self._attachment.close()
        # nothing refers to itself: what is closed is freed at once
        self.consumption.queue.end()
        self.consumption.intake.end()
        self._on_messages, self._on_dead = _ignored, None
        if connection is None or connection.lost is not None:
            return
        connection.consumers.pop(self.requests.consumer_id, None)
        command = c.CommandCloseConsumer(self.requests.consumer_id, connection.new_request_id())
        try:
            await connection.request(command, c.CommandSuccess, f"close a consumer of {self.topic}", deadline=deadline)
        except (ConnectionLostError, ClientTimeoutError, RefusedError):
            pass  # what is gone is closed


def _ignored(_: TopicConsumer) -> None: ...
