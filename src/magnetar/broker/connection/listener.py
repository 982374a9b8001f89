"""The socket of one client: bytes in, whole commands to the session, keep-alive, and the end.

``data_received`` does what a wake-up brings in one go, up to a bound: no task, no timer and no hop per message. What is
left waits for the connection's next turn (:mod:`magnetar.broker.connection.bounds.turns`) and for a client that takes
its answers; the socket is not read meanwhile. One timer per connection watches for silence (rule 12.10).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final, cast

from magnetar.broker.connection.bounds.outbox import Outbox
from magnetar.broker.connection.bounds.socket_pauses import MEMORY, WORK
from magnetar.broker.connection.bounds.turns import Turns
from magnetar.broker.connection.bounds.unfinished_frames import UnfinishedFrames
from magnetar.broker.connection.bounds.unsent_bytes import UnsentBytes
from magnetar.broker.connection.bounds.wide_reads import WIDE, ViewedReads, WideReads
from magnetar.broker.connection.handlers.command_table import GUARDED_HANDLERS, HANDLERS
from magnetar.broker.connection.session import Session
from magnetar.broker.service import BrokerService
from magnetar.model.errors import ProtocolError
from magnetar.protocol.commands import Command, CommandPing
from magnetar.protocol.decoder import MalformedBytesError
from magnetar.protocol.frames import FRAME_PADDING
from magnetar.protocol.server import ServerConnection

log = logging.getLogger(__name__)

HANDSHAKE_SECONDS: Final = 30.0
_CLIENT_HELLO: Final = b"\x16\x03"
"""How TLS begins, which no frame does that is not far too large."""
UNFINISHED_MAX: Final = 32 << 20
"""Bytes of unfinished frames of all connections together; twice the largest frame if that is more."""
UNSENT_MAX: Final = 64 << 20
"""Bytes that all connections together may leave untaken before they are given less."""


class Connections:
    """The open connections of one broker, and what they share."""

    def __init__(self) -> None:
        self.turns = Turns()
        self._open: set[Listener] = set()
        self.opened = self.closed = 0
        """Connections since the start, and how many of them have ended."""
        self.refused = 0
        """Those that ended without a handshake that succeeded."""
        self.unfinished = UnfinishedFrames(UNFINISHED_MAX)
        self.unsent = UnsentBytes(UNSENT_MAX, self._open.__iter__)

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Listener]:
        return iter(self._open)

    def __contains__(self, listener: object) -> bool:
        return listener in self._open

    def held(self) -> dict[str, int]:
        """The memory that connections hold now, by name; see :class:`~magnetar.admin.ports.BrokerPort`."""
        self.unsent.count()
        return {
            "unfinished_bytes": self.unfinished.bytes,
            "unsent_bytes": self.unsent.bytes,
            "waiting": len(self.turns),
        }

    def accepted(self) -> int:
        """How many handshakes have succeeded."""
        return self.closed - self.refused + sum([listener.session.accepted for listener in self._open])

    def throttled(self) -> int:
        """How many are not read at the moment."""
        return sum([not listener.session.reading for listener in self._open])

    def add(self, listener: Listener) -> None:
        """``listener`` has a client."""
        self.opened += 1
        self._open.add(listener)

    def discard(self, listener: Listener) -> None:
        """``listener`` has no client any more."""
        self.closed += 1
        self.refused += not listener.session.accepted
        self._open.discard(listener)


class Listener(asyncio.Protocol):
    """The asyncio protocol of one connection; ``leave`` is called when the connection is lost."""

    def __init__(
        self, service: BrokerService, connections: Connections, leave: Callable[[], None] | None = None
    ) -> None:
        self._service = service
        self._leave = leave
        self._connections = connections
        frame_max = service.settings.maxMessageSize + FRAME_PADDING
        self._protocol = ServerConnection(frame_max)
        self._unfinished = connections.unfinished
        self._unfinished.most = max(UNFINISHED_MAX, 2 * frame_max)
        self._held = 0
        self._malformed: str | None = None
        """What is wrong with the bytes after the commands that are still to be handled."""
        self._viewed = False
        """Whether what is read is given to the decoder as a view."""
        self._queued = False
        self._received = True
        self._asked = False
        self._taken = 0
        """Bytes that the client had taken when the timer ran last."""
        self._stalled = False
        self._timer: asyncio.TimerHandle | None = None
        self.session: Session
        self._out: Outbox

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not derive from asyncio's
        transport = cast(asyncio.Transport, transport)
        loop = asyncio.get_running_loop()
        settings = self._service.settings
        high = settings.pulsarChannelWriteBufferHighWaterMark
        transport.set_write_buffer_limits(high, min(high, settings.pulsarChannelWriteBufferLowWaterMark))
        self._out = Outbox(loop, transport, self._writable, high, self._connections.unsent, self)
        turns = self._connections.turns
        handlers = HANDLERS if self._service.authorizer is None else GUARDED_HANDLERS
        self.session = Session(self._service, self._out, transport, self._protocol, handlers, turns)
        self.session.carry_on = self._carry_on
        self.session.read_wide = self._read_wide
        self._connections.add(self)
        self._timer = loop.call_later(min(HANDSHAKE_SECONDS, self._interval), self._handshake_late)

    def data_received(self, data: bytes | memoryview) -> None:
        self._received = True
        session = self.session
        if session.closed:
            return
        if session.probing:
            session.alive()
        self._work(data)

    def turn(self) -> None:
        """Work on the commands that wait."""
        self._queued = False
        if not self.session.closed:
            self._work(None)

    def _work(self, data: bytes | memoryview | None) -> None:
        session, protocol = self.session, self._protocol
        try:
            session.go_on()
            if session.busy:
                if data is not None:
                    protocol.later(data)
            else:
                session.handle(self._decode(data))
            if self._malformed is not None and not session.busy:
                session.close(self._malformed)
        except ProtocolError as error:
            session.close(str(error))
        except Exception:
            log.exception("%s: a command could not be handled", session.address, extra=session.known)
            session.close("an internal error, see the log")
        held = protocol.held
        if held != self._held and not session.closed:
            before, self._held = self._held, held
            self._unfinished.changed(self, before, held, protocol.missing)
            if protocol.seen_large and not self._viewed:
                self._take_place(ViewedReads(self))
        if session.busy or protocol.waiting:
            self._wait()
        elif not session.reading:
            session.read_again(WORK)

    def _decode(self, data: bytes | memoryview | None) -> list[Command]:
        if self._malformed is not None:
            return []
        try:
            return self._protocol.more() if data is None else self._protocol.receive(data)
        except MalformedBytesError as error:
            # commands before the bad bytes still count
            self._malformed = str(error)
            if data is not None and data[: len(_CLIENT_HELLO)] == _CLIENT_HELLO and not self.session.connected:
                self._malformed = "it speaks TLS to the port without TLS (brokerServicePortTls is the other one)"
            return error.decoded

    def _wait(self) -> None:
        """There is more to do: in another turn, or when the client has taken its answers."""
        session = self.session
        if session.closed:
            return
        session.stop_reading(WORK)
        if not session.stuck and not session.throttled and not self._queued:
            self._queued = True
            self._connections.turns.queue(self)

    def _carry_on(self) -> None:
        session = self.session
        if session.busy or self._protocol.waiting:
            self._wait()
        else:
            session.read_again(WORK)

    def _read_wide(self) -> None:
        """Take more at once from now on."""
        self.session.read_wide = _nothing
        self._protocol.slice_bytes = WIDE
        self._take_place(WideReads(self))

    def _take_place(self, reads: ViewedReads) -> None:
        """Have the socket read by ``reads``, if its transport can."""
        self._viewed = True
        with suppress(NotImplementedError):
            self.session.transport.set_protocol(reads)

    @property
    def spacious(self) -> bool:
        """Whether there is memory for what a large read brings."""
        return self.session.journal.pending_bytes < self._service.pending_bytes_high >> 1

    def pause_writing(self) -> None:
        self._out.pause()

    def resume_writing(self) -> None:
        self._out.resume()

    def _writable(self) -> None:
        session = self.session
        if session.closed:
            return
        session.writable_again()
        if session.stuck and self._out.writable:
            session.stuck = False
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._connections.discard(self)
        self._let_go()
        if exc is not None:
            log.debug("%s: connection lost: %s", self.session.address, exc, extra=self.session.known)
        self.session.lost()
        if self._leave is not None:
            self._leave()

    # memory ------------------------------------------------------------------------------------------------------

    def hold_off(self) -> None:
        """Stop reading: frames of others are to become whole first."""
        self.session.stop_reading(MEMORY)

    def carry_on(self) -> None:
        """Read on: there is room for the rest of the frame."""
        self.session.read_again(MEMORY)

    def too_slow(self, held: int) -> None:
        """Close: memory is short, and the frame does not become whole."""
        self._end(f"{held} bytes of a frame that does not become whole while others wait for memory")

    @property
    def unsent(self) -> int:
        """Bytes that the client has not taken."""
        return self._out.unsent

    def writable_again(self) -> None:
        """Send on: there is room for the client's answers."""
        self._writable()

    def takes_too_much(self, unsent: int) -> None:
        """Close: clients together leave too much untaken, and this one most."""
        self._end(f"{unsent} bytes are not taken, and there is no memory for more")

    def _let_go(self) -> None:
        before, self._held = self._held, 0
        if before:
            self._unfinished.changed(self, before, 0, 0)
        self._protocol.drop()

    def close(self, reason: str) -> None:
        """Close the connection through no fault of the client."""
        self.session.close(reason, fault=False)

    # silence -----------------------------------------------------------------------------------------------------

    @property
    def _interval(self) -> int:
        return self._service.settings.keepAliveIntervalSeconds

    def _handshake_late(self) -> None:
        if not self.session.connected:
            self._end(f"no CONNECT within {min(HANDSHAKE_SECONDS, self._interval):g} s")
        else:
            self._watch()

    def _watch(self) -> None:
        """PING a client that was silent for an interval; close after a second one, or when it took nothing that
        long."""
        session = self.session
        if session.closed:
            # the client does not even take what was still to be sent: its consumers must not wait for that
            session.transport.abort()
            return
        waiting = self._out.unsent
        taken = self._out.total - waiting
        stalled = waiting > 0 and taken == self._taken
        self._taken = taken
        if stalled and self._stalled:
            self._end(f"took nothing of {waiting} bytes for two keep-alive intervals")
            return
        self._stalled = stalled
        if self._received or not session.reading:
            # a client that is not read cannot give a sign of life
            self._received = self._asked = False
        elif self._asked:
            self._end("silent for two keep-alive intervals")
            return
        else:
            self._asked = True
            session.send(CommandPing())
        self._timer = asyncio.get_running_loop().call_later(self._interval, self._watch)

    def _end(self, reason: str) -> None:
        self.session.close(reason)
        self._let_go()
        self.session.transport.abort()


def factory(service: BrokerService, connections: Connections) -> Callable[..., Listener]:
    """The factory that makes the protocol of each connection, given the callback of its end, if any."""

    def make(leave: Callable[[], None] | None = None) -> Listener:
        return Listener(service, connections, leave)

    return make


def _nothing() -> None: ...
