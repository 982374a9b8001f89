"""/admin/v2/clusters (SEMANTICS 11.2.1)."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from magnetar.admin.bodies import answer, done, object_body
from magnetar.admin.parameters import PathText
from magnetar.admin.ports import Admin


def routes(admin: Admin) -> APIRouter:
    """All routes of this group."""
    router = APIRouter(prefix="/admin/v2/clusters", tags=["clusters"])
    clusters = admin.resources.clusters

    @router.get("")
    async def list_clusters() -> Response:
        return answer(clusters.names())

    @router.get("/{cluster}")
    async def get_cluster(cluster: PathText) -> Response:
        return answer(clusters.get(cluster))

    @router.put("/{cluster}")
    async def create_cluster(cluster: PathText, request: Request) -> Response:
        clusters.create(cluster, await object_body(request) or {})
        return done(200)

    @router.post("/{cluster}")
    async def update_cluster(cluster: PathText, request: Request) -> Response:
        clusters.update(cluster, await object_body(request) or {})
        return done(200)

    @router.delete("/{cluster}")
    async def delete_cluster(cluster: PathText) -> Response:
        clusters.delete(cluster)
        return done()

    return router
