"""Isolation policies of a cluster: which brokers shall serve which namespaces, and what they say about this one.

They decide where several brokers serve a namespace. A broker that is alone serves everything, also what a policy would
give to another; so does Apache Pulsar's standalone.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from magnetar.admin.http.bodies import answer, done, object_body
from magnetar.admin.http.parameters import PathText
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.ports import BrokerPort
from magnetar.admin.routes.clusters.existing_cluster import member_name, require_cluster
from magnetar.admin.values.isolation import isolation_of, isolation_policy, with_policy
from magnetar.metadata.resources import Resources
from magnetar.model.errors import NotFoundError
from magnetar.model.policies import JsonObject


def routes(broker_port: BrokerPort, resources: Resources) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup("/admin/v2/clusters/{cluster}/namespaceIsolationPolicies")
    _read_routes(router, broker_port, resources)
    _write_routes(router, resources)
    return router


def _policies(resources: Resources, cluster: str) -> JsonObject:
    """Raises NotFoundError for a cluster that never had a policy."""
    found = resources.placement.isolation_policies(cluster)
    if found is None:
        raise NotFoundError(f"NamespaceIsolationPolicies for cluster {cluster} does not exist")
    return found


def _read_routes(router: RouteGroup, broker_port: BrokerPort, resources: Resources) -> None:
    @router.get("")
    async def list_isolation_policies(cluster: PathText) -> Response:
        if not resources.clusters.exists(cluster):
            raise NotFoundError(f"Cluster {cluster} does not exist.")
        return answer(_policies(resources, cluster))

    @router.get("/brokers")
    async def list_isolated_brokers(cluster: PathText) -> Response:
        require_cluster(resources, cluster)
        broker = broker_port.broker_id()
        return answer([isolation_of(_policies(resources, cluster), broker).as_json(broker)])

    @router.get("/brokers/{broker}")
    async def get_isolated_broker(cluster: PathText, broker: PathText) -> Response:
        require_cluster(resources, cluster)
        return answer(isolation_of(_policies(resources, cluster), broker).as_json(broker))

    @router.get("/{policyName}")
    async def get_isolation_policy(cluster: PathText, policyName: PathText) -> Response:
        require_cluster(resources, cluster)
        found = _policies(resources, cluster).get(policyName)
        if found is None:
            raise NotFoundError(f"Cannot find NamespaceIsolationPolicy {policyName} for cluster {cluster}")
        return answer(found)


def _write_routes(router: RouteGroup, resources: Resources) -> None:
    placement = resources.placement

    @router.post("/{policyName}")
    async def set_isolation_policy(cluster: PathText, policyName: PathText, request: Request) -> Response:
        body = await object_body(request)
        require_cluster(resources, cluster)
        name = member_name(policyName, "an isolation policy")
        policy = isolation_policy(name, body)
        await placement.change_isolation_policies(cluster, lambda policies: with_policy(policies, name, policy))
        return done()

    @router.delete("/{policyName}")
    async def delete_isolation_policy(cluster: PathText, policyName: PathText) -> Response:
        require_cluster(resources, cluster)
        await placement.change_isolation_policies(
            cluster, lambda policies: {name: policy for name, policy in policies.items() if name != policyName}
        )
        return done()
