"""The first request of an application, made before there is one.

FastAPI builds routes when they are first looked at: half a second that the thread which builds the application can
spend, and the broker's event loop cannot.
"""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Scope


def prepare(app: ASGIApp) -> None:
    """Ask for a path that does not exist; every route is looked at for that. Not in a thread with a running loop."""
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
