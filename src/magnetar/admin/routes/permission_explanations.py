"""``/admin/v2/permissions/explain``: may a role do that, why, and what would change it (decision 032).

magnetar's own. Everybody may ask about the own role; about others those who may read their grants: superusers, and the
administrators of the tenant that the object belongs to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from magnetar.admin.http.authorization import Permissions, caller_of, target_of
from magnetar.admin.http.bodies import answer
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.ports import TopicsPort
from magnetar.admin.values.grants import role_name
from magnetar.authorization.access import Access, ClusterAccess, TenantAccess
from magnetar.authorization.caller import Caller
from magnetar.authorization.explanation import explained
from magnetar.authorization.operation_names import AskedObject, accesses_of, note_on
from magnetar.authorization.permission_table.needs import Route, RoutePermission
from magnetar.authorization.permission_table.route_permissions import ROUTE_PERMISSIONS
from magnetar.authorization.rules import tenant_of
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.errors import InvalidValueError
from magnetar.model.names import NamespaceName, TopicName

_REQUEST: Final = re.compile(r"\s*([A-Za-z]+)\s+(/\S*)\s*")
_OFF: Final = "authorizationEnabled is false: everybody may do everything"


def routes(topics: TopicsPort, resources: Resources, settings: Settings, permissions: Permissions) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup()

    def grantable(topic: TopicName) -> bool:
        return settings.allowAclChangesOnNonExistentTopics or known(topic)

    def known(topic: TopicName) -> bool:
        return topics.topic_exists(topic) or resources.partitioned.count(topic) > 0

    @router.get("/admin/v2/permissions/explain")
    async def explain(
        request: Request,
        role: str,
        operation: str,
        tenant: str = "",
        namespace: str = "",
        topic: str = "",
        subscription: str = "",
        original: str = "",
    ) -> Response:
        """May this role do that? Why, and what would change it?"""
        about = Caller(role_name(role), original or None)
        of = _object(tenant, namespace, topic, subscription)
        if of.topic is not None and known(of.topic.namesake):
            of = replace(of, namesake=of.topic.namesake)
        accesses, note = _asked(operation, of)
        authorizer = permissions.authorizer
        if authorizer is None:
            return answer({"role": role, "operation": operation, "allowed": True, "reason": _OFF, "remedy": "",
                           "note": note, "accesses": []})  # fmt: skip
        rights = _needed(accesses, of)
        may_read_grants = permissions.allows(request, *rights)
        caller = caller_of(request)
        itself = (role, original) in ((caller.principal, ""), (caller.role, caller.original_role))
        if not may_read_grants and not itself:
            permissions.require(request, *rights)
        if (role, original or None) == (caller.role, caller.original_role):
            about = caller  # with all roles that its token names
        found = explained(authorizer, about, operation, accesses, grantable, note)
        return answer(found.as_json(with_remedies=may_read_grants))

    return router


def _object(tenant: str, namespace: str, topic: str, subscription: str) -> AskedObject:
    """Check what the question is about. Raises InvalidValueError, InvalidTopicNameError, InvalidNamespaceNameError."""
    if subscription and not topic:
        raise InvalidValueError("a subscription is one of a topic: name that with topic=")
    return AskedObject(
        tenant,
        NamespaceName.parse(namespace) if namespace else None,
        TopicName.parse(topic) if topic else None,
        subscription,
    )


def _asked(operation: str, of: AskedObject) -> tuple[tuple[Access, ...], str]:
    """What the operation asks for, and a note on what only its body or the data tell. Raises InvalidValueError."""
    request = _REQUEST.fullmatch(operation)
    if request is None:
        return accesses_of(operation, of), _besides(note_on(operation, of))
    method, path = request[1].upper(), request[2].partition("?")[0].removesuffix("/")
    found = _row("GET" if method == "HEAD" else method, path)  # it passes as a GET
    if found is None:
        raise InvalidValueError(
            f"{method} {path[:200]} is no request that this broker answers; see docs/permissions.md"
        )
    row, parameters, route = found
    return tuple(row.accesses(target_of(parameters, route))), _besides(row.inside)


def _besides(inside: str) -> str:
    return f"asked besides: {inside}" if inside else ""


def _row(method: str, path: str) -> tuple[RoutePermission, dict[str, str], str] | None:
    """The row of the permission table for a request: of several that match, that with the fewest parameters.

    With the parameters, and the path of the route.
    """
    matching: list[tuple[int, Route, dict[str, str]]] = []
    for route in ROUTE_PERMISSIONS:
        if route[0] == method and route[1] != "/{path}":
            match = re.fullmatch(_pattern(route[1]), path)
            if match:
                matching.append((len(match.groupdict()), route, match.groupdict()))
    if not matching:
        return None
    _, route, parameters = min(matching, key=lambda one: (one[0], one[1]))
    return ROUTE_PERMISSIONS[route], parameters, route[1]


def _pattern(template: str) -> str:
    def group(found: re.Match[str]) -> str:
        return f"(?P<{found[1]}>{'persistent|non-persistent' if found[1] == 'domain' else '[^/]+'})"

    return re.sub(r"\\{(\w+)\\}", group, re.escape(template))


def _needed(accesses: Iterable[Access], of: AskedObject) -> list[Access]:
    """The accesses needed to see the grants that decide the answer: administration of the tenants concerned."""
    tenants = {"" if isinstance(access, ClusterAccess) else tenant_of(access) for access in accesses} or {of.owner}
    return [TenantAccess(tenant) if tenant else ClusterAccess("ask about others") for tenant in sorted(tenants)]
