"""Makes answers of errors: the status each class carries, and ``{"reason": text}`` (rule 11.1.1)."""

from __future__ import annotations

import logging

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from magnetar.admin.http.bodies import JsonAnswer
from magnetar.admin.values.json_document import excerpt
from magnetar.model.errors import MagnetarError
from magnetar.runtime.log import RateLimitedLog

log = logging.getLogger(__name__)
_limited = RateLimitedLog(log)
_SHOWN = 200


async def known_failure(request: Request, error: Exception) -> Response:
    """Answer an error of ours with its own status."""
    status = error.status if isinstance(error, MagnetarError) else 500
    return JsonAnswer({"reason": str(error)}, status)


async def http_failure(request: Request, error: Exception) -> Response:
    """Answer an error of the framework, such as an unknown method."""
    if not isinstance(error, HTTPException):
        return await known_failure(request, error)
    return JsonAnswer({"reason": str(error.detail)}, error.status_code, error.headers)


async def wrong_parameter(request: Request, error: Exception) -> Response:
    """Answer 400 for a part of the path or of the query that has the wrong type."""
    found = error.errors()[0] if isinstance(error, RequestValidationError) and error.errors() else {}
    where, *names = found.get("loc", ("request",))
    what = f"{where} parameter {'.'.join(map(str, names))}" if names else str(where)
    reason = f"{what}: {excerpt(str(found.get('input')))} is not accepted: {found.get('msg', 'unknown reason')}"
    return JsonAnswer({"reason": reason}, 400)


class UnexpectedErrors:
    """The innermost middleware: a bug becomes one answer and one log entry, and the connection stays open."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def noticing(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, noticing)
        except ClientDisconnect:
            _limited.warning("left", "a client left in the middle of %s %s", scope["method"], scope["path"][:_SHOWN])
        except Exception as error:
            if begun or scope["type"] != "http":
                raise
            log.exception("%s %s failed", scope["method"], scope["path"][:_SHOWN])
            text = f"\n --- An unexpected error occurred in the server ---\n\nMessage: {error}"
            await JsonAnswer({"reason": text}, 500)(scope, receive, send)
