"""A WebSocket on an HTTP connection: uvicorn's, with a limit for silence, counted as an HTTP connection, with turns for
what comes in and a budget for incomplete messages.

What a peer has sent is given to the parser in slices, and no more of it is while the round that all sockets share is
used up, or while the application has a message to take. A whole chunk of the network holds 40,000 frames, and handling
them at once kept everybody else waiting for seconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from typing_extensions import override
from uvicorn.config import Config
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.datastructures import Headers
from websockets.frames import Frame
from websockets.http11 import Request
from websockets.protocol import Protocol as FrameProtocol

from magnetar.runtime.connections.lingering_close import LingeringTransport
from magnetar.runtime.connections.shared_reads import SharedReads
from magnetar.runtime.event import Event

ROUND: Final = 500
"""Units of all connections of this interface in one turn of the event loop."""
_SLICE: Final = 2048
"""Bytes that the parser is given at once; they hold 340 frames at most."""
_READ: Final = 64 << 10
"""Bytes that are read at once: what hundreds send at the same moment is in memory before it is counted."""
_TEXT_COST: Final = 20
"""Units of a message, of some five microseconds each; other frames take one."""
_UNIT_BYTES: Final = 100
"""Bytes of a message that cost one unit more."""
_room: Final = memoryview(bytearray(_READ))
"""One for all of them."""
_quiet = logging.getLogger("uvicorn.websocket")
"""uvicorn writes every handshake with its query, where tokens stand; errors are written by the application."""
_quiet.setLevel(logging.CRITICAL)
_GOING_AWAY = 1001
_ABORT: Final = "websocket.abort"


class HttpTurnTaker(Protocol):
    """A connection that has received more than it has handled."""

    def turn(self) -> None:
        """Handle some of it; wait again if there is more."""
        ...


class HttpTurns(Protocol):
    """Who may handle now what it has received (:class:`magnetar.broker.connection.bounds.turns.Turns`)."""

    left: int

    def spent(self, units: int) -> None: ...
    def queue(self, worker: HttpTurnTaker) -> None: ...


class UnfinishedBudget(Protocol):
    """What all connections of the broker may hold of messages that are not whole."""

    def changed(self, sender: WebSocketConnection, before: int, held: int, missing: int) -> None: ...


class WebSocketConnection(WebSocketsSansIOProtocol):
    """``release`` is called when the connection is lost; ``idle_seconds`` without a byte in either direction end it."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        release: Callable[[], None],
        idle_seconds: float,
        turns: HttpTurns,
        unfinished: UnfinishedBudget,
    ) -> None:
        super().__init__(config, server_state, {**app_state, _ABORT: self._abort})
        self.logger = _quiet
        self.conn.logger = _quiet
        # uvicorn's own have four empty deques of 760 bytes, and thousands of sockets may be open
        self.queue = _ReceivedMessages()  # type: ignore[assignment]  # what uvicorn uses of its own class it has
        self.writable = Event()  # type: ignore[assignment]  # likewise
        self.writable.set()
        self._release = release
        self._idle_seconds = idle_seconds
        self._moved = self.loop.time()
        self._sent = 0
        self._watch: asyncio.TimerHandle | None = None
        self._turns = turns
        self._unfinished = unfinished
        self._unread = b""
        """What the peer has sent and the parser has not been given, from ``_at`` on."""
        self._at = 0
        self._waits = False
        """Whether it waits for its turn."""
        self._held_off = False
        """Whether memory is short and messages of others are to become whole first."""
        self._whole: bytearray | None = None
        """The message that comes in several frames."""
        self._parts = 0
        """Bytes of the frames of a message that is not whole."""
        self._held = 0
        """Bytes that are counted in the budget."""

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self._idle_seconds > 0:
            self._watch = self.loop.call_later(self._idle_seconds, self._look)

    def begin(self, method: bytes, target: bytes, headers: Sequence[tuple[bytes, bytes]], more: bytes) -> None:
        """Answer the handshake of a request that HTTP has read; ``more`` came after it."""
        # the parser would read a request first, with bounds of its own, and be silent about what it refuses
        self.conn.parser.close()
        self.conn.parser = FrameProtocol.parse(self.conn)
        next(self.conn.parser)
        # frames wait until the application asks for them: before it has accepted, the parser could not answer one
        self.read_paused = True
        self.transport.pause_reading()
        named = Headers([(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers])
        self.handle_connect(Request(target.decode("ascii"), named, method.decode("ascii")))
        if more:
            self.data_received(more)

    @override
    def data_received(self, data: bytes) -> None:
        self._moved = self.loop.time()
        self._unread = self._unread[self._at :] + data if self._unread else data
        self._at = 0
        if not self._waits:
            self.turn()

    def turn(self) -> None:
        """Handle what has come, as far as the round and the application allow; the rest waits, and nothing is read."""
        self._waits = False
        turns, unread, end = self._turns, self._unread, len(self._unread)
        while self._at < end and turns.left > 0 and not self.read_paused:
            if self.transport.is_closing():
                self._unread, self._at = b"", 0
                return
            piece = unread[self._at : self._at + _SLICE]
            self._at += len(piece)
            super().data_received(piece)
        if self._at == end:
            self._unread, self._at = b"", 0
        self._count()
        self._read_or_wait()

    def _read_or_wait(self) -> None:
        """Read on if nothing is left; otherwise wait for a turn, unless the application has to take something first."""
        if self.transport.is_closing() or self.read_paused:
            return
        if self._unread and not self._waits:
            self._waits = True
            self._turns.queue(self)
        if self._unread or self._held_off:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    @override
    def handle_events(self) -> None:
        self._turns.spent(len(self.conn.events))
        super().handle_events()

    @override
    def send_receive_event_to_app(self) -> None:
        size = sum(map(len, self.frames))
        self._parts = 0
        self._turns.spent(_TEXT_COST + size // _UNIT_BYTES)
        super().send_receive_event_to_app()

    @override
    def handle_text(self, event: Frame) -> None:
        self._parts = len(event.data)
        super().handle_text(event)

    @override
    def handle_bytes(self, event: Frame) -> None:
        self._parts = len(event.data)
        super().handle_bytes(event)

    @override
    def handle_cont(self, event: Frame) -> None:
        # one growing buffer: a message may come in any number of frames, empty ones too
        if self._whole is None:
            self._whole = bytearray(b"".join(self.frames))
            self.frames = []
        self._whole += event.data
        self._parts = len(self._whole)
        if event.fin:
            self.frames, self._whole = [bytes(self._whole)], None
            self.send_receive_event_to_app()

    @override
    def handle_ping(self) -> None:
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()  # a peer that takes nothing gets no answers to keep in memory

    @override
    async def receive(self) -> Any:
        message = await self.queue.get()
        if self.read_paused and self.queue.empty():
            self.read_paused = False
            self._read_or_wait()
        return message

    # the budget for messages that are not whole --------------------------------------------------------------------

    def _count(self) -> None:
        held = 0
        if not self.disconnected:
            held = self._parts + len(self.conn.reader.buffer) + len(self._unread) - self._at
        # a little less is the same message, without the heads of its frames: it keeps its place in the budget
        if held > self._held or held < self._held // 2:
            before, self._held = self._held, held
            # how long a message is going to be is only known when all of its frames have begun
            self._unfinished.changed(self, before, held, max(0, self.config.ws_max_size - held) if held else 0)

    def hold_off(self) -> None:
        """Stop reading: messages of others are to become whole first."""
        self._held_off = True
        if not self.transport.is_closing():
            self.transport.pause_reading()

    def carry_on(self) -> None:
        """Read on: there is room for the rest of the message."""
        self._held_off = False
        self._read_or_wait()

    def too_slow(self, held: int) -> None:
        """End the connection: memory is short, and the message does not become whole."""
        self._abort()

    @override
    async def send(self, message: Any) -> None:
        await super().send(message)
        if message["type"] == "websocket.accept":
            del self.request, self.response  # some 2 KB of headers, of which the scope has a copy
        if self.handshake_complete and isinstance(self.transport, LingeringTransport):
            self.transport.patient = False  # only the answer to a handshake is waited for
        if message["type"] == "websocket.send":
            await self.writable.wait()  # the sender counts a frame until the peer has taken it
        if self.writable.is_set():
            self._moved = self.loop.time()

    @override
    def shutdown(self) -> None:
        if not self.transport.is_closing():  # what is said already is not said again
            super().shutdown()
        if isinstance(self.transport, LingeringTransport):
            self.transport.hasten()

    def _abort(self) -> None:
        self.transport.abort()

    def _look(self) -> None:
        """Close if nothing has moved; a peer that takes nothing is not waited for."""
        left = self._moved + self._idle_seconds - self.loop.time()
        if left > 0.001:
            self._watch = self.loop.call_later(left, self._look)
            return
        self._watch = None
        if self.writable.is_set() and self.handshake_complete and not self.close_sent:
            self.conn.send_close(_GOING_AWAY, "Connection Idle Timeout")
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.transport.close()
        else:
            self.transport.abort()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        super().connection_lost(exc)
        # with these it refers to itself, and what it holds would be collected late
        for state in (self.app_state, getattr(self, "scope", {}).get("state", {})):
            state.pop(_ABORT, None)
        self._unread, self._at, self._whole, self.frames = b"", 0, None, []
        conn = self.conn
        conn.reader.buffer.clear()
        conn.parser.close()
        for error in (conn.parser_exc, conn.handshake_exc):
            _forget_frames(error)
        self._count()
        self._release()


class _ReceivedMessages:
    """What the application has not taken yet, for its one task: what ``asyncio.Queue`` does, in 100 bytes."""

    __slots__ = ("_came", "_messages")

    def __init__(self) -> None:
        self._messages: list[Any] = []
        self._came = Event()

    def empty(self) -> bool:
        """Whether there is none."""
        return not self._messages

    def put_nowait(self, message: Any) -> None:
        """Add one; they are few, since the peer is read only while the application takes them."""
        self._messages.append(message)
        self._came.set()

    async def get(self) -> Any:
        """Return the first, when there is one."""
        while not self._messages:
            self._came.clear()
            await self._came.wait()
        return self._messages.pop(0)


def small_reads(owner: WebSocketConnection) -> SharedReads:
    """Return what takes a WebSocket's place at its transport: what comes is in memory before it is counted."""
    return SharedReads(owner, _room)


def _forget_frames(error: BaseException | None) -> None:
    """Drop the tracebacks, whose frames hold the error."""
    while error is not None:
        error.__traceback__ = None
        error = error.__context__
