"""One simulated TCP connection: two ends (asyncio transports) and a pipe for each direction.

Bytes written at one end go through three places, in order and without loss:

    write() -> sender's buffer -> wire (a random delay for each piece) -> arrived -> data_received()

Wire and arrived together hold at most ``window_bytes``, as kernel buffers do; what does not fit stays in the sender's
buffer, whose size drives ``pause_writing``/``resume_writing``. Delivery re-chunks: a reader gets one byte, a few, or
all that has arrived, whatever the writer's pieces were. All chance comes from the loop's rng.

How a connection ends: ``close`` flushes, then sends an end mark after the bytes; ``abort`` and the death of a process
drop the buffer and send either the end mark or a reset, and a reset may overtake bytes that were in flight; a
cut (:class:`magnetar.testing.network.Link`) loses everything in flight. Each end's callbacks run in the context it was
made in, so that the callbacks of a killed :class:`~magnetar.testing.processes.Process` never run.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from typing_extensions import override

from magnetar.testing.processes import Process
from magnetar.testing.simloop import SimLoop

Address = tuple[str, int]

HIGH_WATER: Final = 64 * 1024
"""asyncio's own default for the write buffer."""


class Mark(Enum):
    """What can stand on the wire besides bytes."""

    END = "end"
    RESET = "reset"


@dataclass(slots=True)
class Weather:
    """How the network treats every connection; may be changed at any time."""

    delay_s: tuple[float, float] = (0.0002, 0.01)
    window_bytes: int = 64 * 1024
    cut_rate: float = 0.0
    """Probability that a delivery cuts the connection instead."""


class Pipe:
    """One direction of a connection."""

    def __init__(self, loop: SimLoop, weather: Weather, sender: SimTransport, receiver: SimTransport) -> None:
        self.buffer = bytearray()
        self.frozen = False
        self.ended = False
        self.on_cut: Callable[[], None] = lambda: None
        self._loop = loop
        self._weather = weather
        self._sender = sender
        self._receiver = receiver
        self._wire: deque[tuple[float, bytes | Mark]] = deque()
        self._wire_bytes = 0
        self._arrived = bytearray()
        self._ending = False
        self._last_arrival = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def in_flight(self) -> int:
        """Bytes on the wire or arrived but not yet read."""
        return self._wire_bytes + len(self._arrived)

    def push(self) -> None:
        """Move what the window allows from the buffer onto the wire."""
        space = self._weather.window_bytes - self.in_flight
        if self.buffer and space > 0:
            piece = bytes(self.buffer[:space])
            del self.buffer[:space]
            self._wire_bytes += len(piece)
            self._put(piece)
        if self._ending and not self.buffer:
            self._ending = False
            self.ended = True
            self._put(Mark.END)
            self._sender.flushed()

    def end(self) -> None:
        """Nothing more will be written; the mark follows the bytes."""
        self._ending = True
        self.push()

    def lose(self, mark: Mark | None) -> None:
        """Drop the sender's buffer; a reset also overtakes, by chance, what is in flight. None: drop everything."""
        self.buffer.clear()
        self._ending = False
        if mark is None or (mark is Mark.RESET and self._loop.rng.random() < 0.5):
            self._wire.clear()
            self._wire_bytes = 0
            self._arrived.clear()
        if mark is not None:
            self._put(mark)

    def schedule(self, delay: float = 0.0) -> None:
        """See to it that what is on the way gets delivered, unless the flow was stopped."""
        if self._timer is not None or self.frozen or not (self._arrived or self._wire):
            return
        if not self._receiver.accepts():
            return
        when = self._loop.time() + delay
        if not self._arrived:
            when = max(when, self._wire[0][0])
        self._timer = self._loop.call_at(when, self._deliver, context=self._receiver.context)

    def _put(self, item: bytes | Mark) -> None:
        arrival = self._loop.time() + self._loop.rng.uniform(*self._weather.delay_s)
        self._last_arrival = max(self._last_arrival, arrival)
        self._wire.append((self._last_arrival, item))
        self.schedule()

    def _deliver(self) -> None:
        self._timer = None
        if self.frozen or not self._receiver.accepts():
            return
        now = self._loop.time()
        while self._wire and self._wire[0][0] <= now and isinstance(item := self._wire[0][1], bytes):
            self._wire.popleft()
            self._wire_bytes -= len(item)
            self._arrived += item
        if self._weather.cut_rate and self._loop.rng.random() < self._weather.cut_rate:
            self.on_cut()
            return
        if self._arrived:
            size = self._chunk_size(len(self._arrived))
            data = bytes(self._arrived[:size])
            del self._arrived[:size]
            self._loop.call_soon(self._sender.window_opened, context=self._sender.context)
            self._receiver.feed(data)
        elif self._wire and self._wire[0][0] <= now:
            mark = self._wire.popleft()[1]
            self._receiver.feed_mark(mark)
        self.schedule(self._loop.rng.choice((0.0, 0.0, 0.0005)))

    def _chunk_size(self, available: int) -> int:
        rng = self._loop.rng
        kind = rng.random()
        if kind < 0.1:
            return 1
        if kind < 0.4:
            return rng.randint(1, min(available, 64))
        if kind < 0.6:
            return rng.randint(1, available)
        return available


