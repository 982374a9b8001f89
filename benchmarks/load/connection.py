"""One TCP connection to a broker: calls while setting up, then bulk traffic without blocking.

While a load runs, bytes go out through ``outbox`` (scatter-gather, as far as the kernel takes them) and come in through
one fixed buffer that ``Scanner`` cuts into runs; each kind of command has one handler. What is not expected while a
load runs (an error, a closed producer) is a ``WireError``: a broker that refuses work must not look fast.
"""

from __future__ import annotations

import socket
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from benchmarks.load import wire
from benchmarks.load.entries import Piece
from benchmarks.load.runs import Run, Scanner
from benchmarks.load.wire import Command

BUFFER_BYTES = 2 * 1024 * 1024
ROOM_BYTES_MIN = 512 * 1024
PIECES_MAX = 1000  # below the kernel's limit of 1024 per sendmsg
IGNORED = frozenset({31})  # ACTIVE_CONSUMER_CHANGE
TIMEOUT_SECONDS = 15.0
TLS_WRITE_BYTES = 64 * 1024
"""Small pieces are joined to so much for TLS, which takes one buffer at a time."""


class Address(NamedTuple):
    """Where a broker listens; with ``tls``, the file of the authority that its certificate comes from; with ``token``,
    what it wants for a login."""

    host: str
    port: int
    tls: str | None = None
    token: str | None = None


Handler = Callable[[Run], None]


class Connection:
    """Owned by one load at a time; ``call`` blocks, everything else does not once ``start`` was called."""

    def __init__(self, address: Address) -> None:
        self.socket = socket.create_connection(address[:2], timeout=TIMEOUT_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.tls = address.tls is not None
        if address.tls is not None:
            context = ssl.create_default_context(cafile=address.tls)
            self.socket = context.wrap_socket(self.socket, server_hostname=address.host)
        self.handlers: dict[int, Handler] = {}
        self.pongs = 0
        self.received_bytes = 0
        self._outbox: deque[Piece] = deque()
        self._buffer = bytearray(BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._start = self._end = 0
        self._scanner = Scanner()
        self._request = 0
        try:
            self.call(wire.connect(address.token), Command.CONNECTED)
        except BaseException:
            self.socket.close()
            raise

    def next_request(self) -> int:
        self._request += 1
        return self._request

    # setting up

    def call(self, frame: bytes, expected: Command) -> dict[int, int | bytes]:
        """Send one command and wait for its answer."""
        self.socket.sendall(frame)
        return self.answer(expected)

    def answer(self, expected: Command) -> dict[int, int | bytes]:
        """The next command of this kind; pings are answered, errors raised, others skipped."""
        while True:
            while not (body := self._one_command()):
                count = self.socket.recv_into(self._view[self._end :])
                if not count:
                    raise wire.WireError("the broker closed the connection")
                self._end += count
            kind, found = wire.kind_and_body(body)
            if kind == expected:
                return found
            if kind == Command.PING:
                self.socket.sendall(wire.pong())
            elif kind == Command.ERROR:
                raise wire.WireError(f"error {found.get(2)!r}: {found.get(3)!r}")

    def _one_command(self) -> bytes | None:
        if self._end - self._start < 8:
            return None
        total, size = wire.HEAD.unpack_from(self._buffer, self._start)
        if self._end - self._start < total + 4:
            return None
        body = bytes(self._view[self._start + 8 : self._start + 8 + size])
        self._start += total + 4
        if self._start == self._end:
            self._start = self._end = 0
        return body

    def lookup(self, topic: str) -> None:
        """Ask who serves the topic; Apache Pulsar refuses producers on a namespace that no client looked up."""
        answer = self.call(wire.lookup(topic, self.next_request()), Command.LOOKUP_RESPONSE)
        if answer.get(3) != 1:
            raise wire.WireError(f"lookup of {topic}: {answer!r}")

    def producer(self, topic: str, producer_id: int) -> None:
        self.lookup(topic)
        self.call(wire.producer(topic, producer_id, self.next_request()), Command.PRODUCER_SUCCESS)

    def subscribe(self, topic: str, kind: wire.SubscriptionType, consumer_id: int, subscription: str = "bench") -> None:
        self.lookup(topic)
        frame = wire.subscribe(topic, subscription, kind, consumer_id, self.next_request())
        self.call(frame, Command.SUCCESS)

    def start(self) -> None:
        """Make the socket non-blocking; the bulk traffic follows."""
        self.socket.setblocking(False)

    # bulk traffic

    @property
    def pending(self) -> bool:
        return bool(self._outbox)

    def send(self, pieces: Sequence[Piece]) -> None:
        """Queue buffers; ``flush`` moves them."""
        self._outbox.extend(pieces)

    def flush(self) -> None:
        """Give the kernel what it takes now."""
        outbox = self._outbox
        while outbox:
            try:
                sent = self._send_some()
            except (BlockingIOError, ssl.SSLWantWriteError):
                return
            while sent:
                first = outbox[0]
                if sent < len(first):
                    outbox[0] = memoryview(first)[sent:]
                    break
                sent -= len(first)
                outbox.popleft()

    def _send_some(self) -> int:
        outbox = self._outbox
        if not self.tls:
            some = [outbox[at] for at in range(min(len(outbox), PIECES_MAX))]
            return self.socket.sendmsg(some) if len(some) > 1 else self.socket.send(some[0])
        if len(outbox) > 1 and len(outbox[0]) < TLS_WRITE_BYTES:
            joined = bytearray()
            while outbox and len(joined) < TLS_WRITE_BYTES:
                joined += outbox.popleft()
            outbox.appendleft(bytes(joined))
        return self.socket.send(outbox[0])

    def receive(self) -> None:
        """Take what has arrived and hand it to the handlers."""
        while self._receive_some():
            pass

    def _receive_some(self) -> bool:
        """Return whether there may be more that no poll reports: with TLS when the buffer is full before the socket is
        empty, since a record that was begun is out of the poll's sight."""
        if BUFFER_BYTES - self._end < ROOM_BYTES_MIN:
            rest = bytes(self._view[self._start : self._end])
            self._view[: len(rest)] = rest
            self._start, self._end = 0, len(rest)
        begun, more = self._end, False
        try:
            while BUFFER_BYTES - self._end >= ROOM_BYTES_MIN:
                count = self.socket.recv_into(self._view[self._end :])
                if not count:
                    raise wire.WireError("the broker closed the connection")
                self._end += count
                if not self.tls:
                    break
            else:
                more = self.tls
        except (BlockingIOError, ssl.SSLWantReadError):
            if self._end == begun:
                return False
        self.received_bytes += self._end - begun
        for run in self._scanner.scan(self._buffer, self._start, self._end):
            handler = self.handlers.get(run.layout.kind)
            if handler is not None:
                handler(run)
            else:
                self._unexpected(run)
        self._start = self._scanner.position
        if self._start == self._end:
            self._start = self._end = 0
        return more

    def _unexpected(self, run: Run) -> None:
        kind = run.layout.kind
        if kind == Command.PING:
            self.send([wire.pong()] * run.count)
        elif kind == Command.PONG:
            self.pongs += run.count
        elif kind not in IGNORED:
            raise wire.WireError(f"unexpected command {kind}: {run.command()[:200]!r}")

    def close(self) -> None:
        self.socket.close()
