"""One HTTP connection with time limits for requests that stay incomplete and for answers that are not read.

uvicorn ends only connections that are idle between two requests. Here a connection that has not sent a whole request
for REQUEST_SECONDS, from its beginning or from the first byte of the next one, is ended, and so is one that takes no
byte of its answer for as long.
"""

from __future__ import annotations

import asyncio
import json
import logging
import string
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import h11
from typing_extensions import override
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from magnetar.admin.http.authentication import CERTIFICATE, REQUIRED
from magnetar.runtime.connections.lingering_close import Linger, LingeringTransport
from magnetar.runtime.log import RateLimitedLog
from magnetar.security.authentication.peer_certificate import verified_certificate

if TYPE_CHECKING:
    from magnetar.admin.http.websocket_connection import HttpTurns, UnfinishedBudget, WebSocketConnection

log = logging.getLogger(__name__)
_limited = RateLimitedLog(log)

REQUEST_SECONDS: Final = 20.0
HEAD_MAX: Final = 64 << 10
"""Bytes of a request line with its headers that may wait for the rest: a token alone may have 32 KiB."""
HEAD_LINES_MAX: Final = 1000
"""Lines of a head that may wait for the rest: all of them are read at once when it is whole, some 10 µs for each."""
_BODY_MAX: Final = 64 << 10
_PHRASE_MAX: Final = 200
"""Characters of a refusal's reason that its status line has."""
_SLICE: Final = 2048
"""Bytes that are handled at once of what has many lines."""
_LINES_AT_ONCE: Final = 340
_REQUEST_START: Final = frozenset(b"!#$%&'*+-.^_`|~" + string.ascii_letters.encode() + string.digits.encode())
"""What a request can begin with: its method is a token (RFC 9110, 5.6.2)."""
_CLIENT_HELLO: Final = b"\x16\x03"
"""How TLS begins, which no request does."""


class WebSocketLimits(NamedTuple):
    """What WebSockets on this server may do."""

    frame_max: int
    """Bytes of a message."""
    idle_seconds: float
    """Silence after which one is closed; 0: never."""
    ping_seconds: float
    """Seconds between two pings; 0 or less: none."""
    unfinished: UnfinishedBudget
    """Shared by all connections of the broker."""


class _Requests(h11.Connection):
    """h11's reader of requests. What it refuses refers to itself by its traceback, and so to whatever handles this
    connection, which would stay until the garbage collector comes."""

    status: int
    """Of the answer to what was refused."""
    _refusal: h11.Response | None = None
    """The head of an answer that refuses: it waits for its body, whose reason it names."""

    @override
    def send(self, event: h11.Event) -> bytes | None:  # type: ignore[override]  # h11 names two shapes
        """Name the reason of a refusal in its status line, as Apache Pulsar does: clients that look topics up over
        HTTP show that line, and nothing of the body. Only who has to log in reads "Unauthorized" in it, as there."""
        if isinstance(event, h11.Response) and event.status_code >= 400:
            self._refusal = event
            return b""
        head, self._refusal = self._refusal, None
        if head is None or not isinstance(event, h11.Data | h11.EndOfMessage):
            return super().send(event)
        body = bytes(event.data) if isinstance(event, h11.Data) else b""
        phrase = _phrase(body) or head.reason
        first = super().send(h11.Response(status_code=head.status_code, headers=head.headers, reason=phrase))
        return (first or b"") + (super().send(event) or b"")

    @override
    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        try:
            return super().next_event()
        except h11.RemoteProtocolError as error:
            error.__traceback__ = None
            self.status = error.error_status_hint
            raise


def _phrase(body: bytes) -> bytes:
    """The reason in the body of a refusal, as a status line may have it; empty: none."""
    try:
        reason = json.loads(body)["reason"] if len(body) <= _BODY_MAX else ""
    except (ValueError, TypeError, KeyError, RecursionError):
        return b""
    if reason == REQUIRED:
        return b""
    said = "".join([c if " " <= c <= "~" else " " for c in str(reason)[:_PHRASE_MAX]])
    return said.strip().encode()


