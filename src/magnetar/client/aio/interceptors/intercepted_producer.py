"""A producer with interceptors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from typing_extensions import override

from magnetar.client.aio.client_environment import Environment
from magnetar.client.aio.interceptors.interceptor_calls import checked, passed_on, told
from magnetar.client.aio.interceptors.producer_interceptor import ProducerInterceptor
from magnetar.client.aio.producers.producer import Producer
from magnetar.client.aio.topics.producer_options import ProducerOptions
from magnetar.client.aio.topics.receipt import FateToken, Receipt
from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.outgoing.entry_fate import EntryFate
from magnetar.client.machines.outgoing.outgoing_message import OutgoingMessage
from magnetar.client.machines.outgoing.partition_router import PartitionRouter

if TYPE_CHECKING:
    from magnetar.client.aio.client_transaction import ClientTransaction


class InterceptedProducer(Producer):
    """Every message passes its interceptors first, one way or the other that it is sent."""

    def __init__(
        self,
        topic: str,
        partitions: int,
        environment: Environment,
        options: ProducerOptions,
        router: PartitionRouter,
        interceptors: Sequence[ProducerInterceptor],
    ) -> None:
        """``interceptors``: in the order in which a message passes them."""
        self.interceptors = interceptors
        super().__init__(topic, partitions, environment, options, router)

    @classmethod
    def of(cls, interceptors: Sequence[ProducerInterceptor]) -> partial[InterceptedProducer]:
        """Return what makes a producer with these. Raises InvalidValueError about what is no interceptor."""
        return partial(cls, interceptors=checked(interceptors, ProducerInterceptor))

    def _before(self, message: OutgoingMessage) -> OutgoingMessage:
        return passed_on(self.interceptors, "before_send", self, message)

    def _failed(self, message: OutgoingMessage, error: BaseException) -> None:
        told(self.interceptors, "on_send_acknowledgement", self, message, None, error)

    def _followed(self, message: OutgoingMessage, receipt: Receipt) -> Receipt:
        # Not a callback of the receipt: the application may cancel it, and the message is on its way all the same.
        receipt.follow(HeardToken(self, message))
        return receipt

    @override
    async def enqueue(self, message: OutgoingMessage) -> Receipt:
        message = self._before(message)
        try:
            receipt = await super().enqueue(message)
        except BaseException as error:
            self._failed(message, error)
            raise
        return self._followed(message, receipt)

    @override
    async def _send_in(self, txn: ClientTransaction, message: OutgoingMessage) -> MessageId:
        message = self._before(message)
        try:
            found = await super()._send_in(txn, message)
        except BaseException as error:
            self._failed(message, error)
            raise
        told(self.interceptors, "on_send_acknowledgement", self, message, found, None)
        return found

    @override
    def send_nowait(self, content: bytes | OutgoingMessage) -> Receipt:
        message = self._before(content if isinstance(content, OutgoingMessage) else OutgoingMessage(content))
        try:
            receipt = super().send_nowait(message)
        except BaseException as error:
            self._failed(message, error)
            raise
        return self._followed(message, receipt)

    @override
    def send_many_nowait(self, contents: Sequence[bytes]) -> list[Receipt]:
        found: list[Receipt] = []
        for content in contents:
            if any(one.full for one in self._producers):
                break
            found.append(self.send_nowait(content))
        return found

    @override
    def join_many(self, contents: Sequence[bytes], at: int, stop: int) -> tuple[EntryFate | None, int]:
        return None, 0  # each one is to be seen

    @override
    def send_with(self, message: bytes | OutgoingMessage, token: FateToken) -> None:
        message = self._before(message if isinstance(message, OutgoingMessage) else OutgoingMessage(message))
        try:
            super().send_with(message, HeardToken(self, message, token))
        except BaseException as error:
            self._failed(message, error)
            raise

    @override
    async def grow(self, partitions: int) -> None:
        before = len(self._producers)
        await super().grow(partitions)
        if len(self._producers) > before:
            told(self.interceptors, "on_partitions_change", self.topic(), len(self._producers))

    @override
    async def close(self) -> None:
        if self._closed:
            return
        try:
            await super().close()
        finally:
            told(self.interceptors, "close")


class HeardToken:
    """What hears the fate of one message for the interceptors, and hands it on to the application's own token."""

    def __init__(self, producer: InterceptedProducer, message: OutgoingMessage, token: FateToken | None = None) -> None:
        self._producer, self._message, self._token = producer, message, token

    def done(self) -> bool:
        """Whether the application does not want to know; the interceptors always do."""
        return False

    def set_result(self, result: MessageId, /) -> None:
        """Note where the message is stored."""
        if self._token is not None and not self._token.done():
            self._token.set_result(result)
        told(self._producer.interceptors, "on_send_acknowledgement", self._producer, self._message, result, None)

    def set_exception(self, error: Exception, /) -> None:
        """Note why it is not."""
        if self._token is not None and not self._token.done():
            self._token.set_exception(error)
        told(self._producer.interceptors, "on_send_acknowledgement", self._producer, self._message, None, error)

    def exception(self) -> object:
        """Return nothing of its own."""
        return None if self._token is None else self._token.exception()
