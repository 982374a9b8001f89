"""One client's socket: bytes in, whole commands to the session, keep-alive, and the end.

``data_received`` does everything that a wake-up brings in one go: no task, no timer and no hop per message. One timer
per connection watches for silence (SEMANTICS 12.10).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, cast

from magnetar.broker.connection.dispatch import HANDLERS
from magnetar.broker.connection.outbox import HIGH_WATER, Outbox
from magnetar.broker.connection.session import Session
from magnetar.broker.service import BrokerService
from magnetar.model.errors import ProtocolError
from magnetar.protocol.commands import Command, Ping
from magnetar.protocol.decoder import MalformedBytesError
from magnetar.protocol.frames import FRAME_PADDING
from magnetar.protocol.server import ServerConnection

log = logging.getLogger(__name__)

HANDSHAKE_SECONDS: Final = 30.0


class Listener(asyncio.Protocol):
    """Made by the server for each connection; ``connections`` is the set of all that are open."""

    def __init__(self, service: BrokerService, connections: set[Listener]) -> None:
        self._service = service
        self._connections = connections
        self._protocol = ServerConnection(service.settings.maxMessageSize + FRAME_PADDING)
        self._heard = True
        self._asked = False
        self._timer: asyncio.TimerHandle | None = None
        self.session: Session
        self._out: Outbox

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not derive from asyncio's
        transport = cast(asyncio.Transport, transport)
        loop = asyncio.get_running_loop()
        transport.set_write_buffer_limits(high=HIGH_WATER)
        self._out = Outbox(loop, transport, self._writable)
        self.session = Session(self._service, self._out, transport, self._protocol, HANDLERS)
        self._connections.add(self)
        self._timer = loop.call_later(HANDSHAKE_SECONDS, self._handshake_late)

    def data_received(self, data: bytes) -> None:
        self._heard = True
        session = self.session
        if session.closed:
            return
        if session.probing:
            session.alive()
        try:
            commands = self._protocol.receive(data)
        except MalformedBytesError as error:
            self._refuse(error, error.decoded)
            return
        try:
            session.handle(commands)
        except ProtocolError as error:
            session.close(str(error))
        except Exception:
            log.exception("%s: a command could not be handled", session.address)
            session.close("an internal error, see the log")

    def _refuse(self, error: MalformedBytesError, decoded: list[Command]) -> None:
        """What came whole before the bad bytes still counts."""
        try:
            self.session.handle(decoded)
        except ProtocolError as earlier:
            self.session.close(str(earlier))
            return
        self.session.close(str(error))

    def pause_writing(self) -> None:
        self._out.pause()

    def resume_writing(self) -> None:
        self._out.resume()

    def _writable(self) -> None:
        if not self.session.closed:
            self.session.writable_again()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._connections.discard(self)
        if exc is not None:
            log.debug("%s: connection lost: %s", self.session.address, exc)
        self.session.lost()

    def close(self, reason: str) -> None:
        """Close from our side, through no fault of the client."""
        self.session.close(reason, fault=False)

    # silence -----------------------------------------------------------------------------------------------------

    def _handshake_late(self) -> None:
        if not self.session.connected:
            self.session.close(f"no CONNECT within {HANDSHAKE_SECONDS:g} s")
            self.session.transport.abort()
            return
        self._watch()

    def _watch(self) -> None:
        """PING after a silent interval, close after a second one."""
        if self.session.closed:
            # it does not even take what was still to be sent: its consumers must not wait for that
            self.session.transport.abort()
            return
        if self._heard or self.session.reading_paused:
            # while we do not read we cannot hear
            self._heard = self._asked = False
        elif self._asked:
            self.session.close("silent for two keep-alive intervals")
            self.session.transport.abort()
            return
        else:
            self._asked = True
            self.session.send(Ping())
        interval = self._service.settings.keepAliveIntervalSeconds
        self._timer = asyncio.get_running_loop().call_later(interval, self._watch)


def factory(service: BrokerService, connections: set[Listener]) -> Callable[[], Listener]:
    """What the server calls for each connection."""
    return lambda: Listener(service, connections)
