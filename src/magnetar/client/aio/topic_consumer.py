"""One consumer on one topic or partition: the I/O around `Consumption`.

What one turn of the loop makes necessary (permits, acknowledgements) is written once, at its end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from magnetar.client.aio.attachment import Attachment
from magnetar.client.aio.client_environment import Environment
from magnetar.client.aio.wire_connection import WireConnection
from magnetar.client.errors import ClientTimeoutError, ConnectionLostError, RefusedError, UnpackedTooLargeError
from magnetar.client.machines.consumption import Consumption, ConsumptionLimits
from magnetar.client.machines.message import Message
from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.redelivery import NEVER
from magnetar.model.names import TopicName
from magnetar.model.subscription_types import KeySharedMeta, SubType
from magnetar.protocol import commands as c
from magnetar.protocol.codec import encode

_CHUNK_PASS = 10.0
"""Seconds between two looks for chunks that do not come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerOptions:
    """What a consumer subscribes with."""

    subscription: str
    limits: ConsumptionLimits
    sub_type: SubType = SubType.Exclusive
    name: str | None = None
    initial_position: c.InitialPosition = c.InitialPosition.Latest
    priority_level: int | None = None
    properties: c.KeyValues = ()
    subscription_properties: c.KeyValues = ()
    read_compacted: bool = False
    replicate_subscription_state: bool | None = None
    key_shared: KeySharedMeta | None = None
    schema: c.Schema | None = None
    durable: bool = True
    start: MessageId | None = None
    """Of a reader: where it begins."""
    start_inclusive: bool = False


