"""uvicorn inside the broker's event loop: no signal handlers, no worker threads, no log set-up of its own.

The ports are bound separately, because building the application takes several times as long as starting a
broker: requests that come meanwhile wait in the sockets. Connections are accepted and counted by
:mod:`magnetar.runtime.connections.acceptor`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import uvicorn
from starlette.types import ASGIApp
from typing_extensions import override

from magnetar.admin.http.connection import HEAD_MAX, HttpConnection, WebSocketLimits
from magnetar.runtime.connections.acceptor import Acceptor, ConnectionLimit, Entrance, Release
from magnetar.runtime.log import RateLimitedLog
from magnetar.runtime.tasks import TaskGroup

if TYPE_CHECKING:
    from magnetar.admin.http.websocket_connection import HttpTurns

_limited = RateLimitedLog(logging.getLogger(__name__))
_IDLE_SECONDS: Final = 5
"""Seconds after which a connection without a request is closed."""
_DATE_SECONDS: Final = 1
"""Seconds for which a date in answers' heads stays."""


class _Server(uvicorn.Server):
    """Leaves signals to the program it runs in, and new connections to an :class:`Acceptor`."""

    def __init__(
        self,
        config: uvicorn.Config,
        entrances: Sequence[Entrance],
        connection_limit: ConnectionLimit,
        sockets: WebSocketLimits | None,
        turns: HttpTurns | None,
    ) -> None:
        super().__init__(config)
        self._ending = asyncio.Event()
        self._turns = turns
        self._sockets = sockets
        self._acceptors = [
            Acceptor.at(entrance, connection_limit, self._connection, _too_many) for entrance in entrances
        ]

    @override
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        self.servers = []
        for acceptor in self._acceptors:
            acceptor.open()
        self.started = True

    def end(self) -> None:
        """Have :meth:`serve` finish running requests and return."""
        self.should_exit = True
        self._ending.set()

    @override
    async def main_loop(self) -> None:
        """Keep the date of answers up to date until :meth:`end`; uvicorn's own looks ten times a second for the end."""
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), _DATE_SECONDS)

    @override
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close, and wait for connections and requests if there are any; uvicorn's own sleeps a little in any case."""
        for acceptor in self._acceptors:
            acceptor.close()
        if self.server_state.connections or self.server_state.tasks:
            await super().shutdown(sockets)

    def _connection(self, release: Release) -> HttpConnection:
        return HttpConnection(self.config, self.server_state, self.lifespan.state, release, self._sockets, self._turns)


class AdminServer:
    """The REST interface on its listening sockets."""

    def __init__(
        self,
        app: ASGIApp,
        entrances: Sequence[Entrance],
        connection_limit: ConnectionLimit,
        sockets: WebSocketLimits | None = None,
        turns: HttpTurns | None = None,
    ) -> None:
        """Takes over the listening sockets; without ``sockets`` there are no WebSockets, and with them ``turns``."""
        ping = 0.0 if sockets is None else sockets.ping_seconds
        config = uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="off", http="h11", h11_max_incomplete_event_size=HEAD_MAX,
            ws="none" if sockets is None else asyncio.Protocol,  # the connection itself makes what it becomes
            ws_max_size=0 if sockets is None else sockets.frame_max, ws_per_message_deflate=False,
            ws_ping_interval=ping if ping > 0 else None, ws_ping_timeout=None,
            timeout_graceful_shutdown=5, timeout_keep_alive=_IDLE_SECONDS,
        )  # fmt: skip
        logging.getLogger("uvicorn.error").addFilter(_few_warnings)
        self._entrances = entrances
        self._server = _Server(config, entrances, connection_limit, sockets, turns)
        self._tasks = TaskGroup("admin")
        self._serving: asyncio.Task[object] | None = None

    def start(self) -> None:
        """Serve until :meth:`close`; returns at once."""
        self._serving = self._tasks.start(self._server.serve(), "http")

    async def close(self) -> None:
        """Finish running requests (five seconds at most) and release the port."""
        self._server.end()
        if self._serving is not None:
            await asyncio.wait([self._serving])
        await self._tasks.close()
        for entrance in self._entrances:
            entrance.listening.close()


def _few_warnings(record: logging.LogRecord) -> bool:
    """Let a few of uvicorn's warnings of each kind through: they are about clients' faults."""
    if record.levelno != logging.WARNING:
        return True
    _limited.warning(record.msg, "%s", record.getMessage())
    return False


def _too_many(why: str) -> bytes:
    body = json.dumps({"reason": why}).encode()
    head = (
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\nretry-after: 5\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body
