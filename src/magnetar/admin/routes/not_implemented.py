"""Routes of Apache Pulsar 4.0.8 that are not built here: 501 with a reason, where 404 would look like an error.

``pulsar_routes.tsv`` lists every path with its methods, those of the v1 interface and of functions included;
``refused_routes.tsv`` says why a route is not served: ``not applicable`` where it has no meaning here, ``refused``
where magnetar decided against it. They are read for the first unknown request, so most brokers never read them.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from magnetar.admin.http.bodies import answer, wrong_method
from magnetar.admin.http.router import RestRoute
from magnetar.model.errors import NotAvailableError

_SHOWN = 200
_UPLOADING: Final = ("POST", "PUT")
_PASSED_OVER_MAX: Final = 256 << 20
"""Bytes of a package that is uploaded to a route of Pulsar. Elsewhere the answer comes first."""
_METHODS = ("GET", "PUT", "POST", "DELETE", "PATCH", "HEAD", "OPTIONS")
KINDS: Final = ("refused", "not applicable")
V1_ANTI_AFFINITY: Final = "/admin/namespaces/{cluster}/antiAffinity/{group}"
"""The one path of the v1 interface that is served: Apache Pulsar's own tools have no other one for it."""


class PathForm:
    """A path with parameters, compared part by part: five hundred regular expressions take a tenth of a second, and
    the first unknown path would have everybody wait for them."""

    def __init__(self, path: str) -> None:
        self._parts = [None if part.startswith("{") else part for part in path.split("/")]

    def matches(self, path: str) -> bool:
        """Whether a path, perhaps with a slash at its end, has this form."""
        parts = path.removesuffix("/").split("/")
        return len(parts) == len(self._parts) and all(
            part == wanted if wanted is not None else part for part, wanted in zip(parts, self._parts, strict=True)
        )


class RouteRefusal(NamedTuple):
    """One row of the table of reasons; a path that ends with ``*`` stands for all that begin with it."""

    path: str
    methods: frozenset[str]
    kind: str
    reason: str

    def covers(self, method: str, template: str) -> bool:
        """Whether the row is about that route."""
        prefix = self.path.removesuffix("*")
        same = template.startswith(prefix) if prefix != self.path else template == self.path
        return same and (method in self.methods or "*" in self.methods)


def route() -> RestRoute:
    """The route that takes every path that no other route took; it must be the last one.

    Its tables are read at once: made in the midst of a burst, they would keep the memory around them for ever.
    """
    known_routes()
    refusals()
    return RestRoute("/{path:path}", _unknown, _METHODS)


@cache
def known_routes() -> list[tuple[PathForm, str, frozenset[str]]]:
    """Form, documented path and methods of every route of Pulsar, those with fewer parameters first."""
    rows = _table("pulsar_routes.tsv")
    rows.sort(key=lambda row: row[0].count("{"))
    return [(PathForm(path), path, frozenset(methods.split())) for path, methods in rows]


@cache
def refusals() -> list[RouteRefusal]:
    """The table of reasons."""
    rows = _table("refused_routes.tsv")
    return [RouteRefusal(path, frozenset(methods.split()), kind, reason) for path, methods, kind, reason in rows]


def refusal_of(method: str, template: str) -> RouteRefusal | None:
    """Why a route of Pulsar is not served; None: it is, or no reason is recorded."""
    if template == V1_ANTI_AFFINITY:
        return None
    return next((row for row in refusals() if row.covers(method, template)), None)


def _table(name: str) -> list[list[str]]:
    text = files("magnetar.admin.routes").joinpath(name).read_text("utf-8")
    return [line.split("\t") for line in text.splitlines()[1:]]


async def _pass_over(request: Request) -> None:
    """Read the uploaded package: a client that is still sending when the connection ends does not see the answer."""
    read = 0
    async for chunk in request.stream():
        read += len(chunk)
        if read > _PASSED_OVER_MAX:
            return


async def _unknown(request: Request) -> Response:
    path = request.scope["path"]
    matching = [(template, methods) for form, template, methods in known_routes() if form.matches(path)]
    for template, methods in matching:
        if request.method in methods:
            found = refusal_of(request.method, template)
            if found is None:
                raise NotAvailableError(f"{request.method} {template} is not available yet in magnetar")
            if request.method in _UPLOADING:
                await _pass_over(request)
            raise NotAvailableError(f"{request.method} {template} is not available in magnetar: {found.reason}")
    if matching:
        allowed = sorted(set().union(*(methods for _, methods in matching)))
        return wrong_method(*allowed)
    return answer({"url": path[:_SHOWN], "status": "404", "message": "Not Found", "reason": "Not Found"}, 404)