class TopicConsumer:
    """One partition's consumer."""

    def __init__(
        self,
        topic: str,
        environment: Environment,
        options: ConsumerOptions,
        on_messages: Callable[[TopicConsumer], None],
    ) -> None:
        """``on_messages`` is called when there are messages in the queue."""
        self.topic = topic
        self.partition = TopicName.parse(topic).partition_index
        self.active = True
        """Whether a Failover subscription gives it messages."""
        self.ended = False
        """Whether the topic was terminated and everything was read."""
        self.failure: Exception | None = None
        self._environment = environment
        self._options = options
        self._on_messages = on_messages
        self._loop = asyncio.get_running_loop()
        ordered = options.sub_type in (SubType.Exclusive, SubType.Failover)
        self._ordered = ordered
        start = options.start
        skip_to = _before(start) if start is not None and options.start_inclusive else start
        self.consumption = Consumption(
            topic,
            self.partition,
            options.limits,
            ordered=ordered,
            skip_to=skip_to,
            unpacked_max=environment.bounds.unpacked,
        )
        self._start = start
        self._inclusive = options.start_inclusive
        self._consumer_id = -1
        self._settling = False
        self._nack_timer: asyncio.TimerHandle | None = None
        self._chunk_timer: asyncio.TimerHandle | None = None
        self._seeking = False
        self._wanted = 0
        """Receivers that wait, where there is no queue."""
        self._attachment = Attachment(
            topic, environment.lookup, environment.rng, self._open, self._fail, timeout=environment.timeout
        )

    async def opened(self) -> None:
        """Wait until it is subscribed for the first time."""
        await self._attachment.opened()

    @property
    def connected(self) -> bool:
        """Whether it is subscribed at a broker at the moment."""
        return self._attachment.connection is not None

    async def _open(self, connection: WireConnection) -> None:
        consumer_id = connection.new_handle()
        connection.consumers[consumer_id] = self
        try:
            await connection.request(
                self._subscription(consumer_id, connection.new_request_id()),
                c.CommandSuccess,
                f"subscribe {self._options.subscription} to {self.topic}",
            )
        except BaseException:
            if connection.consumers.pop(consumer_id, None) is not None and connection.lost is None:
                connection.send(c.CommandCloseConsumer(consumer_id, connection.new_request_id()))
            raise
        if connection.lost is not None:
            raise connection.lost
        self._consumer_id = consumer_id
        self.consumption.opened(consumer_id)
        self._seeking = False
        self._loop.call_soon(self._settle)

    def _subscription(self, consumer_id: int, request_id: int) -> c.CommandSubscribe:
        options = self._options
        return c.CommandSubscribe(
            self.topic,
            options.subscription,
            options.sub_type,
            consumer_id,
            request_id,
            consumer_name=options.name,
            priority_level=options.priority_level,
            durable=options.durable,
            start_message_id=None if options.durable else self._start_data(),
            metadata=options.properties,
            read_compacted=options.read_compacted,
            schema=options.schema,
            initial_position=options.initial_position,
            replicate_subscription_state=options.replicate_subscription_state,
            key_shared_meta=options.key_shared,
            subscription_properties=options.subscription_properties,
            consumer_epoch=self.consumption.epoch if self._ordered else None,
        )

    def _start_data(self) -> c.MessageIdData | None:
        """Return where a reader begins, or goes on after what it has given to the application."""
        last = self.consumption.last_taken
        if last is not None:
            found = last.message_id()
            self.consumption.restart_after(found)
            return c.MessageIdData(found.ledger_id(), found.entry_id(), batch_index=found.batch_index())
        start = self._start
        if start is None:
            return None
        if start == MessageId.latest or start == MessageId.earliest:
            return start.data()
        place = start.chunks[0] if start.chunks and self._inclusive else (start.ledger_id(), start.entry_id())
        # With a batch index a broker begins with the entry, without one after it (rule 4.3.6).
        index = max(start.batch_index(), 0) if self._inclusive else start.batch_index()
        return c.MessageIdData(*place, batch_index=index)

    def on_message(self, message: c.CommandMessage) -> None:
        """Take an entry in."""
        if self._seeking or self.failure is not None:
            return  # it was sent before the seek, and the subscription is opened anew; or it comes to others
        consumption = self.consumption
        try:
            consumption.received(message)
        except UnpackedTooLargeError as error:
            self._fail(error)
            return
        if consumption.queue:
            self._on_messages(self)
        if self._chunk_timer is None and consumption.incomplete:
            self._chunk_timer = self._loop.call_later(_CHUNK_PASS, self._chunk_pass)
        self.settle_soon()

    def on_active(self, active: bool) -> None:
        """Note whether it is the one that a Failover subscription gives messages."""
        self.active = active

    def on_end_of_topic(self) -> None:
        """Note that no message will ever be added."""
        self.ended = True
        self._on_messages(self)

    def on_lost(self, error: Exception) -> None:
        """Forget what comes again."""
        self.consumption.lost()
        self._attachment.on_lost(error)

    def take(self) -> Message:
        """Return the next message of the queue, which must have one."""
        message = self.consumption.take()
        self.settle_soon()
        return message

    def want(self) -> None:
        """Ask for one message, where there is no queue."""
        self.consumption.want_one()
        self.settle_soon()

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
        commands = self.consumption.commands()
        if commands:
            connection.write(b"".join([encode(command) for command in commands]))

    def refuse(self, message_id: MessageId, *, at_once: bool = False) -> None:
        """Have a message come again, after the delay unless ``at_once``."""
        early = self._options.limits.negative_ack_delay if at_once else 0.0
        self.consumption.refuse(message_id, self._loop.time() - early)
        if self._nack_timer is not None and at_once:
            self._nack_timer.cancel()
            self._nack_timer = None
        if self._nack_timer is None:
            self._nack_timer = self._loop.call_at(self.consumption.negative.next_due, self._redeliver_due)

    def _redeliver_due(self) -> None:
        self._nack_timer = None
        consumption = self.consumption
        # Timers of an event loop may come a moment early.
        consumption.redeliver_due(self._loop.time() + 0.001)
        if consumption.negative.next_due != NEVER:
            self._nack_timer = self._loop.call_at(consumption.negative.next_due, self._redeliver_due)
        self.settle_soon()

    def _chunk_pass(self) -> None:
        self._chunk_timer = None
        self.consumption.expire_chunks(self._environment.clock.now_ms())
        if self.consumption.incomplete:
            self._chunk_timer = self._loop.call_later(_CHUNK_PASS, self._chunk_pass)
        self.settle_soon()

    async def acknowledge_with_receipt(self, ids: tuple[c.MessageIdData, ...], kind: c.AckType, txn: c.TxnId) -> None:
        """Acknowledge in a transaction. Raises RefusedError, ConnectionLostError."""
        connection = self._connection()
        ack = c.CommandAck(self._consumer_id, kind, ids, None, (), txn, connection.new_request_id())
        what = f"acknowledge on {self.topic} in a transaction"
        answer = await connection.request(ack, c.CommandAckResponse, what)
        if answer.error is not None:
            raise RefusedError(what, answer.error, answer.message)

    async def seek(self, command: c.CommandSeek, start: MessageId | None) -> None:
        """Move the subscription; what was received before is forgotten."""
        connection, openings = self._connection(), self._attachment.life.openings
        moved = replace(command, consumer_id=self._consumer_id, request_id=connection.new_request_id())
        self._seeking = True
        self.consumption.restart(None)
        try:
            await connection.request(moved, c.CommandSuccess, f"seek {self._options.subscription} on {self.topic}")
        except RefusedError:
            self._seeking = False
            raise
        self._start, self._inclusive = start or self._start, True
        self.consumption.restart(None)
        if self._attachment.connection is connection:
            self._leave(connection)  # the broker has not closed it, as it should have (rule 5.9.3)
        await self._attachment.reopened(openings)

    def _leave(self, connection: WireConnection) -> None:
        connection.consumers.pop(self._consumer_id, None)
        if connection.lost is None:
            connection.send(c.CommandCloseConsumer(self._consumer_id, connection.new_request_id()))
        self.on_lost(ConnectionLostError(f"{self.topic}: subscribed anew after a seek"))

    def _connection(self) -> WireConnection:
        if self.failure is not None:
            raise self.failure
        connection = self._attachment.connection
        if connection is None:
            raise ConnectionLostError(f"{self.topic} is not connected at the moment; try again")
        return connection

    async def last_message_id(self) -> c.CommandGetLastMessageIdResponse:
        """Return what the broker says about the end of the topic."""
        connection = self._connection()
        command = c.CommandGetLastMessageId(self._consumer_id, connection.new_request_id())
        what = f"ask for the last message of {self.topic}"
        return await connection.request(command, c.CommandGetLastMessageIdResponse, what)

    async def unsubscribe(self, *, force: bool = False) -> None:
        """Delete the subscription, and with it this consumer."""
        connection = self._connection()
        command = c.CommandUnsubscribe(self._consumer_id, connection.new_request_id(), force)
        await connection.request(command, c.CommandSuccess, f"unsubscribe {self._options.subscription}")
        connection.consumers.pop(self._consumer_id, None)
        await self._attachment.close()

    def _fail(self, error: Exception) -> None:
        self.failure = error
        self._on_messages(self)

    async def close(self) -> None:
        """Write what is due, and close it at the broker, too."""
        for timer in (self._nack_timer, self._chunk_timer):
            if timer is not None:
                timer.cancel()
        self._settle()
        connection = await self._attachment.close()
        if connection is None or connection.lost is not None:
            return
        connection.consumers.pop(self._consumer_id, None)
        command = c.CommandCloseConsumer(self._consumer_id, connection.new_request_id())
        try:
            await connection.request(command, c.CommandSuccess, f"close the consumer on {self.topic}")
        except (ConnectionLostError, ClientTimeoutError, RefusedError):
            pass  # what is gone is closed


def _before(start: MessageId) -> MessageId | None:
    """Return the id before one of a batch; None: nothing is left out."""
    if start.batch_index() <= 0:
        return None
    return MessageId(start.partition(), start.ledger_id(), start.entry_id(), start.batch_index() - 1)
