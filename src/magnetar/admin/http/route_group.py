"""The routes of one subject, each written down above its function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from starlette.responses import Response

from magnetar.admin.http.router import RestRoute

Function = TypeVar("Function", bound=Callable[..., Awaitable[Response]])


class RouteGroup:
    """Routes in the order in which they were added, which counts where several match a path."""

    def __init__(self, prefix: str = "") -> None:
        """``prefix``: what all their paths begin with."""
        self.routes: list[RestRoute] = []
        self._prefix = prefix

    def route(self, path: str, *methods: str) -> Callable[[Function], Function]:
        """Let the function below serve these methods of a path; see :mod:`magnetar.admin.http.arguments`."""

        def add(function: Function) -> Function:
            self.routes.append(RestRoute(self._prefix + path, function, methods))
            return function

        return add

    def get(self, path: str) -> Callable[[Function], Function]:
        """Let the function below serve GET."""
        return self.route(path, "GET")

    def put(self, path: str) -> Callable[[Function], Function]:
        """Let the function below serve PUT."""
        return self.route(path, "PUT")

    def post(self, path: str) -> Callable[[Function], Function]:
        """Let the function below serve POST."""
        return self.route(path, "POST")

    def delete(self, path: str) -> Callable[[Function], Function]:
        """Let the function below serve DELETE."""
        return self.route(path, "DELETE")
