"""Authorization of REST: every route asks the permission table before it begins (decision 031).

:func:`guard` wraps each route once, while the application is built; without authorization nothing is wrapped. What a
path names decides whom to ask about; the parts of it are decoded here exactly as the routes decode them. Routes that
learn from their body or their data what they are about ask again, through :class:`Permissions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from starlette.requests import HTTPConnection
from starlette.types import Message, Receive, Scope, Send

from magnetar.admin.http.parameters import namespace_name, path_parts, topic_name
from magnetar.admin.http.router import RestRoute
from magnetar.authorization.access import Access
from magnetar.authorization.authorizer import Authorizer
from magnetar.authorization.caller import Caller
from magnetar.authorization.decision import Decision
from magnetar.authorization.permission_table.needs import RoutePermission
from magnetar.authorization.permission_table.request_target import RequestTarget
from magnetar.authorization.permission_table.route_permissions import ROUTE_PERMISSIONS

_NOBODY: Final = Caller(None)


def caller_of(connection: HTTPConnection | Scope) -> Caller:
    """Who sent a request, as authentication found out; one without a role, who may do nothing, without it."""
    found = connection.get("state", {}).get("caller")
    return found if isinstance(found, Caller) else _NOBODY


class Permissions:
    """What a route asks besides its row in the table; without authorization everything is allowed."""

    def __init__(self, authorizer: Authorizer | None) -> None:
        self._authorizer = authorizer

    @property
    def authorizer(self) -> Authorizer | None:
        """Whom to ask about anybody; ``None`` without authorization."""
        return self._authorizer

    @property
    def counted(self) -> bool:
        """Whether anything can be refused."""
        return self._authorizer is not None

    def require(self, connection: HTTPConnection, *accesses: Access, recorded: bool = False) -> None:
        """Do nothing if the caller may do all of that. Raises AuthorizationRefusedError, NotFoundError.

        ``recorded``: the audit log has it also when it is allowed.
        """
        if self._authorizer is not None:
            _require(self._authorizer, connection.scope, accesses, recorded=recorded)

    def record(self, connection: HTTPConnection, access: Access, reason: str) -> None:
        """Record that something is allowed for a reason that no rule knows."""
        if self._authorizer is not None:
            request = request_of(connection.scope)
            self._authorizer.record(caller_of(connection), access, Decision(True, reason), request)

    def allows(self, connection: HTTPConnection, *accesses: Access) -> bool:
        """Whether the caller may do all of that; the audit log does not hear of it."""
        return self._authorizer is None or self._authorizer.allows(caller_of(connection), *accesses)


def guard(routes: Iterable[RestRoute], authorizer: Authorizer) -> None:
    """Make every route ask the table first. Raises LookupError, which names what has no row, before anything serves."""
    for route in routes:
        rows: dict[str, RoutePermission] = {}
        for method in sorted(route.methods):
            row = ROUTE_PERMISSIONS.get((method, route.path_format))
            if row is None:
                raise LookupError(f"{method} {route.path_format} has no row in the permission table")
            rows[method] = row
        if not rows:
            raise LookupError(f"{route.path_format} takes any method: there is no row for it in the permission table")
        route.handle = _Guarded(route, rows, authorizer)  # type: ignore[method-assign]  # what the router calls


class _Guarded:
    """The handling of one route, after its row of the table."""

    def __init__(self, route: RestRoute, rows: Mapping[str, RoutePermission], authorizer: Authorizer) -> None:
        self._handle = route.handle
        self._path = route.path_format
        self._rows = rows
        self._authorizer = authorizer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # a method without a row is none of the route's: all that can follow is 405
        row = self._rows.get(scope["method"])
        if row is None:
            await self._handle(scope, receive, send)
            return
        accesses = self._check(scope, row)
        parts = 0

        async def received() -> Message:
            # a body may take its time, in which its sender loses what the head was allowed for
            nonlocal parts
            message = await receive()
            parts += 1
            last = message["type"] == "http.request" and not message.get("more_body", False)
            if last and (parts > 1 or message.get("body")):
                _require(self._authorizer, scope, accesses, recorded=False)
            return message

        await self._handle(scope, received, send)

    def _check(self, scope: Scope, row: RoutePermission) -> tuple[Access, ...]:
        accesses = tuple(row.accesses(target_of(scope.get("path_params", {}), self._path)))
        _require(self._authorizer, scope, accesses, recorded=row.recorded)
        return accesses


def _require(authorizer: Authorizer, scope: Scope, accesses: tuple[Access, ...], *, recorded: bool) -> None:
    """Raise unless the caller may do all of that; with ``recorded`` the audit log has it also when it is allowed."""
    authorizer.require(caller_of(scope), *accesses, request=request_of(scope), recorded=recorded)


def request_of(scope: Scope) -> str:
    """Method and path, for the audit log."""
    return f"{scope['method']} {scope['path'][:500]}"


def target_of(parameters: Mapping[str, str], route: str = "") -> RequestTarget:
    """What the parameters of a route's path name. Raises PreconditionFailedError for a name that is none."""
    parts = path_parts(parameters, route)
    tenant = parts.get("tenant", "")
    namespace = topic = None
    if "namespace" in parts:
        namespace = namespace_name(tenant, parts["namespace"])
        if "topic" in parts:
            topic = topic_name(parts.get("domain", "persistent"), tenant, parts["namespace"], parts["topic"])
    subscription = parts.get("subscription", parts.get("subName", ""))
    return RequestTarget(tenant, namespace, topic, subscription, parts.get("policy", ""))
