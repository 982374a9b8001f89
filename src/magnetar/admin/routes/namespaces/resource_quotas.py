"""Resource quotas of bundles: data for a load balancer, which one broker does not need (rule 11.3.8)."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from magnetar.admin.http.bodies import answer, done, object_body
from magnetar.admin.http.parameters import PathText, namespace_name
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.routes.namespaces.bundles import existing_bundle
from magnetar.admin.values.resource_quota import resource_quota
from magnetar.metadata.resources import Resources
from magnetar.model.errors import NotFoundError
from magnetar.model.names import NamespaceName


def routes(resources: Resources) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup("/admin/v2/resource-quotas")
    one, placement = "/{tenant}/{namespace}/{bundle}", resources.placement

    def named(tenant: str, namespace: str, bundle: str) -> tuple[NamespaceName, str]:
        name = namespace_name(tenant, namespace)
        return name, existing_bundle(resources, name, bundle)

    @router.get("")
    async def get_default_quota() -> Response:
        return answer(placement.default_quota())

    @router.post("")
    async def set_default_quota(request: Request) -> Response:
        await placement.set_default_quota(resource_quota(await object_body(request)))
        return done()

    @router.get(one)
    async def get_quota(tenant: PathText, namespace: PathText, bundle: PathText) -> Response:
        found = placement.quota(*named(tenant, namespace, bundle))
        return answer(placement.default_quota() if found is None else found)

    @router.post(one)
    async def set_quota(tenant: PathText, namespace: PathText, bundle: PathText, request: Request) -> Response:
        quota = resource_quota(await object_body(request))
        await placement.set_quota(*named(tenant, namespace, bundle), quota)
        return done()

    @router.delete(one)
    async def remove_quota(tenant: PathText, namespace: PathText, bundle: PathText) -> Response:
        name, found = named(tenant, namespace, bundle)
        if placement.quota(name, found) is None:
            raise NotFoundError(f"path /loadbalance/resource-quota/{name}/{found} not found.")
        await placement.set_quota(name, found, None)
        return done()

    return router
