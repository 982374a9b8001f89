"""A first request to an application, before clients send any.

FastAPI builds its routes during the first request. That takes half a second, which the thread that builds the
application can spend and the broker's event loop cannot.
"""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Scope


def prepare(app: ASGIApp) -> None:
    """Request a path that does not exist, for which every route is tried. Not for a thread with a running loop."""
    asyncio.run(_ask_for_nothing(app))


async def _ask_for_nothing(app: ASGIApp) -> None:
    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None: ...

    path = "/there-is-no-such-path"
    scope: Scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "",
        "headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 1),
    }  # fmt: skip
    await app(scope, receive, send)
