"""Routing on the path as it was sent.

ASGI servers decode a path before routing, which would turn ``a%2Fb`` into two parts. :class:`EncodedPath` routes on
the path as it was sent; :mod:`magnetar.admin.http.parameters` decodes part by part.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send


def path_as_sent(scope: Scope) -> str:
    """The path of a request as it was sent, without a slash at its end."""
    sent = scope.get("raw_path")
    if not sent:
        return str(scope["path"])
    return sent.partition(b"?")[0].decode("latin-1").removesuffix("/") or "/"


class EncodedPath:
    """Replaces the decoded path of a request by the one that was sent, without a slash at its end.

    Such a slash changes nothing in Apache Pulsar either; one that is part of a name is sent as ``%2F`` and stays.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "path": path_as_sent(scope)}
        await self._app(scope, receive, send)
