"""Routes and what chooses among them: the first whose path and method match takes the request.

Paths are compared part by part, as they were sent (:mod:`magnetar.admin.http.encoded_path`), and nothing is compiled:
an application with all its routes is made in a few milliseconds, and a path is compared only with routes of as many
parts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from magnetar.admin.http.arguments import arguments_of
from magnetar.admin.http.bodies import allow

Matches = Callable[[str], bool]
"""Whether a part of a path may stand in a parameter's place."""
_REST: Final = "path"
_words: dict[str, Matches] = {}


def register_words(kind: str, words: Collection[str], *, others: bool = False) -> None:
    """Let ``{name:kind}`` stand for these words alone; with ``others`` for all but these."""
    known = frozenset(words)
    _words[kind] = (lambda part: part not in known) if others else known.__contains__


class RestRoute:
    """One path with its methods, and the function that serves it."""

    def __init__(self, path: str, function: Callable[..., Any], methods: Iterable[str]) -> None:
        """``path``: with parameters as ``{name}``, ``{name:kind}`` (see `register_words`) and, as all that is left,
        ``{name:path}``. Raises ValueError, LookupError about a path that is none, TypeError about the function."""
        self.path = path
        self.methods = frozenset(methods)
        self.function = function
        self._literals: list[tuple[int, str]] = []
        self._parameters: list[tuple[int, str, Matches]] = []
        self._rest: str | None = None
        names: list[str] = []
        shown = [self._part(number, part, names) for number, part in enumerate(path.split("/"))]
        self.path_format = "/".join(shown)
        self.length = len(shown)
        self._arguments = arguments_of(function, path, names)

    def _part(self, number: int, part: str, names: list[str]) -> str:
        if not part.startswith("{"):
            if "{" in part or "}" in part:
                raise ValueError(f"{self.path}: a parameter is a whole part of a path")
            self._literals.append((number, part))
            return part
        if not part.endswith("}") or self._rest is not None:
            raise ValueError(f"{self.path}: a parameter is a whole part of a path, and nothing follows the rest")
        name, _, kind = part[1:-1].partition(":")
        names.append(name)
        if kind == _REST:
            self._rest = name
        else:
            self._parameters.append((number, name, _words[kind] if kind else bool))
        return f"{{{name}}}"

    @property
    def takes_all(self) -> bool:
        """Whether its last parameter takes any number of parts."""
        return self._rest is not None

    def matching(self, parts: Sequence[str]) -> dict[str, str] | None:
        """Return the parameters of a path, as they were sent; None if the path is not this route's."""
        for number, literal in self._literals:
            if parts[number] != literal:
                return None
        for number, _, matches in self._parameters:
            if not parts[number] or not matches(parts[number]):
                return None
        found = {name: parts[number] for number, name, _ in self._parameters}
        if self._rest is not None:
            found[self._rest] = "/".join(parts[self.length - 1 :])
        return found

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request with this path. Raises HTTPException with 405 for another method, and what is wrong with
        the request."""
        if scope["method"] not in self.methods:
            raise HTTPException(405, headers={"Allow": allow(self.methods)})
        request = Request(scope, receive, send)
        response: Response = await self.function(**self._arguments.of(request))
        await response(scope, receive, send)


class RestRouter:
    """All routes of an application, in their order."""

    def __init__(self, routes: Iterable[RestRoute]) -> None:
        self.routes = list(routes)
        lengths = {route.length for route in self.routes}
        self._longest = max(lengths, default=0)
        self._by_length = {
            length: [one for one in self.routes if one.length == length or (one.takes_all and one.length <= length)]
            for length in range(1, self._longest + 2)
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. Raises HTTPException with 404 if no route matches, and what `RestRoute.handle` raises."""
        route, parameters = self._chosen(scope["method"], scope["path"].split("/"))
        scope["path_params"] = parameters
        scope["route"] = route
        await route.handle(scope, receive, send)

    def route_of(self, method: str, path: str) -> RestRoute | None:
        """Return the route that would take a request, with this path as it was sent; None if there is none."""
        try:
            return self._chosen(method, path.split("/"))[0]
        except HTTPException:
            return None

    def _chosen(self, method: str, parts: Sequence[str]) -> tuple[RestRoute, dict[str, str]]:
        of_path: tuple[RestRoute, dict[str, str]] | None = None
        # beyond the longest there are only those that take all
        for route in self._by_length.get(min(len(parts), self._longest + 1), ()):
            parameters = route.matching(parts)
            if parameters is not None:
                if method in route.methods:
                    return route, parameters
                of_path = of_path or (route, parameters)
        if of_path is None:
            raise HTTPException(404)
        return of_path
