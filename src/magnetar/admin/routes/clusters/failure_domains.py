"""Failure domains: named groups of brokers of a cluster that may fail together."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from magnetar.admin.http.bodies import answer, done, object_body
from magnetar.admin.http.parameters import PathText
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.routes.clusters.existing_cluster import member_name, require_cluster
from magnetar.admin.values import coercion
from magnetar.admin.values.json_document import excerpt
from magnetar.metadata.resources import Resources
from magnetar.model.errors import ConflictError, InvalidValueError, NotFoundError
from magnetar.model.policies import Json, JsonObject


def routes(resources: Resources) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup("/admin/v2/clusters/{cluster}/failureDomains")
    placement = resources.placement

    @router.get("")
    async def list_failure_domains(cluster: PathText) -> Response:
        # Pulsar does not look at the cluster's name either
        return answer(placement.failure_domains(cluster))

    @router.get("/{domainName}")
    async def get_failure_domain(cluster: PathText, domainName: PathText) -> Response:
        require_cluster(resources, cluster)
        found = placement.failure_domains(cluster).get(domainName)
        if found is None:
            raise NotFoundError(f"Domain {domainName} for cluster {cluster} does not exist")
        return answer(found)

    @router.post("/{domainName}")
    async def set_failure_domain(cluster: PathText, domainName: PathText, request: Request) -> Response:
        domain = _domain(await object_body(request))
        require_cluster(resources, cluster)
        name = member_name(domainName, "a failure domain")
        await placement.set_failure_domain(cluster, name, domain, lambda all_: _require_free(all_, name, domain))
        return done()

    @router.delete("/{domainName}")
    async def delete_failure_domain(cluster: PathText, domainName: PathText) -> Response:
        require_cluster(resources, cluster)

        def check(domains: JsonObject) -> None:
            if domainName not in domains:
                raise NotFoundError(f"Domain-name {domainName} or cluster {cluster} does not exist")

        await placement.set_failure_domain(cluster, domainName, None, check)
        return done(200)

    return router


def _domain(body: JsonObject | None) -> JsonObject:
    """A failure domain: its brokers, each once, if any are given. Raises InvalidValueError."""
    if body is None:
        raise InvalidValueError('expected a failure domain such as {"brokers": ["host:8080"]}, got nothing')
    brokers = body.get("brokers")
    if brokers is None:
        return {}
    if not isinstance(brokers, list):
        raise InvalidValueError(f"expected brokers as a list of texts, got {excerpt(brokers)}")
    found: dict[str, None] = dict.fromkeys(coercion.text(broker, "a text in brokers") for broker in brokers)
    return {"brokers": [*found]}


def _require_free(domains: JsonObject, name: str, domain: JsonObject) -> None:
    """Raises ConflictError if one of the brokers is in another domain already."""
    wanted = set(_brokers(domain))
    for other, known in domains.items():
        twice = [broker for broker in _brokers(known) if broker in wanted]
        if other != name and twice:
            raise ConflictError(f"[{', '.join(twice)}] already exists in {other}")


def _brokers(domain: Json) -> list[str]:
    found = domain.get("brokers") if isinstance(domain, dict) else None
    return [broker for broker in found if isinstance(broker, str)] if isinstance(found, list) else []
