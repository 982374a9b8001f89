"""Request bodies, read as Pulsar reads them (rule 11.1.4), and answers.

A body may be missing or ``null``; numbers and booleans come bare; ``application/vnd...+json`` is JSON too.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send
from typing_extensions import override

from magnetar.admin.values import coercion
from magnetar.admin.values.json_document import excerpt, read_document
from magnetar.model.errors import InvalidValueError, MagnetarError
from magnetar.model.policies import Json, JsonObject
from magnetar.runtime.tasks import TaskGroup

BODY_BYTES_MAX: Final = 1 << 20
"""Longer bodies are refused before they fill memory; no administrative body comes near this length."""

_BARE: Final = re.compile(rb"\s*(true|false|-?[0-9]{1,19})\s*")
_TOO_LARGE: Final = "body of more than {} bytes, which is what this path takes"
_NO_BODY: Final = "magnetar.no_body"
"""In the scope of a request for the head of an answer alone."""
_MEMBERS_PER_PIECE: Final = 20
"""Of statistics of partitions, each of which may be some kilobytes."""
_AT_ONCE_MAX: Final = 64 << 10
"""Longer bodies are parsed beside the loop: megabytes of small values take a second."""


class UnsupportedMediaTypeError(MagnetarError):
    status = 415


class BodyTooLargeError(MagnetarError):
    status = 413


async def raw_body(request: Request, most: int = BODY_BYTES_MAX) -> bytes:
    """Return the body as it was sent. Raises BodyTooLargeError."""
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length[:20]) > most:
        raise BodyTooLargeError(_TOO_LARGE.format(most))  # nothing of it is waited for
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise BodyTooLargeError(_TOO_LARGE.format(most))
    return bytes(body)


async def json_body(request: Request, most: int = BODY_BYTES_MAX) -> Json:
    """Return the parsed body, ``None`` for an empty one.

    Plain text may be a bare number, ``true`` or ``false``, as Apache Pulsar's server reads it. Raises
    InvalidValueError if the body is not JSON, UnsupportedMediaTypeError.
    """
    body = await raw_body(request, most)
    if not body.strip():
        return None
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind == "text/plain" and _BARE.fullmatch(body):
        return read_document(body)
    if kind != "application/json" and not kind.endswith("+json"):
        raise UnsupportedMediaTypeError(f"content type {kind[:80]!r} is not supported; send application/json")
    if len(body) > _AT_ONCE_MAX:
        return await asyncio.to_thread(read_document, body)
    return read_document(body)


async def object_body(request: Request) -> JsonObject | None:
    """Return the body as a JSON object, ``None`` if it is missing or null. Raises InvalidValueError."""
    value = await json_body(request)
    if value is not None and not isinstance(value, dict):
        raise InvalidValueError(f"expected a JSON object, got {excerpt(value)}")
    return value


async def text_map_body(request: Request) -> dict[str, str]:
    """Return the body as a JSON object of texts, an empty one if it is missing or null."""
    return coercion.texts(await json_body(request))


class HeadRequests:
    """ASGI middleware: HEAD is answered wherever there is a GET, as that would be (RFC 9110, 9.3.2).

    All within see a GET, permission checks as well; the server, which knows better, sends no body.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = {**scope, "method": "GET", _NO_BODY: True}
        await self._app(scope, receive, send)


class JsonAnswer(JSONResponse):
    """Compact UTF-8 JSON. A lone surrogate (older versions stored them) goes out escaped, as Java writes it."""

    @override
    def render(self, content: Any) -> bytes:
        try:
            return super().render(content)
        except UnicodeEncodeError:
            return json.dumps(content, separators=(",", ":")).encode()


class Streamed(Response):
    """An answer that is sent as it is made, until its reader leaves.

    Starlette's own brings a second library of tasks with it, 20 modules and 6 MB, for the first one.
    """

    def __init__(
        self,
        pieces: AsyncIterator[str] | AsyncIterator[bytes],
        media_type: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.pieces = pieces
        self.status_code = 200
        self.media_type = media_type
        self.background = None
        self.init_headers(headers)

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        tasks = TaskGroup("answer")
        left = tasks.start(_left(receive), "reader")
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async for piece in self.pieces:
                if left.done():
                    return
                if _NO_BODY in scope:
                    break
                data = piece.encode() if isinstance(piece, str) else piece
                await send({"type": "http.response.body", "body": data, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            await tasks.close()
            if isinstance(self.pieces, AsyncGenerator):
                await self.pieces.aclose()


async def _left(receive: Receive) -> None:
    """Return when the reader has left; what it may still send of its request means nothing."""
    while (await receive())["type"] != "http.disconnect":
        pass


def answer(value: object, status: int = 200) -> Response:
    """A JSON answer."""
    return JsonAnswer(value, status)


def listed(pieces: Iterable[Sequence[str]]) -> Response:
    """A JSON list of texts; a long one is sent piece by piece, and other requests are served in between."""
    if isinstance(pieces, list) and len(pieces) <= 1:
        return answer([text for piece in pieces for text in piece])
    return Streamed(_streamed(pieces), media_type="application/json")


async def _streamed(pieces: Iterable[Sequence[str]]) -> AsyncIterator[str]:
    before = "["
    for piece in pieces:
        if piece:
            yield before + json.dumps(list(piece), ensure_ascii=False, separators=(",", ":"))[1:-1]
            before = ","
        await asyncio.sleep(0)
    yield "[]" if before == "[" else "]"


def with_many(head: Mapping[str, object], name: str, members: Mapping[str, object] | None = None) -> Response:
    """A JSON object, of which ``name`` has ``members``: many are sent piece by piece, as of a list, and come last.

    None: those that ``head`` has under that name, if there are any.
    """
    if members is None:
        own = head.get(name)
        if not isinstance(own, Mapping):
            return answer(head)
        members = own
    if len(members) <= _MEMBERS_PER_PIECE:
        return answer({**head, name: members})
    return Streamed(_many(head, name, members), media_type="application/json")


async def _many(head: Mapping[str, object], name: str, members: Mapping[str, object]) -> AsyncIterator[bytes]:
    others = {key: value for key, value in head.items() if key != name}
    yield bytes(JsonAnswer({**others, name: {}}).body[:-2])
    before, rest = b"", iter(members.items())
    while some := dict(islice(rest, _MEMBERS_PER_PIECE)):
        yield before + bytes(JsonAnswer(some).body[1:-1])
        before = b","
        await asyncio.sleep(0)
    yield b"}}"


def done(status: int = 204) -> Response:
    """Success without a body."""
    return Response(status_code=status)


def wrong_method(*allowed: str) -> Response:
    """405, with the allowed methods in the reason and in the header."""
    return JsonAnswer({"reason": f"this path takes {', '.join(allowed)} only"}, 405, {"allow": allow(allowed)})


def allow(methods: Iterable[str]) -> str:
    """The header Allow; who takes GET takes HEAD."""
    found = set(methods)
    return ", ".join(sorted(found | {"HEAD"} if "GET" in found else found))
