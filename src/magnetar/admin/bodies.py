"""Reading request bodies as Pulsar takes them (SEMANTICS 11.1.4) and writing answers.

A body may be missing or ``null``; numbers and booleans come bare; ``application/vnd...+json`` is JSON too.
"""

from __future__ import annotations

import json
from typing import Final

from fastapi import Request
from starlette.responses import JSONResponse, Response

from magnetar.model.errors import InvalidValueError, MagnetarError
from magnetar.model.policies import Json, JsonObject

BODY_BYTES_MAX: Final = 1 << 20
"""No administrative body comes near it; what is longer is refused before it fills memory."""


class UnsupportedMediaTypeError(MagnetarError):
    status = 415


class BodyTooLargeError(MagnetarError):
    status = 413


async def json_body(request: Request) -> Json:
    """The body, ``None`` if there is none. Raises InvalidValueError if it is not JSON."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_BYTES_MAX:
            raise BodyTooLargeError(f"body of more than {BODY_BYTES_MAX} bytes")
    if not body.strip():
        return None
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise UnsupportedMediaTypeError(f"content type {kind} is not supported; send application/json")
    try:
        value: Json = json.loads(bytes(body))
    except (ValueError, RecursionError) as error:
        raise InvalidValueError(f"the body is not JSON: {error}") from None
    return value


async def object_body(request: Request) -> JsonObject | None:
    """A JSON object, or ``None`` if the body is missing or null."""
    value = await json_body(request)
    if value is not None and not isinstance(value, dict):
        raise InvalidValueError(f"expected a JSON object, got {json.dumps(value)[:80]}")
    return value


async def text_map_body(request: Request) -> dict[str, str]:
    """A JSON object of texts; empty if the body is missing or null."""
    found = await object_body(request) or {}
    if not all(isinstance(value, str) for value in found.values()):
        raise InvalidValueError("expected a JSON object whose values are all texts")
    return {key: str(value) for key, value in found.items()}


def number(value: Json, what: str) -> int:
    """A bare JSON number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidValueError(f"expected {what} as a JSON number, got {json.dumps(value)[:80]}")
    return value


def answer(value: object, status: int = 200) -> Response:
    """A JSON answer."""
    return JSONResponse(value, status)


def done(status: int = 204) -> Response:
    """Success with nothing to say."""
    return Response(status_code=status)
