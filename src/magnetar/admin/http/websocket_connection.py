"""A WebSocket on a connection of the HTTP door: uvicorn's, with a limit for silence and the door's count."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from typing_extensions import override
from uvicorn.config import Config
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState

_quiet = logging.getLogger("uvicorn.websocket")
"""uvicorn writes every handshake with its query, where tokens stand; errors are written by the application."""
_quiet.setLevel(logging.CRITICAL)
_GOING_AWAY = 1001


class WebSocketConnection(WebSocketsSansIOProtocol):
    """``release`` is called when the connection is lost; ``idle_seconds`` without a byte in either direction end it."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        release: Callable[[], None],
        idle_seconds: float,
    ) -> None:
        super().__init__(config, server_state, {**app_state, "websocket.abort": self._abort})
        self.logger = _quiet
        self.conn.logger = _quiet
        self._release = release
        self._idle_seconds = idle_seconds
        self._moved = self.loop.time()
        self._sent = 0
        self._watch: asyncio.TimerHandle | None = None

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self._idle_seconds > 0:
            self._watch = self.loop.call_later(self._idle_seconds, self._look)

    @override
    def data_received(self, data: bytes) -> None:
        self._moved = self.loop.time()
        super().data_received(data)

    @override
    async def send(self, message: Any) -> None:
        await super().send(message)
        if message["type"] == "websocket.send":
            await self.writable.wait()  # the sender counts a frame until the peer has taken it
        if self.writable.is_set():
            self._moved = self.loop.time()

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
        self._release()
