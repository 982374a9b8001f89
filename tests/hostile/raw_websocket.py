"""A WebSocket over one blocking socket, frame by frame."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from typing import Any, Final

from tests.hostile.raw import HOST
from tests.support.websocket_frames import TEXT

PRODUCER: Final = "/ws/v2/producer/persistent/public/default/"
CONSUMER: Final = "/ws/v2/consumer/persistent/public/default/"
READER: Final = "/ws/v2/reader/persistent/public/default/"
_READ: Final = 1 << 20


class RawWebSocket:
    """One that is open. Raises ConnectionError if the handshake is refused."""

    def __init__(self, port: int, path: str, *, timeout: float = 60.0) -> None:
        self.socket = socket.create_connection((HOST, port), timeout=timeout)
        self.socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        self._buffer = b""
        while b"\r\n\r\n" not in self._buffer:
            self._more()
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 101 "):
            raise ConnectionError(head.decode(errors="replace"))

    def __enter__(self) -> RawWebSocket:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go without a word."""
        self.socket.close()

    def say(self, *frames: bytes) -> None:
        """All of it in one write. Raises ConnectionError if the broker has closed the connection."""
        self.socket.sendall(b"".join(frames))

    def hear(self) -> Any:
        """The next text as JSON; other frames are dropped. Raises ConnectionError at the end of the connection."""
        while True:
            opcode, data = self._frame()
            if opcode == TEXT:
                return json.loads(data)

    def _frame(self) -> tuple[int, bytes]:
        head = self._take(2)
        size = head[1] & 0x7F
        if size > 125:
            size = int.from_bytes(self._take(2 if size == 126 else 8), "big")
        return head[0] & 0x0F, self._take(size)

    def _take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._more()
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        return taken

    def _more(self) -> None:
        data = self.socket.recv(_READ)
        if not data:
            raise ConnectionError("the broker closed the connection")
        self._buffer += data


def drained(one: socket.socket, sent: bytes, rounds: int = 1) -> int:
    """Send that so many times while a thread reads whatever comes back, then end; how many bytes came."""
    got = [0]

    def drain() -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(_READ):
                got[0] += len(data)

    reader = threading.Thread(target=drain, daemon=True)
    reader.start()
    with contextlib.suppress(OSError):
        for _ in range(rounds):
            one.sendall(sent)
        one.shutdown(socket.SHUT_WR)
    reader.join(120.0)
    return got[0]
