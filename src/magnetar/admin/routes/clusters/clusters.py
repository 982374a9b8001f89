"""/admin/v2/clusters: clusters, their addresses, their peers, and where their clients shall go (rule 11.2.1)."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from magnetar.admin.http.bodies import answer, done, json_body, object_body
from magnetar.admin.http.parameters import Flag, PathText
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.values import coercion
from magnetar.admin.values.json_document import excerpt
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.errors import InvalidValueError, NotAvailableError, NotFoundError, PreconditionFailedError
from magnetar.model.policies import Json, JsonObject

_URLS = ("serviceUrl", "serviceUrlTls", "brokerServiceUrl", "brokerServiceUrlTls")


def routes(resources: Resources, settings: Settings) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup("/admin/v2/clusters")
    _cluster_routes(router, resources)
    _peer_routes(router, resources)
    _migration_routes(router, resources, settings)
    return router


def _cluster_routes(router: RouteGroup, resources: Resources) -> None:
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
        clusters.get(cluster)
        if resources.placement.isolation_policies(cluster):
            raise PreconditionFailedError("Cluster not empty")
        await resources.delete_cluster(cluster)
        return done()


def _peer_routes(router: RouteGroup, resources: Resources) -> None:
    clusters = resources.clusters

    @router.get("/{cluster}/peers")
    async def get_peers(cluster: PathText) -> Response:
        found = clusters.get(cluster).get("peerClusterNames")
        return done(200) if found is None else answer(found)

    @router.post("/{cluster}/peers")
    async def set_peers(cluster: PathText, request: Request) -> Response:
        await clusters.set_peers(cluster, _names(await json_body(request)))
        return done()


def _migration_routes(router: RouteGroup, resources: Resources, settings: Settings) -> None:
    clusters = resources.clusters

    @router.get("/{cluster}/migrate")
    async def get_migration(cluster: PathText) -> Response:
        found = clusters.migration(cluster)
        if found is None:
            raise NotFoundError("Cluster does not exist")
        return answer(found)

    @router.post("/{cluster}/migrate")
    async def set_migration(cluster: PathText, request: Request, migrated: Flag = False) -> Response:
        body = await object_body(request)
        urls: JsonObject = {
            name: coercion.text(body[name], f"a text as {name}")
            for name in _URLS
            if body and body.get(name) is not None
        }
        if migrated and not urls:
            raise InvalidValueError("Cluster url must not be empty")
        clusters.get(cluster)
        if cluster == settings.clusterName and urls:
            raise NotAvailableError(
                f"magnetar does not lead clients of its own cluster, {cluster}, to another one: give them the other "
                "address instead"
            )
        shown: JsonObject = {} if body is None else {"migratedClusterUrl": {**urls, "empty": not urls}}
        await clusters.set_migration(cluster, {"migrated": migrated, **shown})
        return done(200)


def _data(body: JsonObject | None) -> JsonObject:
    """Check the members of a cluster: texts, flags, numbers and lists of texts. Raises InvalidValueError."""
    if body is None:
        raise InvalidValueError("cluster data is required")
    for name, value in body.items():
        items = value if isinstance(value, list) else [value]
        if any(isinstance(item, list | dict) for item in items):
            raise InvalidValueError(
                f"expected a text, a flag or a list of texts as {excerpt(name)}, got {excerpt(value)}"
            )
    return body


def _names(body: Json) -> list[str] | None:
    """A list of clusters, each once, or None to remove it. Raises InvalidValueError."""
    if body is None:
        return None
    if not isinstance(body, list):
        raise InvalidValueError(f"expected a list of clusters, got {excerpt(body)}")
    return list(dict.fromkeys(coercion.text(name, "the name of a cluster") for name in body))
