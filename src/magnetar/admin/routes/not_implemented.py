"""Routes of Apache Pulsar 4.0.8 that are not built here: 501 with a reason, where 404 would look like an error.

``pulsar_routes.tsv`` lists every path with its methods. It is read for the first unknown request, so most brokers
never read it.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from magnetar.admin.http.bodies import answer, wrong_method
from magnetar.model.errors import NotAvailableError

_SHOWN = 200
_METHODS = ("GET", "PUT", "POST", "DELETE", "PATCH", "HEAD", "OPTIONS")


def route() -> Route:
    """The route that takes every path that no other route took; it must be the last one."""
    return Route("/{path:path}", _unknown, methods=list(_METHODS), include_in_schema=False)


@cache
def known_routes() -> list[tuple[re.Pattern[str], str, frozenset[str]]]:
    """Pattern, documented path and methods of every route of Pulsar, those with fewer parameters first."""
    text = files("magnetar.admin.routes").joinpath("pulsar_routes.tsv").read_text("utf-8")
    rows = [line.split("\t") for line in text.splitlines()[1:]]
    rows.sort(key=lambda row: row[0].count("{"))
    return [(_pattern(path), path, frozenset(methods.split())) for path, methods in rows]


def _pattern(path: str) -> re.Pattern[str]:
    parts = re.split(r"\{[^}]*\}", path)
    return re.compile("[^/]+".join(map(re.escape, parts)) + "/?")


async def _unknown(request: Request) -> Response:
    path = request.scope["path"]
    matching = [(template, methods) for pattern, template, methods in known_routes() if pattern.fullmatch(path)]
    for template, methods in matching:
        if request.method in methods:
            raise NotAvailableError(f"{request.method} {template} is not available yet in magnetar")
    if matching:
        allowed = sorted(set().union(*(methods for _, methods in matching)))
        return wrong_method(*allowed)
    return answer({"url": path[:_SHOWN], "status": "404", "message": "Not Found", "reason": "Not Found"}, 404)
