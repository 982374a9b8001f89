"""What sockets of consumers and readers have in common: messages go out while there is room, frames come in beside."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from typing import Final

from magnetar.admin.values.client_refusals import reason_of
from magnetar.admin.websocket.frames import read_object
from magnetar.admin.websocket.socket_memory import SocketShare
from magnetar.admin.websocket.upgrade import Socket
from magnetar.client.errors import AlreadyClosedError, ClientError, UndeliverableError
from magnetar.client.machines.message import Message
from magnetar.model.errors import MagnetarError
from magnetar.model.policies import JsonObject
from magnetar.runtime.event import Event
from magnetar.runtime.log import RateLimitedLog

_limited = RateLimitedLog(logging.getLogger(__name__), burst=1)
NOT_UNDERSTOOD: Final = 1007
BROKEN: Final = 1011
PREFETCHED: Final = 10
"""Messages that wait in memory for a socket: it is in the same process as the broker, so more would gain nothing."""


class CloseSocketError(Exception):
    """The socket is to be closed."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class DeliverySocket(ABC):
    """One socket. Two tasks: frames of the peer are taken in one, messages sent in the other."""

    def __init__(self, socket: Socket, share: SocketShare) -> None:
        """``share``: of the memory of all sockets."""
        self._socket = socket
        self._share = share
        self._room = Event()

    async def run(self) -> None:
        """Serve the socket until the peer leaves, which is a SocketGoneError, or it has to be closed."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._pump())
            tasks.create_task(self._watch())
            while True:
                frame = await self._socket.receive()
                try:
                    given = read_object(frame)
                except MagnetarError as error:
                    raise CloseSocketError(NOT_UNDERSTOOD, f"Failed to de-serialize from JSON: {error}") from None
                await self._take(given)

    async def _pump(self) -> None:
        try:
            while True:
                while not self._has_room():
                    self._room.clear()
                    await self._room.wait()
                message = await self._receive()
                await self._share.reserve(len(message.data()))
                try:
                    text = await self._frame(message)
                    del message  # what is counted for it is the frame from here on
                    if text is not None:
                        await self._socket.send(text)
                        del text
                finally:
                    self._share.release()
        except AlreadyClosedError:
            return  # unsubscribed: the peer may go on asking
        except UndeliverableError as error:
            _limited.warning(
                f"{error.topic} {self._named}", "a WebSocket %s is closed: %s; to go on after it: %s",
                self._named, error, self._way_around(error), extra={"topic": error.topic},
            )  # fmt: skip
            raise CloseSocketError(BROKEN, f"{error.brief}; skip it: docs/websocket.md") from error
        except ClientError as error:
            raise CloseSocketError(BROKEN, reason_of(error)) from error

    async def _watch(self) -> None:  # noqa: B027  # readers have nothing to watch
        """Do what else there is to do."""

    @abstractmethod
    def _has_room(self) -> bool:
        """Whether another message may go out."""

    @property
    @abstractmethod
    def _named(self) -> str:
        """What it is, for the log."""

    @abstractmethod
    def _way_around(self, error: UndeliverableError) -> str:
        """What an operator or the peer does to go on after a message that this socket cannot have."""

    @abstractmethod
    async def _receive(self) -> Message:
        """The next message."""

    @abstractmethod
    async def _frame(self, message: Message) -> str | None:
        """A message as a frame, which is out from now on; ``None`` for one that the peer is not to have."""

    @abstractmethod
    async def _take(self, given: JsonObject) -> None:
        """Do what a frame asks. Raises CloseSocketError."""
