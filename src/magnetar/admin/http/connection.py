"""One HTTP connection with time limits for requests that stay incomplete and for answers that are not read.

uvicorn ends only connections that are idle between two requests. Here a connection that has not sent a whole request
for REQUEST_SECONDS, from its beginning or from the first byte of the next one, is ended, and so is one that takes no
byte of its answer for as long.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

import h11
from typing_extensions import override
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from magnetar.admin.http.authentication import CERTIFICATE
from magnetar.runtime.log import RateLimitedLog
from magnetar.security.authentication.peer_certificate import verified_certificate

log = logging.getLogger(__name__)
_limited = RateLimitedLog(log)

REQUEST_SECONDS: Final = 20.0
_CLIENT_HELLO: Final = b"\x16\x03"
"""How TLS begins, which no request does."""


class HttpConnection(H11Protocol):
    """A connection of uvicorn with those limits; ``release`` is called when the connection is lost."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        release: Callable[[], None],
        idle_seconds: float = 0,
    ) -> None:
        """``idle_seconds``: how long a WebSocket may be silent; 0 for ever."""
        super().__init__(config, server_state, app_state)
        self._release = release
        self._idle_seconds = idle_seconds
        self._handed_over = False
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None
        self._unsent = 0

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn takes no other
        super().connection_made(transport)
        certificate = verified_certificate(transport)
        if certificate is not None:
            self.app_state = {**self.app_state, CERTIFICATE: certificate}
        self._reading = self.loop.call_later(REQUEST_SECONDS, self._request_late)

    @override
    def data_received(self, data: bytes) -> None:
        if data.startswith(_CLIENT_HELLO) and self.scheme == "http" and self.cycle is None:
            client = self.client[0] if self.client else "?"
            _limited.warning("tls", "%s: closing, it speaks TLS to the port without TLS (webServicePort)", client)
            self.transport.abort()
            return
        super().data_received(data)
        if self._handed_over:
            return
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            if self._reading is None:
                self._reading = self.loop.call_later(REQUEST_SECONDS, self._request_late)
        else:
            self._request_whole()

    @override
    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Hand the connection over, with the request that began it."""
        # a door without a WebSocket loads none of it
        from magnetar.admin.http.websocket_connection import WebSocketConnection

        self._handed_over = True
        self._request_whole()
        self._unset_keepalive_if_required()
        self.connections.discard(self)
        lines = [b"%s %s HTTP/1.1\r\n" % (event.method, event.target)]
        lines += [b"%s: %s\r\n" % (name, value) for name, value in self.headers]
        found = WebSocketConnection(self.config, self.server_state, self.app_state, self._release, self._idle_seconds)
        found.connection_made(self.transport)
        self.transport.set_protocol(found)
        found.data_received(b"".join([*lines, b"\r\n"]))

    def _request_whole(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _request_late(self) -> None:
        self._reading = None
        client = self.client[0] if self.client else "?"
        _limited.warning("late", "%s: no whole request within %g s, closing the connection", client, REQUEST_SECONDS)
        self.transport.abort()

    @override
    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_writing()

    @override
    def resume_writing(self) -> None:
        super().resume_writing()
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def _watch_writing(self) -> None:
        self._unsent = self.transport.get_write_buffer_size()
        self._writing = self.loop.call_later(REQUEST_SECONDS, self._answer_late)

    def _answer_late(self) -> None:
        self._writing = None
        if self.transport.get_write_buffer_size() < self._unsent:
            self._watch_writing()
            return
        client = self.client[0] if self.client else "?"
        _limited.warning("deaf", "%s: takes nothing of its answer for %g s", client, REQUEST_SECONDS)
        self.transport.abort()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._request_whole()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None
        self._release()
