"""A reader's socket: messages go out, and any frame that comes in makes room for another one."""

from __future__ import annotations

from urllib.parse import quote

from typing_extensions import override

from magnetar.admin.websocket.delivery_socket import DeliverySocket
from magnetar.admin.websocket.frames import delivered, end_of_topic, id_text
from magnetar.admin.websocket.socket_memory import SocketShare
from magnetar.admin.websocket.upgrade import Socket
from magnetar.client.aio.consumers.reader import Reader
from magnetar.client.errors import UndeliverableError
from magnetar.client.machines.message import Message
from magnetar.client.machines.message_id import MessageId
from magnetar.model.names import TopicName
from magnetar.model.policies import JsonObject


class ReaderSocket(DeliverySocket):
    """One socket with its reader."""

    def __init__(self, socket: Socket, share: SocketShare, reader: Reader, most: int) -> None:
        """``most``: messages that may be out."""
        super().__init__(socket, share)
        self._reader = reader
        self._most = most
        self._out = 0

    @override
    def _has_room(self) -> bool:
        return self._out < self._most

    @property
    @override
    def _named(self) -> str:
        return "reader"

    @override
    def _way_around(self, error: UndeliverableError) -> str:
        place = MessageId(TopicName.parse(error.topic).partition_index, *error.place)
        return f"open the reader with messageId={quote(id_text(place), safe='')}"

    @override
    async def _receive(self) -> Message:
        return await self._reader.read_next()

    @override
    async def _frame(self, message: Message) -> str:
        self._out += 1
        return delivered(message, id_text(message.message_id()))

    @override
    async def _take(self, given: JsonObject) -> None:
        if given.get("type") == "isEndOfTopic":
            await self._socket.send(end_of_topic(self._reader.has_reached_end_of_topic()))
        elif self._out:
            self._out -= 1
            self._room.set()