class HttpConnection(H11Protocol):
    """A connection of uvicorn with those limits; ``release`` is called when the connection is lost."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        release: Callable[[], None],
        sockets: WebSocketLimits | None = None,
        turns: HttpTurns | None = None,
    ) -> None:
        """``sockets``: what a WebSocket may do that it becomes; ``turns``: shared by all HTTP connections."""
        super().__init__(config, server_state, app_state)
        self.conn.__class__ = _Requests
        self._release = release
        self._sockets = sockets
        self._turns = turns
        self._unread = b""
        """What waits for its turn; nothing is read meanwhile."""
        self._heir: WebSocketConnection | None = None
        """What the connection has become."""
        self._head_lines = 0
        """Lines of a head that is not whole."""
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None
        self._unsent = 0
        self._passing_over: Linger | None = None
        """While the rest of a body comes that has its answer already."""

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn takes no other
        self._lingering = LingeringTransport(transport)
        super().connection_made(self._lingering)
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
        if self._unread:
            self._unread += data
            self.transport.pause_reading()
        elif self._turns is None or data.count(b"\n") <= _LINES_AT_ONCE:
            self._take(data)
        else:
            self._unread = data
            self.turn()

    def turn(self) -> None:
        """Handle what has come in slices, as far as the round allows: what is short and many keeps the loop, a chunk
        of the network holds 40,000 chunks of a body."""
        turns, unread, at = self._turns, self._unread, 0
        assert turns is not None
        while at < len(unread) and turns.left > 0 and self._heir is None:
            if self.transport.is_closing():
                self._unread = b""
                return
            piece = unread[at : at + _SLICE]
            at += len(piece)
            turns.spent(piece.count(b"\n"))
            self._take(piece)
        if self._heir is not None:
            self._unread = b""
            if at < len(unread):
                self._heir.data_received(unread[at:])
            return
        self._unread = unread[at:]
        if self._unread:
            self.transport.pause_reading()
            turns.queue(self)
        elif not (self.flow.read_paused or self.transport.is_closing()):
            self.transport.resume_reading()

    def _take(self, data: bytes) -> None:
        # whatever closes the connection within: a client that has sent a part of a request goes on with it
        self._lingering.patient = True
        super().data_received(data)
        if self._heir is not None:
            return
        waiting = self.conn.their_state
        self._lingering.patient = waiting in (h11.SEND_BODY, h11.ERROR)
        self._head_lines = self._head_lines + data.count(b"\n") if waiting is h11.IDLE else 0
        if self._head_lines > HEAD_LINES_MAX:
            self._refuse(431, f"the head has more than {HEAD_LINES_MAX} lines: send fewer headers")
        elif waiting in (h11.IDLE, h11.DONE) and self._begins_no_request():
            self._no_request()
        elif self._passing_over is not None and waiting is h11.SEND_BODY:
            self._passing_over.dropped(len(data))
        else:
            self._body_passed()
            if waiting not in (h11.IDLE, h11.SEND_BODY):
                self._request_whole()
            elif self._reading is None:
                self._reading = self.loop.call_later(REQUEST_SECONDS, self._request_late)

    def _begins_no_request(self) -> bool:
        """Whether the bytes after the last request cannot begin another one: Node's HTTP client sends the body of a
        DELETE without a length."""
        rest = self.conn.trailing_data[0]
        return bool(rest) and rest[0] not in _REQUEST_START

    def _no_request(self) -> None:
        """End the connection after the answer that is under way: the client's next request would follow bytes that are
        no request."""
        if self.conn.their_state is h11.IDLE:
            self._refuse(400, "what came is no HTTP request: a body needs a content-length")
        elif CLOSE_HEADER not in self.headers:
            self.headers.append(CLOSE_HEADER)  # uvicorn answers it with the same header, and closes then

    @override
    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request, with the status that h11 has for it."""
        assert isinstance(self.conn, _Requests)
        status = self.conn.status
        if status == 431:
            msg = f"the request line and the headers have more than {HEAD_MAX} bytes: send a shorter query or token"
        self._refuse(status, msg)

    @override
    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY and not self.transport.is_closing():
            # what is left of the body is passed over, so that the answer is seen and the connection can go on
            self._body_passed()
            self._request_whole()
            self._passing_over = Linger(self.transport)

    @override
    def shutdown(self) -> None:
        """Let what is being answered be finished, and wait for no request that is not whole."""
        if not self.transport.is_closing():
            if self.conn.their_state is h11.SEND_BODY and self.conn.our_state is h11.SEND_RESPONSE:
                self._refuse(503, "the broker is stopping: send the request again later")
                self.cycle.message_event.set()  # the application waits for more of it
            else:
                super().shutdown()
        self._lingering.hasten()

    def _refuse(self, status: int, reason: str) -> None:
        if self.cycle is not None:
            self.cycle.disconnected = True  # what the application still answers goes nowhere
        body = json.dumps({"reason": reason}).encode()
        headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("connection", "close")]
        try:
            for part in (h11.Response(status_code=status, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(part) or b"")
        except h11.LocalProtocolError as error:
            # an answer is under way, or the request was a HEAD
            error.__traceback__ = None
            self.transport.abort()
            return
        self._lingering.patient = True
        self.transport.close()

    @override
    def _should_upgrade(self) -> bool:
        # a handshake has no body: what has one is a request like any other, and answered as one
        bodies = {(b"content-length", b"0")}
        return super()._should_upgrade() and all(
            one in bodies for one in self.headers if one[0] in (b"content-length", b"transfer-encoding")
        )

    @override
    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Hand the connection over, with the request that began it and what came after it."""
        # imported when the application is built
        from magnetar.admin.http import websocket_connection as websockets

        self._request_whole()
        self._unset_keepalive_if_required()
        self.connections.discard(self)
        assert self._sockets is not None, "an interface without WebSockets upgrades nothing"
        assert self._turns is not None
        found = websockets.WebSocketConnection(
            self.config, self.server_state, self.app_state, self._release, self._sockets.idle_seconds, self._turns,
            self._sockets.unfinished,
        )  # fmt: skip
        found.connection_made(self.transport)
        self.transport.set_protocol(websockets.small_reads(found))
        if self._writing is not None:  # an answer before the handshake is not taken yet
            self._writing.cancel()
            self._writing = None
            found.pause_writing()
        self._heir = found
        self._lingering.patient = bool(self.conn.trailing_data[0])
        found.begin(event.method, event.target, self.headers, self.conn.trailing_data[0])

    def _body_passed(self) -> None:
        if self._passing_over is not None:
            self._passing_over.end()
            self._passing_over = None

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
        self._unread = b""
        self._body_passed()
        self._request_whole()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None
        self._release()
