"""/admin/v2/resourcegroups: groups of namespaces that share rates, and which group a namespace is in (rule 14.6)."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from magnetar.admin.http.bodies import answer, done, object_body
from magnetar.admin.http.parameters import NAMESPACE, PathText, namespace_name
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.ports import TopicsPort
from magnetar.admin.values.policy_values import whole
from magnetar.config.setting_field import INT_MAX, LONG_MAX
from magnetar.metadata.resource_groups import GROUP_RATES
from magnetar.metadata.resources import Resources
from magnetar.model.errors import InvalidValueError, PreconditionFailedError
from magnetar.model.policies import JsonObject


def routes(topics: TopicsPort, resources: Resources) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup()
    groups = resources.resource_groups
    one = "/admin/v2/resourcegroups/{resourcegroup}"

    @router.get("/admin/v2/resourcegroups")
    async def list_resource_groups() -> Response:
        return answer(groups.names())

    @router.get(one)
    async def get_resource_group(resourcegroup: PathText) -> Response:
        return answer(groups.get(resourcegroup))

    @router.put(one)
    async def put_resource_group(resourcegroup: PathText, request: Request) -> Response:
        await groups.put(resourcegroup, _rates(await object_body(request)))
        await topics.policies_in_force()
        return done()

    @router.delete(one)
    async def delete_resource_group(resourcegroup: PathText) -> Response:
        groups.get(resourcegroup)
        namespaces = resources.namespaces
        if any(namespaces.policies(name).get("resource_group_name") == resourcegroup for name in namespaces.all()):
            raise PreconditionFailedError("ResourceGroup is in use")
        await groups.delete(resourcegroup)
        return done()

    _namespace_routes(router, topics, resources)
    return router


def _namespace_routes(router: RouteGroup, topics: TopicsPort, resources: Resources) -> None:
    path = NAMESPACE + "/resourcegroup"

    @router.get(path)
    async def get_namespace_resource_group(tenant: PathText, namespace: PathText) -> Response:
        found = resources.namespaces.policies(namespace_name(tenant, namespace)).get("resource_group_name")
        # the bare name, as Pulsar sends it: its tools print what they get
        return done(200) if found is None else PlainTextResponse(str(found), media_type="application/json")

    @router.post(path + "/{resourcegroup}")
    async def set_namespace_resource_group(tenant: PathText, namespace: PathText, resourcegroup: PathText) -> Response:
        name = namespace_name(tenant, namespace)
        resources.namespaces.policies(name)

        def joined(_: JsonObject) -> JsonObject:
            if not resources.resource_groups.exists(resourcegroup):
                raise PreconditionFailedError("ResourceGroup does not exist")
            return {"resource_group_name": resourcegroup}

        await resources.namespaces.change(name, joined)
        await topics.policies_in_force()
        return done()

    @router.delete(path)
    async def remove_namespace_resource_group(tenant: PathText, namespace: PathText) -> Response:
        await resources.namespaces.update(namespace_name(tenant, namespace), resource_group_name=None)
        await topics.policies_in_force()
        return done()


def _rates(body: JsonObject | None) -> JsonObject:
    """The rates that are given; others stay as they are. Raises InvalidValueError."""
    if body is None:
        raise InvalidValueError('expected a JSON object with rates, such as {"publishRateInMsgs": 1000}')
    return {
        rate: whole(body[rate], most=INT_MAX if rate.endswith("Msgs") else LONG_MAX)
        for rate in GROUP_RATES
        if body.get(rate) is not None
    }
