"""What an application says about messages: done with, again, later, dead."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from magnetar.client.aio.client_environment import Environment
from magnetar.client.aio.consumers.letter_producer import OpenOutlet
from magnetar.client.aio.consumers.letters import Letters, delay_ms
from magnetar.client.aio.consumers.original import Acknowledge, Original
from magnetar.client.aio.consumers.ready_messages import ReadyMessages
from magnetar.client.aio.handlers.handler_host import HandlerHost
from magnetar.client.aio.parameters import checked
from magnetar.client.aio.topics.consumer_options import ConsumerOptions
from magnetar.client.aio.topics.topic_consumer import TopicConsumer
from magnetar.client.errors import CumulativeAcknowledgementNotAllowedError, OperationNotSupported
from magnetar.client.machines.message import Message, T
from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.redelivery.last_deliveries import DeadMessage, DeathCause
from magnetar.model.errors import InvalidValueError
from magnetar.model.subscription_types import SubType
from magnetar.protocol import commands as c

if TYPE_CHECKING:
    from magnetar.client.aio.client_transaction import ClientTransaction


class NothingToAwait:
    """What a call returns that is done already; awaiting it does nothing."""

    def __await__(self) -> Generator[None, None, None]:
        yield from ()


class Settlement(ReadyMessages[T], HandlerHost[T]):
    """The part of a `Consumer` that takes the application's word; its members are one for each internal topic."""

    def __init__(
        self, topic: str, environment: Environment, options: ConsumerOptions, open_outlet: OpenOutlet | None
    ) -> None:
        super().__init__(topic, options.limits.in_all)
        self._environment = environment
        self._options = options
        self._only: TopicConsumer | None = None
        """The one member, where there never was another and it is open."""
        self._letters: Letters | None = None
        if options.delivery.policy is not None and open_outlet is not None:
            self._letters = Letters(options, open_outlet, environment.lookup.schema_of_version, environment.rng)

    @property
    def awaits_receipts(self) -> bool:
        """Whether acknowledgements wait until the broker has stored them."""
        return self._options.delivery.ack_receipts

    @override
    async def acknowledge(
        self,
        message: Message[T] | MessageId | Sequence[Message[T] | MessageId],
        *,
        txn: ClientTransaction | None = None,
    ) -> None:
        """Take a message, or each of a list, as done with.

        The broker hears of it at the end of this turn of the loop, within 10 ms after another one, or after
        ack_group_time_ms; with ack_receipt_enabled this waits until it is stored. With ``txn`` it counts when the
        transaction is committed. Raises AlreadyClosedError, InvalidValueError, and what the broker answers.
        """
        if txn is not None or not isinstance(message, Message):
            checked("acknowledge", message=message, txn=txn)
        if isinstance(message, Message | MessageId):
            one = self._only
            if one is None or (message.envelope.topic if isinstance(message, Message) else message.topic) != one.topic:
                one = self._member(message)
            if txn is not None:
                await self._acknowledge_in(txn, one, message, c.AckType.Individual)
            elif (stored := one.acknowledge(message)) is not None:
                await stored
            return
        members = [self._member(each) for each in message]  # of all before any is acknowledged
        if txn is not None:
            for one, each in zip(members, message, strict=True):
                await self._acknowledge_in(txn, one, each, c.AckType.Individual)
            return
        answers = [one.ack_answer() for one in self._acknowledged(message)]
        await asyncio.gather(*(one for one in answers if one is not None))

    def acknowledge_many(self, messages: Iterable[Message[T] | MessageId]) -> None:
        """Take messages as done with, as `acknowledge` does; nothing is to be awaited. Raises AlreadyClosedError,
        InvalidValueError for one of another topic, and then those before it are acknowledged."""
        self._acknowledged(messages)

    def _acknowledged(self, messages: Iterable[Message[T] | MessageId]) -> set[TopicConsumer]:
        touched: set[TopicConsumer] = set()
        only = self._only
        try:
            for message in messages:
                topic = message.envelope.topic if isinstance(message, Message) else message.topic
                one = only if only is not None and only.topic == topic else self._member(message)
                if not isinstance(message, Message):
                    one.consumption.acknowledge(message)
                    touched.add(one)
                elif one.consumption.acknowledge_message(message):
                    touched.add(one)
        finally:
            for one in touched:
                one.settle_soon()
        return touched

    async def _acknowledge_in(
        self, txn: ClientTransaction, one: TopicConsumer, message: Message[T] | MessageId, kind: c.AckType
    ) -> None:
        txn.check_use(self._environment.lookup)
        message_id = _id(message)
        await txn.acknowledges(one, self._options.subscription, message_id, kind)
        one.consumption.redeliveries.in_transaction(message_id, cumulative=kind is c.AckType.Cumulative)

    async def acknowledge_cumulative(
        self, message: Message[T] | MessageId, *, txn: ClientTransaction | None = None
    ) -> None:
        """Take a message and all before it of its topic as done with; not on Shared and Key_Shared."""
        checked("acknowledge_cumulative", message=message, txn=txn)
        self._check_cumulative()
        one = self._member(message)
        if txn is not None:
            await self._acknowledge_in(txn, one, message, c.AckType.Cumulative)
            return
        if (stored := one.acknowledge_cumulative(message)) is not None:
            await stored

    def acknowledge_up_to(self, message: Message[T] | MessageId) -> None:
        """Take a message and all before it of its topic as done with; for a reader, whatever its type."""
        self._member(message).acknowledge_cumulative(message)

    def _check_cumulative(self) -> None:
        if self._options.sub_type in (SubType.Shared, SubType.Key_Shared):
            raise CumulativeAcknowledgementNotAllowedError(
                f"a {self._options.sub_type.name} subscription cannot be acknowledged cumulatively"
            )

    @override
    async def negative_acknowledge(
        self,
        message: Message[T] | MessageId,
        delay: float | timedelta | None = None,
        *,
        error: BaseException | str | None = None,
    ) -> None:
        """Have a message come again after ``delay`` (a timedelta, or milliseconds), by default after that of
        negative_ack_redelivery_backoff or negative_ack_redelivery_delay_ms.

        ``error`` is what a dead letter says about it, if this was its last delivery. Raises AlreadyClosedError,
        InvalidValueError.
        """
        checked("negative_acknowledge", message=message, delay=delay, error=error)
        seconds = None if delay is None else delay_ms(delay) / 1_000
        count = message.redelivery_count() if isinstance(message, Message) else 0
        self._member(message).refuse(_id(message), seconds, count, error)

    @override
    def redeliver(self, message: Message[T] | MessageId, after: float = 0.0) -> None:
        """Have a message come again after so many seconds; now, as when the time for its acknowledgement is over."""
        self._member(message).refuse(_id(message), after)

    def redeliver_unacknowledged_messages(self) -> NothingToAwait:
        """Have everything come again that is not acknowledged; it is done at once, and need not be awaited.

        Raises AlreadyClosedError.
        """
        self.redeliver_all()
        return NothingToAwait()

    def redeliver_all(self) -> None:
        """Do the same; nothing is to be awaited. Raises AlreadyClosedError."""
        for one in self._open():
            one.redeliver_all()

    async def reconsume_later(
        self,
        message: Message[T],
        delay: float | timedelta = 0,
        custom_properties: Mapping[str, str] | None = None,
        *,
        error: BaseException | str | None = None,
    ) -> None:
        """Have a copy of a message come after ``delay`` (a timedelta, or milliseconds), and be done with it.

        After as many retries as the policy has, it is a dead letter. ``error`` is kept with the copy. If the copy
        cannot be stored, the message is acknowledged negatively; raises why. Cancelled before the copy was handed over,
        nothing happened; later, the message is acknowledged once the copy is stored. Raises InvalidValueError without
        retry_enable.
        """
        await self._reconsume(message, delay, custom_properties, error, TopicConsumer.acknowledge)

    async def reconsume_later_cumulative(
        self,
        message: Message[T],
        delay: float | timedelta = 0,
        custom_properties: Mapping[str, str] | None = None,
        *,
        error: BaseException | str | None = None,
    ) -> None:
        """Do the same, and be done with all messages before it, too; not on Shared and Key_Shared."""
        self._check_cumulative()
        await self._reconsume(message, delay, custom_properties, error, TopicConsumer.acknowledge_cumulative)

    async def _reconsume(
        self,
        message: Message[T],
        delay: float | timedelta,
        custom_properties: Mapping[str, str] | None,
        error: BaseException | str | None,
        acknowledge: Acknowledge,
    ) -> None:
        checked("reconsume_later", message=message, delay=delay, custom_properties=custom_properties, error=error)
        if self._letters is None or self._letters.retry is None:
            raise InvalidValueError(f"{self._topic}: reconsume_later needs retry_enable=True")
        original = Original(self._member(message), message, acknowledge, self._again_after)
        await self._letters.retry.send(
            original, delay_ms=delay_ms(delay), now_ms=self._environment.clock.now_ms(),
            custom_properties=custom_properties, error=error,
        )  # fmt: skip
        await original.acknowledged()

    @override
    async def reject(self, message: Message[T], reason: str = "", cause: BaseException | None = None) -> bool:
        """Copy a message to the dead letter topic now, with ``reason`` and ``cause``, and be done with it.

        Returns whether there is such a topic; without a dead_letter_policy nothing is done. If the copy cannot be
        stored, the message is acknowledged negatively; raises why.
        """
        checked("reject", message=message, reason=reason, cause=cause)
        one = self._member(message)
        if self._letters is None:
            return False
        original = Original(one, message, TopicConsumer.acknowledge, self._again_after)
        dead = DeadMessage(message, DeathCause.REJECTED, cause, reason)
        await original.copied(self._letters.dead.post(one, dead))
        await original.acknowledged()
        return True

    @property
    def _again_after(self) -> float:
        """After how many seconds a message comes again that could not be copied."""
        return self._options.limits.redelivery.negative_ack_delay

    def _bury(self, one: TopicConsumer, dead: list[DeadMessage]) -> None:
        if self._letters is not None:
            self._letters.dead.bury(one, dead)

    async def _close_letters(self) -> None:
        if self._letters is not None:
            await self._letters.close()

    def _open(self) -> list[TopicConsumer]:
        if self._closed:
            raise self._closed_error()
        return list(self._members.values())

    def moved_by(self, place: MessageId | int) -> list[TopicConsumer]:
        """Return what a seek moves: everything by a time or to an end, otherwise the topic that the id says.

        Raises AlreadyClosedError, InvalidValueError.
        """
        members = self._open()
        if len(members) < 2 or not isinstance(place, MessageId) or place in (MessageId.earliest, MessageId.latest):
            return members
        if not place.topic and place.partition() < 0:
            raise InvalidValueError("a seek on several topics needs an id that says which, or a time")
        return [self._member(place)]

    def _member(self, message: Message[T] | MessageId) -> TopicConsumer:
        members = self._open()
        topic = message.envelope.topic if isinstance(message, Message) else message.topic
        if len(members) == 1 and topic in ("", members[0].topic):
            return members[0]
        found = self._members.get(topic)
        if found is None and isinstance(message, MessageId) and message.partition() >= 0:
            of_partition = [one for one in members if one.partition == message.partition()]
            found = of_partition[0] if len(of_partition) == 1 else None
        if found is None:
            kind = InvalidValueError if topic else OperationNotSupported
            raise kind(f"{topic or message} is not among the topics of {self._topic}")
        return found


def _id(message: Message[Any] | MessageId) -> MessageId:
    return message.message_id() if isinstance(message, Message) else message
