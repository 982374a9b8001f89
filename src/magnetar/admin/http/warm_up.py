"""The building of an application's routes before clients ask for any.

FastAPI builds its routes when a request is first compared with them. That takes half a second, which the thread that
builds the application can spend and the broker's event loop cannot.
"""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.types import Scope


def prepare(app: Starlette) -> None:
    """Compare every route with a path that does not exist.

    That is no request: no middleware sees it and no route answers it, so that nobody's login is refused or counted.
    """
    path = "/there-is-no-such-path"
    scope: Scope = {
        "type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "",
        "headers": [], "app": app,
    }  # fmt: skip
    for route in app.router.routes:
        route.matches(scope)
