"""A consumer with interceptors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from typing_extensions import override

from magnetar.client.aio.client_environment import Environment
from magnetar.client.aio.consumers.consumer import Consumer
from magnetar.client.aio.consumers.letter_producer import OpenOutlet
from magnetar.client.aio.interceptors.consumer_interceptor import ConsumerInterceptor
from magnetar.client.aio.interceptors.interceptor_calls import checked, passed_on, told
from magnetar.client.aio.topics.consumer_options import ConsumerOptions
from magnetar.client.aio.topics.topic_consumer import TopicConsumer
from magnetar.client.machines.batch_receive_policy import ConsumerBatchReceivePolicy
from magnetar.client.machines.message import Message
from magnetar.client.machines.message_id import MessageId

if TYPE_CHECKING:
    from magnetar.client.aio.client_transaction import ClientTransaction


class InterceptedConsumer(Consumer):
    """Every message passes its interceptors last before the application has it."""

    def __init__(
        self,
        topic: str,
        environment: Environment,
        options: ConsumerOptions,
        open_outlet: OpenOutlet | None = None,
        *,
        interceptors: Sequence[ConsumerInterceptor],
    ) -> None:
        """``interceptors``: in the order in which a message passes them."""
        self.interceptors = interceptors
        super().__init__(topic, environment, options, open_outlet)

    @classmethod
    def of(cls, interceptors: Sequence[ConsumerInterceptor]) -> partial[InterceptedConsumer]:
        """Return what makes a consumer with these. Raises InvalidValueError about what is no interceptor."""
        return partial(cls, interceptors=checked(interceptors, ConsumerInterceptor))

    @override
    async def add(self, topics: Iterable[str], start: MessageId | None = None) -> None:
        names, before = list(topics), len(self._members)
        await super().add(names, start)
        for name in names:
            one = self._members.get(name)
            if one is not None:
                one.on_redelivery = self._redelivers
        if before and len(self._members) > before:
            told(self.interceptors, "on_partitions_change", self.topic(), len(self._members))

    def _redelivers(self, one: TopicConsumer, method: str, places: Sequence[tuple[int, int]]) -> None:
        ids = {MessageId(one.partition, ledger, entry, topic=one.topic) for ledger, entry in places}
        told(self.interceptors, method, self, ids)

    @override
    async def receive(self, timeout_millis: int | None = None) -> Message:
        message = self.receive_nowait()
        # With nothing at hand the other way leads to `receive_nowait`, too.
        return await super().receive(timeout_millis) if message is None else message

    @override
    def receive_nowait(self) -> Message | None:
        message = super().receive_nowait()
        return None if message is None else passed_on(self.interceptors, "before_consume", self, message)

    @override
    def take_many(self, most: int) -> list[Message]:
        return [passed_on(self.interceptors, "before_consume", self, one) for one in super().take_many(most)]

    @override
    def lend(self, *, wanted: int) -> list[Message]:
        # What another thread takes has passed the interceptors, so no more than it asked for: none without a waiter.
        if self._without_queue:
            self._want(wanted)
        return self.take_many(1) if wanted else []

    @override
    def _take(self, policy: ConsumerBatchReceivePolicy) -> list[Message]:
        return [passed_on(self.interceptors, "before_consume", self, one) for one in super()._take(policy)]

    @override
    async def acknowledge(
        self, message: Message | MessageId | Sequence[Message | MessageId], *, txn: ClientTransaction | None = None
    ) -> None:
        error: BaseException | None = None
        try:
            await super().acknowledge(message, txn=txn)
        except BaseException as raised:
            error = raised
            raise
        finally:
            given = message if isinstance(message, Sequence) else (message,)
            for one in given:
                if isinstance(one, Message | MessageId):
                    told(self.interceptors, "on_acknowledge", self, _id(one), error)

    @override
    def acknowledge_many(self, messages: Iterable[Message | MessageId]) -> None:
        given = list(messages)
        super().acknowledge_many(given)
        for message in given:
            told(self.interceptors, "on_acknowledge", self, _id(message), None)

    @override
    async def acknowledge_cumulative(
        self, message: Message | MessageId, *, txn: ClientTransaction | None = None
    ) -> None:
        error: BaseException | None = None
        try:
            await super().acknowledge_cumulative(message, txn=txn)
        except BaseException as raised:
            error = raised
            raise
        finally:
            if isinstance(message, Message | MessageId):
                told(self.interceptors, "on_acknowledge_cumulative", self, _id(message), error)

    @override
    def _end(self) -> None:
        super()._end()
        told(self.interceptors, "close")


def _id(message: Message | MessageId) -> MessageId:
    return message.message_id() if isinstance(message, Message) else message
