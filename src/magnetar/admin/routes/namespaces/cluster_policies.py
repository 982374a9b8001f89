"""Policies of namespaces that name clusters or bookies: allowed clusters, migration, affinity groups.

One cluster with an embedded store has no use for them. They are kept and shown, because several clusters may share what
administrators write; what would lose messages silently is refused (decision 034).
"""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from magnetar.admin.http.authorization import Permissions
from magnetar.admin.http.bodies import answer, done, json_body, object_body
from magnetar.admin.http.parameters import NAMESPACE, PathText, namespace_name
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.routes.clusters.existing_cluster import require_cluster
from magnetar.admin.routes.namespaces.replication import require_allowed_to_tenant, texts_of
from magnetar.admin.routes.not_implemented import V1_ANTI_AFFINITY
from magnetar.admin.values import coercion
from magnetar.admin.values.json_document import excerpt
from magnetar.authorization.access import TenantAccess
from magnetar.metadata.clusters import GLOBAL
from magnetar.metadata.resources import Resources
from magnetar.model.errors import (
    InvalidValueError,
    NotFoundError,
    PreconditionFailedError,
)
from magnetar.model.names import NamespaceName
from magnetar.model.policies import Json, JsonObject

_GROUPS: Final = ("bookkeeperAffinityGroupPrimary", "bookkeeperAffinityGroupSecondary")
_AFFINITY: Final = NAMESPACE + "/persistence/bookieAffinity"


def routes(resources: Resources, permissions: Permissions) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup()
    _anti_affinity_route(router, resources, permissions)
    _allowed_routes(router, resources)
    _migration_route(router, resources)
    _affinity_routes(router, resources)
    return router


def _anti_affinity_route(router: RouteGroup, resources: Resources, permissions: Permissions) -> None:
    @router.get("/admin/v2/namespaces/{cluster}/antiAffinity/{group}")
    async def list_anti_affinity(
        cluster: PathText, group: PathText, request: Request, tenant: str | None = None
    ) -> Response:
        """The namespaces of a tenant that are in an anti-affinity group."""
        return found(cluster, group, request, tenant)

    @router.get(V1_ANTI_AFFINITY)
    async def list_anti_affinity_v1(
        cluster: PathText, group: PathText, request: Request, property: str | None = None
    ) -> Response:
        """List them at the path that the admin client of Apache Pulsar's Java tools still asks."""
        return found(cluster, group, request, property)

    def found(cluster: str, group: str, request: Request, tenant: str | None) -> Response:
        if not tenant:
            raise InvalidValueError("Tenant should not be null")
        permissions.require(request, TenantAccess(tenant))
        if not group.strip():
            raise PreconditionFailedError("anti-affinity group can't be empty.")
        require_cluster(resources, cluster)
        names = resources.namespaces.of_tenant(tenant) if resources.tenants.exists(tenant) else []
        return answer([name for name in names if _group(resources, name).lower() == group.lower()])


def _group(resources: Resources, name: str) -> str:
    found = (resources.namespaces.find(NamespaceName.parse(name)) or {}).get("antiAffinityGroup")
    return found if isinstance(found, str) else ""


def _allowed_routes(router: RouteGroup, resources: Resources) -> None:
    path, namespaces = NAMESPACE + "/allowedClusters", resources.namespaces

    @router.get(path)
    async def get_allowed_clusters(tenant: PathText, namespace: PathText) -> Response:
        return answer(namespaces.policies(namespace_name(tenant, namespace)).get("allowed_clusters") or [])

    @router.post(path)
    async def set_allowed_clusters(tenant: PathText, namespace: PathText, request: Request) -> Response:
        wanted = _clusters(await json_body(request))
        if GLOBAL in wanted:
            raise PreconditionFailedError("Cannot specify global in the list of allowed clusters")
        name = namespace_name(tenant, namespace)
        namespaces.policies(name)
        require_allowed_to_tenant(resources, tenant, wanted)

        def changed(policies: JsonObject) -> JsonObject:
            used = texts_of(policies.get("replication_clusters"))
            if not set(used) <= set(wanted):
                raise InvalidValueError(
                    f"Allowed clusters do not contain the replication cluster [{', '.join(used)}]. Please remove the "
                    "replication cluster if the cluster is not allowed for this namespace"
                )
            return {"allowed_clusters": [*wanted]}

        await namespaces.change(name, changed)
        return done(200)


def _clusters(body: Json) -> list[str]:
    if not isinstance(body, list):
        raise InvalidValueError(f"expected a list of clusters, got {excerpt(body)}")
    return list(dict.fromkeys(coercion.text(item, "the name of a cluster") for item in body))


def _migration_route(router: RouteGroup, resources: Resources) -> None:
    @router.post(NAMESPACE + "/migration")
    async def set_migration(tenant: PathText, namespace: PathText, request: Request) -> Response:
        """Mark the namespace as one whose clients go where their cluster is migrated to; see the clusters' route."""
        migrated = coercion.flag(await json_body(request))
        await resources.namespaces.update(namespace_name(tenant, namespace), migrated=migrated)
        return done()


def _affinity_routes(router: RouteGroup, resources: Resources) -> None:
    placement = resources.placement

    def existing(tenant: str, namespace: str) -> NamespaceName:
        name = namespace_name(tenant, namespace)
        if not resources.namespaces.exists(name):
            raise NotFoundError("Namespace not found")
        return name

    @router.get(_AFFINITY)
    async def get_bookie_affinity(tenant: PathText, namespace: PathText) -> Response:
        found = placement.bookie_affinity(existing(tenant, namespace))
        return done() if found is None else answer(found)

    @router.post(_AFFINITY)
    async def set_bookie_affinity(tenant: PathText, namespace: PathText, request: Request) -> Response:
        body = await object_body(request)
        group: JsonObject | None = None
        if body is not None:
            group = {
                name: coercion.text(body[name], f"a text as {name}") for name in _GROUPS if body.get(name) is not None
            }
        await placement.set_bookie_affinity(existing(tenant, namespace), group)
        return done()

    @router.delete(_AFFINITY)
    async def remove_bookie_affinity(tenant: PathText, namespace: PathText) -> Response:
        await placement.set_bookie_affinity(existing(tenant, namespace), None)
        return done()