class SimTransport(asyncio.Transport):
    """One end. What asyncio's socket transport promises its protocol, this one does too."""

    def __init__(self, loop: SimLoop, protocol: asyncio.BaseProtocol, own: Address, peer: Address) -> None:
        super().__init__({"peername": peer, "sockname": own, "socket": None})
        self.context = contextvars.copy_context()
        self.process = Process.current()
        self.out: Pipe
        self.peer: SimTransport
        self._loop = loop
        self._protocol = protocol
        self._reading = True
        self._closing = False
        self._gone = False
        self._ended = False
        self._writer_paused = False
        self._high, self._low = HIGH_WATER, HIGH_WATER // 4

    @property
    def gone(self) -> bool:
        """Whether connection_lost was called or is about to be."""
        return self._gone

    @override
    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    @override
    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    @override
    def is_closing(self) -> bool:
        return self._closing

    @override
    def is_reading(self) -> bool:
        return self._reading and not self._closing

    @override
    def pause_reading(self) -> None:
        self._reading = False

    @override
    def resume_reading(self) -> None:
        self._reading = True
        self.peer.out.schedule()

    @override
    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        if self._ended:
            raise RuntimeError("Cannot call write() after write_eof()")
        if self._gone or self._closing or not data:
            return
        self.out.buffer += data
        self.out.push()
        if len(self.out.buffer) > self._high and not self._writer_paused:
            self._writer_paused = True
            self._protocol.pause_writing()

    @override
    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview[Any]]) -> None:
        self.write(b"".join(list_of_data))

    @override
    def can_write_eof(self) -> bool:
        return True

    @override
    def write_eof(self) -> None:
        if not self._ended and not self._closing:
            self._ended = True
            self.out.end()

    @override
    def get_write_buffer_size(self) -> int:
        return len(self.out.buffer)

    @override
    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    @override
    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if high is None:
            high = HIGH_WATER if low is None else 4 * low
        if low is None:
            low = high // 4
        if not high >= low >= 0:
            raise ValueError(f"high ({high!r}) must be >= low ({low!r}) must be >= 0")
        self._high, self._low = high, low

    @override
    def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        if self.out.ended:
            self.flushed()
        elif not self._ended:
            self.out.end()

    @override
    def abort(self) -> None:
        self.vanish(None, Mark.RESET)

    def vanish(self, error: Exception | None, mark: Mark | None) -> None:
        """Drop the connection at this end now; the peer learns it from ``mark``, or not at all."""
        if self._gone:
            return
        self.out.lose(mark)
        self._lose(error)

    def die(self) -> None:
        """The process at this end was killed: no callback here, the kernel notifies the peer."""
        if not self._gone:
            self._gone = self._closing = True
            self.out.lose(self._loop.rng.choice((Mark.END, Mark.RESET)))

    def accepts(self) -> bool:
        """Whether bytes may be delivered now; a closed end takes and discards them."""
        return self._reading or self._closing

    def flushed(self) -> None:
        """The end mark is on the wire."""
        if self._closing:
            self._lose(None)

    def window_opened(self) -> None:
        """The peer has read: more of the buffer may go."""
        if self._gone:
            return
        self.out.push()
        if self._writer_paused and len(self.out.buffer) <= self._low:
            self._writer_paused = False
            self._protocol.resume_writing()

    def feed(self, data: bytes) -> None:
        """Bytes for the protocol."""
        if self._closing:
            # nothing reads here any more: the kernel answers with a reset
            if self._gone and not self.peer.gone and not self.out.in_flight:
                self.out.lose(Mark.RESET)
            return
        try:
            if isinstance(self._protocol, asyncio.BufferedProtocol):
                self._fill(self._protocol, data)
            elif isinstance(self._protocol, asyncio.Protocol):
                self._protocol.data_received(data)
        except Exception as error:
            self._fail("protocol.data_received() call failed", error)

    def feed_mark(self, mark: bytes | Mark) -> None:
        """The peer's side of the connection ended."""
        if mark is Mark.RESET:
            self.vanish(ConnectionResetError(104, "Connection reset by peer"), None)
        elif not self._closing:
            try:
                keep = isinstance(self._protocol, asyncio.Protocol) and self._protocol.eof_received()
            except Exception as error:
                self._fail("protocol.eof_received() call failed", error)
                return
            if not keep:
                self.close()

    def _fill(self, protocol: asyncio.BufferedProtocol, data: bytes) -> None:
        while data:
            room = memoryview(protocol.get_buffer(len(data)))
            taken = min(len(room), len(data))
            room[:taken] = data[:taken]
            protocol.buffer_updated(taken)
            data = data[taken:]

    def _fail(self, message: str, error: Exception) -> None:
        self._loop.call_exception_handler({"message": f"Fatal error: {message}", "exception": error})
        self.vanish(error, Mark.RESET)

    def _lose(self, error: Exception | None) -> None:
        if not self._gone:
            self._gone = self._closing = True
            self._loop.call_soon(self._protocol.connection_lost, error, context=self.context)
