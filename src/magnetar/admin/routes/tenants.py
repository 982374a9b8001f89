"""/admin/v2/tenants: tenants with their roles and clusters (rule 11.2.3)."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from magnetar.admin.http.bodies import answer, done, object_body
from magnetar.admin.http.parameters import Flag, PathText
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.ports import TopicsPort
from magnetar.admin.routes.half_done import half_done
from magnetar.admin.routes.namespaces.removal import remove_namespace
from magnetar.admin.values.coercion import text
from magnetar.admin.values.grants import role_name
from magnetar.admin.values.json_document import excerpt
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.errors import InvalidValueError, NotAllowedError
from magnetar.model.names import NamespaceName
from magnetar.model.policies import JsonObject


def routes(topics: TopicsPort, resources: Resources, settings: Settings) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup("/admin/v2/tenants")
    tenants = resources.tenants

    @router.get("")
    async def list_tenants() -> Response:
        return answer(tenants.names())

    @router.get("/{tenant}")
    async def get_tenant(tenant: PathText) -> Response:
        return answer(tenants.get(tenant))

    @router.put("/{tenant}")
    async def create_tenant(tenant: PathText, request: Request) -> Response:
        await tenants.create(tenant, _info(await object_body(request)))
        return done()

    @router.post("/{tenant}")
    async def update_tenant(tenant: PathText, request: Request) -> Response:
        await tenants.update(tenant, _info(await object_body(request)))
        await topics.policies_in_force()
        return done()

    @router.delete("/{tenant}")
    async def delete_tenant(tenant: PathText, force: Flag = False) -> Response:
        if force and not settings.forceDeleteTenantAllowed:
            raise NotAllowedError("Broker doesn't allow forced deletion of tenants")
        names, gone = _namespaces(resources, tenant) if force else [], 0
        with half_done(lambda: f"{gone} of {len(names)} namespaces of {tenant} are deleted" if gone else ""):
            for name in names:
                await remove_namespace(topics, resources, NamespaceName.parse(name))
                gone += 1
            # also one that was made while the others went
            await tenants.delete(tenant, bool(_namespaces(resources, tenant)))
        return done()

    return router


def _namespaces(resources: Resources, tenant: str) -> list[str]:
    return resources.namespaces.of_tenant(tenant) if resources.tenants.exists(tenant) else []


def _info(body: JsonObject | None) -> JsonObject | None:
    """Check that roles and clusters are lists of texts. Raises InvalidValueError."""
    if body is None:
        return None
    found: JsonObject = {}
    for name in ("adminRoles", "allowedClusters"):
        given = body.get(name)
        if given is not None and not isinstance(given, list):
            raise InvalidValueError(f"expected {name} as a list of texts, got {excerpt(given)}")
        found[name] = [_role_or_cluster(text(item, f"a text in {name}"), name) for item in given or ()]
    return found


def _role_or_cluster(found: str, name: str) -> str:
    # white space around it, or nothing else, is refused by the metadata with Pulsar's text
    return (
        role_name(found, "a role in adminRoles") if name == "adminRoles" and found and found == found.strip() else found
    )
