"""A consumer's socket: messages go out, acknowledgements come in."""

from __future__ import annotations

import asyncio
import shlex
from typing import Final

from typing_extensions import override

from magnetar.admin.values import coercion
from magnetar.admin.values.client_refusals import reason_of
from magnetar.admin.websocket.dead_letters import DeadLetters
from magnetar.admin.websocket.delivery_socket import BROKEN, NOT_UNDERSTOOD, CloseSocketError, DeliverySocket
from magnetar.admin.websocket.frames import delivered, end_of_topic, id_text
from magnetar.admin.websocket.query_parameters import ConsumingOptions, message_id
from magnetar.admin.websocket.socket_memory import SocketShare
from magnetar.admin.websocket.upgrade import Socket
from magnetar.client.aio.consumers.consumer import Consumer
from magnetar.client.errors import ClientError, UndeliverableError
from magnetar.client.machines.message import Message
from magnetar.client.machines.message_id import MessageId
from magnetar.config.setting_field import INT_MAX
from magnetar.model.errors import MagnetarError
from magnetar.model.policies import JsonObject

_OUT_MAX: Final = 50_000
"""Messages that may be out unacknowledged, however many permits a socket has."""
_PERMITS_MAX: Final = INT_MAX


class ConsumerSocket(DeliverySocket):
    """One socket with its consumer."""

    def __init__(
        self, socket: Socket, share: SocketShare, consumer: Consumer, options: ConsumingOptions, dead: DeadLetters
    ) -> None:
        super().__init__(socket, share)
        self._consumer = consumer
        self._pull = options.pull
        self._most = _OUT_MAX if options.pull else options.queue
        self._timeout = options.ack_timeout_ms / 1000
        self._dead = dead
        self._permits = 0
        self._out: dict[str, tuple[MessageId, float]] = {}
        """Ids that were sent and not answered, oldest first, and when."""
        self._loop = asyncio.get_running_loop()

    @override
    def _has_room(self) -> bool:
        return len(self._out) < self._most and (not self._pull or self._permits > 0)

    @property
    @override
    def _named(self) -> str:
        return f"consumer of subscription {self._consumer.subscription_name()}"

    @override
    def _way_around(self, error: UndeliverableError) -> str:
        subscription = shlex.quote(self._consumer.subscription_name())
        return (
            f"magnetar admin topics skip {shlex.quote(error.topic)} -s {subscription} -n 1, "
            "when it is the first message of the backlog"
        )

    @override
    async def _receive(self) -> Message:
        return await self._consumer.receive()

    @override
    async def _frame(self, message: Message) -> str | None:
        if self._dead.has(message):
            await self._dead.move(message, self._consumer)
            return None
        if self._pull:
            self._permits -= 1
        place = message.message_id()
        text = id_text(place)
        self._out[text] = place, self._loop.time()
        return delivered(message, text)

    @override
    async def _take(self, given: JsonObject) -> None:
        match given.get("type"):
            case "permit":
                self._permit(given)
            case "unsubscribe":
                await self._unsubscribe()
            case "isEndOfTopic":
                await self._socket.send(end_of_topic(self._consumer.has_reached_end_of_topic()))
            case "negativeAcknowledge":
                place, out = self._answered(given)
                if out:  # another one is not this socket's to give back
                    await self._consumer.negative_acknowledge(place)
            case _:
                await self._consumer.acknowledge(self._answered(given)[0])

    def _answered(self, given: JsonObject) -> tuple[MessageId, bool]:
        """The message that a frame is about, and whether it was out; then there is room for another one."""
        text = given.get("messageId")
        if not isinstance(text, str):
            raise CloseSocketError(BROKEN, 'expected "messageId" as a text, or another "type"')
        sent = self._out.pop(text, None)
        self._room.set()
        if sent is not None:
            return sent[0], True
        try:
            return message_id(text), False
        except MagnetarError as error:
            raise CloseSocketError(BROKEN, str(error)) from None

    def _permit(self, given: JsonObject) -> None:
        try:
            more = coercion.number(
                given.get("permitMessages"), "a whole number as permitMessages", least=0, most=_PERMITS_MAX
            )
        except MagnetarError as error:
            raise CloseSocketError(NOT_UNDERSTOOD, f"Failed to de-serialize from JSON: {error}") from None
        if self._pull and more > 0:
            self._permits = min(self._permits + more, _PERMITS_MAX)
            self._room.set()

    async def _unsubscribe(self) -> None:
        self._share.flow.go_on()  # the answer has to be read
        try:
            await self._consumer.unsubscribe()
        except ClientError as error:
            raise CloseSocketError(BROKEN, reason_of(error)) from None

    @override
    async def _watch(self) -> None:
        """Have messages come again that were not answered in time."""
        while self._timeout:
            await asyncio.sleep(self._timeout / 4)
            late = self._loop.time() - self._timeout
            while self._out:
                text, (place, sent) = next(iter(self._out.items()))
                if sent > late:
                    break
                del self._out[text]
                self._consumer.redeliver(place)
                self._room.set()
