"""From errors to answers: the status each class carries, and ``{"reason": text}`` (SEMANTICS 11.1.1)."""

from __future__ import annotations

import logging

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from magnetar.model.errors import MagnetarError

log = logging.getLogger(__name__)


async def known_failure(request: Request, error: Exception) -> Response:
    """An error we raised on purpose."""
    status = error.status if isinstance(error, MagnetarError) else 500
    return JSONResponse({"reason": str(error)}, status)


async def http_failure(request: Request, error: Exception) -> Response:
    """An error of the framework: unknown method and the like."""
    if not isinstance(error, HTTPException):
        return await known_failure(request, error)
    return JSONResponse({"reason": str(error.detail)}, error.status_code, error.headers)


class Unexpected:
    """Innermost wrapper: a bug becomes one answer and one log entry, and the connection goes on."""

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
        except Exception as error:
            if begun or scope["type"] != "http":
                raise
            log.exception("%s %s failed", scope["method"], scope["path"])
            text = f"\n --- An unexpected error occurred in the server ---\n\nMessage: {error}"
            await JSONResponse({"reason": text}, 500)(scope, receive, send)
