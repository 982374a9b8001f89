"""Makes answers of errors: the status each class carries, and ``{"reason": text}`` (rule 11.1.1)."""

from __future__ import annotations

import logging

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from magnetar.admin.http.bodies import JsonAnswer
from magnetar.model.errors import MagnetarError
from magnetar.runtime.log import RateLimitedLog

log = logging.getLogger(__name__)
_limited = RateLimitedLog(log)
_SHOWN = 200


def _refusal(error: MagnetarError | HTTPException) -> Response:
    if isinstance(error, HTTPException):
        return JsonAnswer({"reason": str(error.detail)}, error.status_code, error.headers)
    return JsonAnswer({"reason": str(error)}, error.status)


class ErrorAnswers:
    """The innermost middleware: an error of ours becomes an answer with its own status, and so does one of the
    framework; a bug becomes one answer and one log entry, and the connection stays open."""

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
        except (MagnetarError, HTTPException) as error:
            if begun:
                raise
            await _refusal(error)(scope, receive, send)
        except ClientDisconnect:
            _limited.warning("left", "a client left in the middle of %s %s", scope["method"], scope["path"][:_SHOWN])
        except Exception as error:
            if begun or scope["type"] != "http":
                raise
            log.exception("%s %s failed", scope["method"], scope["path"][:_SHOWN])
            text = f"\n --- An unexpected error occurred in the server ---\n\nMessage: {error}"
            await JsonAnswer({"reason": text}, 500)(scope, receive, send)
