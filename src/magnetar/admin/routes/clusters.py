"""/admin/v2/clusters: clusters and their addresses (rule 11.2.1)."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from magnetar.admin.http.bodies import answer, done, object_body
from magnetar.admin.http.parameters import PathText
from magnetar.admin.values.json_document import excerpt
from magnetar.metadata.resources import Resources
from magnetar.model.errors import InvalidValueError
from magnetar.model.policies import JsonObject


def routes(resources: Resources) -> APIRouter:
    """Build the routes of this group."""
    router = APIRouter(prefix="/admin/v2/clusters", tags=["clusters"])
    clusters = resources.clusters

    @router.get("")
    async def list_clusters() -> Response:
        return answer(clusters.names())

    @router.get("/{cluster}")
    async def get_cluster(cluster: PathText) -> Response:
        return answer(clusters.get(cluster))

    @router.put("/{cluster}")
    async def create_cluster(cluster: PathText, request: Request) -> Response:
        await clusters.create(cluster, _data(await object_body(request)))
        return done(200)

    @router.post("/{cluster}")
    async def update_cluster(cluster: PathText, request: Request) -> Response:
        await clusters.update(cluster, _data(await object_body(request)))
        return done(200)

    @router.delete("/{cluster}")
    async def delete_cluster(cluster: PathText) -> Response:
        await clusters.delete(cluster)
        return done()

    return router


def _data(body: JsonObject | None) -> JsonObject:
    """Check the members of a cluster: texts, flags, numbers and lists of texts. Raises InvalidValueError."""
    for name, value in (body or {}).items():
        items = value if isinstance(value, list) else [value]
        if any(isinstance(item, list | dict) for item in items):
            raise InvalidValueError(
                f"expected a text, a flag or a list of texts as {excerpt(name)}, got {excerpt(value)}"
            )
    return body or {}
