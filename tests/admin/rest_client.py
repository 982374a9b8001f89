"""A blocking client of an ASGI application, for tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partialmethod
from typing import Any

import httpx
from starlette.types import ASGIApp, Receive, Scope, Send

from magnetar.authorization.caller import Caller


class RestClient:
    """Each call runs in a loop of its own, without a socket."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    def as_caller(self, role: str | None, original_role: str | None = None) -> RestClient:
        """A client whose requests are authenticated as those roles, by nobody."""
        caller = Caller(role, original_role, "/127.0.0.1:1", "word")

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            scope.setdefault("state", {})["caller"] = caller
            await self._app(scope, receive, send)

        return RestClient(app)

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """``options`` as httpx takes them; ``json=None`` sends no body."""
        if options.get("json", ...) is None:
            del options["json"]
        return asyncio.run(self._send(method, path, options))

    async def _send(self, method: str, path: str, options: dict[str, Any]) -> httpx.Response:
        transport = httpx.ASGITransport(self._app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8080") as client:
            return await client.request(method, path, **options)

    get = partialmethod(request, "GET")
    put = partialmethod(request, "PUT")
    post = partialmethod(request, "POST")
    delete = partialmethod(request, "DELETE")
    patch = partialmethod(request, "PATCH")


async def _nothing() -> None: ...


async def asked(
    app: ASGIApp, method: str, path: str, body: object = None, before: Callable[[], Awaitable[Any]] = _nothing
) -> tuple[int, Any]:
    """Ask; ``before`` is awaited when the route waits for the body. Returns status and answer."""
    sent: list[Any] = []
    received = False

    async def receive() -> Any:
        nonlocal received
        if received:
            await asyncio.Event().wait()  # the client stays until it has its answer
        received = True
        await before()
        return {"type": "http.request", "body": b"" if body is None else json.dumps(body).encode(), "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    path, _, query = path.partition("?")
    scope = {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": query.encode(),
        "headers": [(b"host", b"127.0.0.1:8080"), (b"content-type", b"application/json")], "scheme": "http",
        "http_version": "1.1", "root_path": "", "asgi": {"version": "3.0"}, "server": ("127.0.0.1", 8080),
        "client": ("127.0.0.1", 1), "state": {},
    }  # fmt: skip
    await app(scope, receive, send)
    data = b"".join(message.get("body", b"") for message in sent)
    return sent[0]["status"], json.loads(data) if data else None
