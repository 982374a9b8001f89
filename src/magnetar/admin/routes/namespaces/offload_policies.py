"""Offload policies of namespaces, and what lies in the object store (docs/offload.md)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import Response

from magnetar.admin.http.bodies import Streamed, answer, done, json_body
from magnetar.admin.http.parameters import NAMESPACE, PathText, namespace_name
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.ports import OffloadsPort, TopicsPort
from magnetar.admin.values import offload_policies
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.policies import JsonObject


def routes(topics: TopicsPort, offloads: OffloadsPort, resources: Resources, settings: Settings) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup()

    @router.get(NAMESPACE + "/offloadPolicies")
    async def get_offload_policies(tenant: PathText, namespace: PathText) -> Response:
        found = offload_policies.of_namespace(resources.namespaces.policies(namespace_name(tenant, namespace)))
        return done(200) if found is None else answer(found)

    @router.post(NAMESPACE + "/offloadPolicies")
    async def set_offload_policies(tenant: PathText, namespace: PathText, request: Request) -> Response:
        name = namespace_name(tenant, namespace)
        body = await json_body(request)
        resources.namespaces.policies(name)
        policy = offload_policies.checked(body, settings.offloadUrl)
        await resources.namespaces.update(name, **offload_policies.to_namespace(policy))
        await topics.policies_in_force()
        return done()

    @router.delete(NAMESPACE + "/removeOffloadPolicies")
    async def remove_offload_policies(tenant: PathText, namespace: PathText) -> Response:
        name = namespace_name(tenant, namespace)
        keys = ("offload_policies", *offload_policies.THRESHOLDS.values())
        await resources.namespaces.update(name, **dict.fromkeys(keys))
        await topics.policies_in_force()
        return done()

    @router.get(NAMESPACE + "/scanOffloadedLedgers")
    async def scan_offloaded_ledgers(tenant: PathText, namespace: PathText) -> Response:
        name = namespace_name(tenant, namespace)
        resources.namespaces.policies(name)
        return Streamed(_scanned(offloads.scan(name)), media_type="application/json")

    return router


async def _scanned(objects: AsyncIterator[JsonObject]) -> AsyncIterator[str]:
    total, errors, before = 0, 0, '{"objects":['
    async for one in objects:
        yield before + json.dumps(one, separators=(",", ":"))
        total, errors, before = total + 1, errors + (one["status"] != "OK"), ","
    yield f'{before if not total else ""}],"total":{total},"errors":{errors},"unknown":0}}'
