"""Requests on the event loop: HTTP/1.1 by h11 over asyncio's streams, a connection for each.

Nothing blocks the loop: credentials are read in a thread, because a file, a program or an issuer may be slow. A call
that is cancelled closes its connection. So many requests as ``at_once`` says are open at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import h11

from magnetar.admin_client.errors import no_answer, refusal
from magnetar.admin_client.request import REDIRECTS_MAX, AdminRequest, redirected, request_of, value_of
from magnetar.client.rest import ANSWER_MAX, Rest, RestAnswer, unavailable
from magnetar.model.errors import NotAvailableError
from magnetar.security.credentials.certificate import presenting

if TYPE_CHECKING:
    import ssl

_READ: Final = 64 << 10
_HEADERS_MAX: Final = 128 << 10


class AsyncioTransport:
    """Sends the requests of :class:`magnetar.admin_client.client.AsyncAdmin`, on one event loop."""

    def __init__(self, rest: Rest, redirects_to: Sequence[str], at_once: int) -> None:
        self._rest = rest
        self._trusted = tuple(redirects_to)
        self._turns = asyncio.Semaphore(at_once)

    async def ask(
        self, name: str, place: Mapping[str, object], query: Mapping[str, object], body: object = None
    ) -> Any:
        """Make a request and return what the answer says. Raises AdminError, CredentialsError."""
        request = request_of(name, place, query, body)
        rest = self._rest
        async with self._turns:
            for _ in range(REDIRECTS_MAX + 1):
                try:
                    async with asyncio.timeout(rest.seconds):
                        answer = await _exchange(rest, request)
                except TimeoutError as error:
                    late = NotAvailableError(f"{rest.url} did not answer for {rest.seconds:g} s")
                    raise no_answer(late, request.method, request.path) from error
                except NotAvailableError as error:
                    raise no_answer(error, request.method, request.path) from error
                owner = redirected(rest.url, request, answer, rest.credentials, self._trusted)
                if owner is None:
                    return value_of(request, answer, rest.credentials)
                rest = replace(rest, url=owner)
        raise refusal(307, "the brokers name each other", request.method, request.path, None)


async def _exchange(rest: Rest, request: AdminRequest) -> RestAnswer:
    """One request and its answer. Raises NotAvailableError, CredentialsError."""
    address = urlsplit(rest.url)
    secured = address.scheme == "https"
    headers, context = await asyncio.to_thread(_login, rest, secured=secured)
    opened = False
    try:
        reader, writer = await asyncio.open_connection(
            address.hostname, address.port or (443 if secured else 80), ssl=context
        )
        opened = True
        try:
            writer.write(_written(rest, request, headers))
            await writer.drain()
            return await _answer(rest, request, reader)
        finally:
            writer.transport.abort()
    except OSError as error:
        raise unavailable(rest.url, error, opened=opened) from error


def _login(rest: Rest, *, secured: bool) -> tuple[Mapping[str, str], ssl.SSLContext | None]:
    if not secured:
        return rest.credentials.headers(), None
    from magnetar.security.tls.client_tls import ClientTls

    return rest.credentials.headers(), presenting(rest.tls or ClientTls(), rest.credentials).context()


def _written(rest: Rest, request: AdminRequest, login: Mapping[str, str]) -> bytes:
    address, body = urlsplit(rest.url), request.body or b""
    headers = {
        "host": address.netloc,
        "content-type": "application/json",
        "content-length": str(len(body)),
        "connection": "close",
        **login,
    }
    speaking = h11.Connection(h11.CLIENT)
    target = address.path.rstrip("/") + request.path
    parts = [speaking.send(h11.Request(method=request.method, target=target, headers=list(headers.items())))]
    parts += [speaking.send(h11.Data(data=body))] if body else []
    parts.append(speaking.send(h11.EndOfMessage()))
    return b"".join(part for part in parts if part)


async def _answer(rest: Rest, request: AdminRequest, reader: asyncio.StreamReader) -> RestAnswer:
    """Read one answer. Raises NotAvailableError."""
    hearing = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEADERS_MAX)
    # h11 parses a response only after it has sent the request
    hearing.send(h11.Request(method=request.method, target="/", headers=[("host", "x")]))
    hearing.send(h11.EndOfMessage())
    content, status, headers = bytearray(), 0, dict[str, str]()
    try:
        while True:
            event = hearing.next_event()
            if event is h11.NEED_DATA:
                hearing.receive_data(await reader.read(_READ))
            elif isinstance(event, h11.Response):
                status = event.status_code
                headers = {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in event.headers}
            elif isinstance(event, h11.Data):
                content += event.data
                if len(content) > ANSWER_MAX:
                    raise NotAvailableError(f"{rest.url} answers with more than {ANSWER_MAX} bytes")
            elif isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
                return RestAnswer(status, headers, bytes(content))
    except h11.RemoteProtocolError as error:
        raise NotAvailableError(f"{rest.url} does not answer as HTTP does: {error}") from error
