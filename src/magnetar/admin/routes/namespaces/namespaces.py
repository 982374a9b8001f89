"""/admin/v2/namespaces: namespaces and lists of their topics (rule 11.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from magnetar.admin.http.authorization import Permissions
from magnetar.admin.http.bodies import answer, done, listed, object_body
from magnetar.admin.http.parameters import NAMESPACE, Flag, PathText, namespace_name
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.ports import TopicsPort
from magnetar.admin.routes.namespaces.namespace_creation import asked_for, checked
from magnetar.admin.routes.namespaces.removal import is_empty, remove_namespace
from magnetar.admin.routes.namespaces.replication import require_allowed_to_tenant, require_own, texts_of
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.errors import InvalidValueError, NotAllowedError
from magnetar.model.names import Domain

_DOMAINS: Final[Mapping[str, Sequence[Domain]]] = {
    "PERSISTENT": ("persistent",),
    "NON_PERSISTENT": ("non-persistent",),
    "ALL": ("non-persistent", "persistent"),
}


def routes(topics: TopicsPort, resources: Resources, settings: Settings, permissions: Permissions) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup()
    _namespace_routes(router, topics, resources, settings, permissions)
    _list_routes(router, topics, resources)
    return router


def _namespace_routes(
    router: RouteGroup,
    topics: TopicsPort,
    resources: Resources,
    settings: Settings,
    permissions: Permissions,
) -> None:
    namespaces = resources.namespaces

    @router.get("/admin/v2/namespaces/{tenant}")
    async def list_namespaces(tenant: PathText) -> Response:
        return answer(namespaces.of_tenant(tenant))

    @router.get(NAMESPACE)
    async def get_policies(tenant: PathText, namespace: PathText) -> Response:
        found = namespaces.policies(namespace_name(tenant, namespace))
        said = {"is_allow_auto_update_schema": settings.isAllowAutoUpdateSchemaEnabled}
        return answer({**said, **found})

    @router.put(NAMESPACE)
    async def create_namespace(tenant: PathText, namespace: PathText, request: Request) -> Response:
        wanted = await object_body(request)
        name = namespace_name(tenant, namespace)
        policies = None if wanted is None else checked(wanted, settings.clusterName)
        permissions.require(request, *asked_for(name, policies or {}), recorded=True)
        replicated = texts_of((policies or {}).get("replication_clusters"))
        if resources.tenants.exists(tenant):
            require_allowed_to_tenant(resources, tenant, replicated)
            require_own(settings.clusterName, replicated)
        if not namespaces.exists(name):
            # what was said about an earlier one while it was being deleted
            await resources.change_together(lambda: resources.placement.without_namespace(name))
        await namespaces.create(tenant, namespace, policies)
        return done()

    @router.delete(NAMESPACE)
    async def delete_namespace(tenant: PathText, namespace: PathText, force: Flag = False) -> Response:
        name = namespace_name(tenant, namespace)
        if force and not settings.forceDeleteNamespaceAllowed:
            raise NotAllowedError("Broker doesn't allow forced deletion of namespaces")
        if namespaces.exists(name) and (force or is_empty(topics, resources, name)):
            await remove_namespace(topics, resources, name)
        else:
            await namespaces.delete(name, has_topics=not is_empty(topics, resources, name))
        return done()


def _list_routes(router: RouteGroup, topics: TopicsPort, resources: Resources) -> None:
    namespaces = resources.namespaces

    @router.get(NAMESPACE + "/topics")
    async def list_topics(
        tenant: PathText, namespace: PathText, mode: str = "PERSISTENT", includeSystemTopic: Flag = False
    ) -> Response:
        name = namespace_name(tenant, namespace)
        namespaces.policies(name)
        if mode not in _DOMAINS:
            raise InvalidValueError(f"mode {mode} is not one of PERSISTENT, NON_PERSISTENT, ALL")
        return listed(topics.names_of(name, _DOMAINS[mode], system=includeSystemTopic))

    @router.get(NAMESPACE + "/bundles")
    async def get_bundles(tenant: PathText, namespace: PathText) -> Response:
        return answer(namespaces.policies(namespace_name(tenant, namespace))["bundles"])
