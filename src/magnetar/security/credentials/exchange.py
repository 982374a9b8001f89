"""Requests of HTTP that end in time: one deadline for looking up, connecting, the handshake, headers and body.

A timeout of a socket counts from each byte, so that a server which sends one now and then would hold its client for
ever. Here every step gets what is left of the whole; only the resolver of names keeps time by itself.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import urllib.request
from functools import partial
from typing import Any

from typing_extensions import override

from magnetar.runtime.clock import steady_seconds


class Deadline:
    """The deadline by which a request, or all requests that belong together, have to be over."""

    def __init__(self, seconds: float) -> None:
        self._at = steady_seconds() + seconds

    def left(self) -> float:
        """Return the seconds that are left. Raises TimeoutError if there are none."""
        left = self._at - steady_seconds()
        if left <= 0:
            raise TimeoutError("it takes too long")
        return left

    def connect(self, address: tuple[str, int], *_: Any) -> socket.socket:
        """Connect to the first address of the name that answers in time. Raises OSError."""
        host, port = address
        refused: OSError = ConnectionError(f"{host} has no address")
        for family, kind, protocol, _name, found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            made = socket.socket(family, kind, protocol)
            try:
                made.settimeout(self.left())
                made.connect(found)
                made.settimeout(self.left())
            except OSError as error:
                made.close()
                refused = error
            else:
                return made
        raise refused


class _Answer(http.client.HTTPResponse):
    """An answer of which each piece has to come before the deadline."""

    def __init__(self, deadline: Deadline, sock: socket.socket, *given: Any, **named: Any) -> None:
        super().__init__(sock, *given, **named)
        self.fp.close()
        self.fp = io.BufferedReader(_Pieces(deadline, sock))


class _Pieces(io.RawIOBase):
    def __init__(self, deadline: Deadline, sock: socket.socket) -> None:
        self._deadline = deadline
        self._socket = sock
        # what keeps the connection open for as long as the answer is read
        self._raw = sock.makefile("rb", buffering=0)

    @override
    def readable(self) -> bool:
        return True

    @override
    def readinto(self, buffer: Any) -> int | None:
        self._socket.settimeout(self._deadline.left())
        count = self._raw.readinto(buffer)
        self._deadline.left()
        return count

    @override
    def close(self) -> None:
        self._raw.close()
        super().close()


class _InTime:
    """What a connection does so that each of its steps has what is left."""

    sock: socket.socket | None
    response_class: Any

    def __init__(self, *given: Any, deadline: Deadline, **named: Any) -> None:
        super().__init__(*given, **named)
        self._deadline = deadline
        self.response_class = partial(_Answer, deadline)
        # what connect() calls, with or without a proxy
        self._create_connection = deadline.connect

    def send(self, data: Any) -> None:
        if self.sock is None:
            self.connect()  # type: ignore[attr-defined]  # there is one in each connection
        self._renew()
        super().send(data)  # type: ignore[misc]  # as well

    def _tunnel(self) -> None:
        super()._tunnel()  # type: ignore[misc]  # the same; the handshake of TLS follows
        self._renew()

    def _renew(self) -> None:
        if self.sock is not None:
            self.sock.settimeout(self._deadline.left())


class _Connection(_InTime, http.client.HTTPConnection): ...


class _TlsConnection(_InTime, http.client.HTTPSConnection): ...


class _Http(urllib.request.HTTPHandler):
    def __init__(self, deadline: Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    @override
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(partial(_Connection, deadline=self._deadline), req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, deadline: Deadline, context: ssl.SSLContext) -> None:
        super().__init__(context=context)
        self._made = partial(_TlsConnection, deadline=deadline, context=context)

    @override
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(self._made, req)


def handlers(deadline: Deadline, context: ssl.SSLContext) -> tuple[urllib.request.BaseHandler, ...]:
    """What an opener needs so that its requests end in time."""
    return _Http(deadline), _Https(deadline, context)
