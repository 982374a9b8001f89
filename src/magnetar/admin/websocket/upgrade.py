"""A handshake on its way through the application, and the socket that it becomes.

For the middleware and the routes a handshake is a GET: origin, credentials and permissions are checked where they are
checked for every request. A route that wants the socket accepts it; every other answer refuses the handshake.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ABORT = "websocket.abort"
"""In the state of a request: what ends the connection at once, which ASGI has no word for."""
_REASON_MAX: Final = 123
"""Bytes that a close frame has room for."""
_SOCKET = "websocket"
_HEADER = b"authorization"


class SocketGoneError(Exception):
    """The peer has left."""


class Socket:
    """One WebSocket, seen from a route."""

    def __init__(self, receive: Receive, send: Send, state: Mapping[str, object]) -> None:
        """``state``: of the request, where authentication puts who asks."""
        self._receive = receive
        self._send = send
        self._state = state
        self._asked = False
        self.accepted = False
        self._closed = False
        self._abort = state.get(ABORT)

    async def accept(self) -> None:
        """Answer the handshake. Raises SocketGoneError."""
        self.accepted = True
        try:
            await self._send({"type": "websocket.accept"})
        except OSError as error:
            raise SocketGoneError from error

    async def receive(self) -> str:
        """Return the next text; other frames mean nothing to Pulsar. Raises SocketGoneError."""
        while True:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                raise SocketGoneError
            text = message.get("text")
            if message["type"] == "websocket.receive" and text is not None:
                return str(text)

    async def send(self, text: str) -> None:
        """Send a text; returns when the peer takes what was sent before. Raises SocketGoneError."""
        if self._closed:
            raise SocketGoneError
        try:
            await self._send({"type": "websocket.send", "text": text})
        except (OSError, RuntimeError) as error:
            raise SocketGoneError from error

    def abort(self) -> None:
        """End the connection at once, with what the peer has not taken."""
        self._closed = True
        if callable(self._abort):
            self._abort()

    async def close(self, code: int, reason: str = "") -> None:
        """End it, and give the peer the reason."""
        if not self._closed:
            self._closed = True
            try:
                short = reason.encode()[:_REASON_MAX].decode(errors="ignore")
                await self._send({"type": "websocket.close", "code": code, "reason": short})
            except (OSError, RuntimeError):
                return

    # as a request ------------------------------------------------------------------------------------------------

    async def request(self) -> Message:
        """What the route receives instead: a request without a body."""
        if self._asked:
            return {"type": "http.disconnect"}
        self._asked = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def answer(self, message: Message) -> None:
        """Send an answer of the application, unless the socket was accepted."""
        if not self.accepted:
            shown = {**message, "type": f"websocket.{message['type']}"}
            if shown.get("status") == 401 and "caller" in self._state:
                shown["status"] = 403  # who asks is known: Pulsar's WebSocket distinguishes both, its REST does not
            await self._send(shown)


class Upgrades:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        state = {**scope.get("state", {})}
        state[_SOCKET] = socket = Socket(receive, send, state)
        request = {
            **scope,
            "type": "http",
            "method": "GET",
            "scheme": "https" if scope["scheme"] == "wss" else "http",
            "headers": _with_token(scope),
            "state": state,
        }
        try:
            await self._app(request, socket.request, socket.answer)
        finally:
            del state[_SOCKET]  # which knows the state


def _with_token(scope: Scope) -> list[tuple[bytes, bytes]]:
    """The headers, with the query's token as one of them: a browser cannot set any."""
    headers = list(scope["headers"])
    if all(name != _HEADER for name, _ in headers):
        query = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1")))
        if query.get("token"):
            headers.append((_HEADER, b"Bearer " + query["token"].encode("latin-1", "replace")))
    return headers


def socket_of(request: Request) -> Socket:
    """The socket of a handshake. Raises HTTPException about a GET that is none."""
    found: Any = request.scope.get("state", {}).get(_SOCKET)
    if not isinstance(found, Socket):
        raise HTTPException(405, "HTTP method GET is not supported by this URL: it takes WebSocket handshakes")
    return found
