"""The REST application of one broker: every group of routes, errors to answers, and what stands around them.

The order of the groups counts: the first route that matches a path takes it, and the last one takes all that is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from starlette.types import ASGIApp, Receive, Scope, Send

from magnetar.admin.http import docs_page
from magnetar.admin.http.authentication import AuthenticationCheck
from magnetar.admin.http.authorization import Permissions, guard
from magnetar.admin.http.bodies import HeadRequests
from magnetar.admin.http.encoded_path import EncodedPath, path_as_sent
from magnetar.admin.http.error_responses import ErrorAnswers
from magnetar.admin.http.origins import HostNames, OriginCheck
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.http.router import RestRoute, RestRouter
from magnetar.admin.ports import BrokerPorts
from magnetar.admin.routes import (
    broker_operations,
    brokers,
    lookups,
    not_implemented,
    permission_explanations,
    produce,
    resource_groups,
    schemas,
    tenants,
    transactions,
)
from magnetar.admin.routes.broker_stats import broker_stats
from magnetar.admin.routes.clusters import bookies, clusters, failure_domains, isolation_policies
from magnetar.admin.routes.metrics import scrape
from magnetar.admin.routes.namespaces import (
    bundle_operations,
    cluster_policies,
    namespace_operations,
    namespace_policies,
    namespaces,
    resource_quotas,
)
from magnetar.admin.routes.namespaces import offload_policies as namespace_offload_policies
from magnetar.admin.routes.namespaces import permissions as namespace_permissions
from magnetar.admin.routes.topics import (
    backlog_quotas,
    compaction,
    cursors,
    explanations,
    ledger_info,
    lifecycle,
    messages,
    offload,
    partitions,
    statistics,
    subscriptions,
    topic_policies,
    topic_properties,
    topics,
)
from magnetar.admin.routes.topics import permissions as topic_permissions
from magnetar.admin.websocket import routes as websocket
from magnetar.admin.websocket.upgrade import Upgrades
from magnetar.authorization.authorizer import Authorizer
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.security.authentication.service import AuthenticationService


class RestApplication:
    """The routes, and what a request passes on its way to them."""

    def __init__(self, routes: Sequence[RestRoute], entered: ASGIApp) -> None:
        self.routes = routes
        self._entered = entered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await self._entered(scope, receive, send)


def create_app(
    ports: BrokerPorts,
    resources: Resources,
    settings: Settings,
    authentication: AuthenticationService | None = None,
    authorizer: Authorizer | None = None,
    traced: Callable[[ASGIApp], ASGIApp] | None = None,
) -> RestApplication:
    """The REST interface of one broker; its OpenAPI description is at /openapi.json.

    ``authentication``: who judges credentials; ``None``: no client has to show any. ``authorizer``: who may do what;
    ``None``: everybody everything. ``traced``: what notes each request, authenticated or not. Raises LookupError for a
    route that the permission table does not know.
    """
    documents = docs_page.Documents(authentication=authentication is not None)
    groups = [*_groups(ports, resources, settings, Permissions(authorizer)), docs_page.routes(documents)]
    last = not_implemented.route()
    routes = [*(route for group in groups for route in group.routes), last]
    if authorizer is not None:
        guard(routes, authorizer)
    # from here on each stands around the one before
    router = RestRouter(routes)
    app: ASGIApp = ErrorAnswers(router)
    if authentication is not None:
        app = AuthenticationCheck(
            app,
            service=authentication,
            authorizer=authorizer,
            open_metrics=not settings.authenticateMetricsEndpoint,
        )
    if traced is not None:
        app = traced(app)
    app = HeadRequests(EncodedPath(app))

    def does_nothing(scope: Scope) -> bool:
        return router.route_of(scope["method"], path_as_sent(scope)) is last

    app = OriginCheck(app, HostNames.of(settings), does_nothing)
    return RestApplication(routes, Upgrades(app))


def _groups(
    ports: BrokerPorts, resources: Resources, settings: Settings, permissions: Permissions
) -> Iterator[RouteGroup]:
    """All groups of routes, in the order in which they are asked whether a path is theirs."""
    yield brokers.routes(ports.broker, ports.topics, resources.dynamic_configuration, settings)
    yield broker_operations.routes(ports.broker, ports.control, resources, settings)
    yield clusters.routes(resources, settings)
    yield failure_domains.routes(resources)
    yield isolation_policies.routes(ports.broker, resources)
    yield resource_quotas.routes(resources)
    yield bookies.routes()
    yield tenants.routes(ports.topics, resources, settings)
    # before all with a word after a parameter: POST .../permissions/clearBacklog grants to the role of that name
    yield namespace_permissions.routes(ports.topics, resources, permissions)
    yield resource_groups.routes(ports.topics, resources)
    yield topic_permissions.routes(ports.topics, resources, settings)
    yield namespaces.routes(ports.topics, resources, settings, permissions)
    yield cluster_policies.routes(resources, permissions)
    yield namespace_policies.routes(ports.topics, resources, settings)
    yield backlog_quotas.routes(ports.topics, resources, settings)
    yield namespace_offload_policies.routes(ports.topics, ports.offloads, resources, settings)
    yield topic_policies.routes(ports.topics, resources, settings)
    yield topics.routes(ports.topics, ports.messages, resources)
    yield partitions.routes(ports.topics, resources)
    yield schemas.routes(ports.topics, ports.schemas, resources, permissions)
    yield lifecycle.routes(ports.topics, ports.operations, resources)
    yield topic_properties.routes(ports.topics, ports.operations, resources)
    yield namespace_operations.routes(ports.topics, ports.subscriptions, resources, permissions)
    yield cursors.routes(ports.topics, ports.subscriptions, resources, permissions)
    yield subscriptions.routes(ports.topics, ports.subscriptions, resources, settings)
    yield explanations.routes(ports.topics, ports.statistics, resources)
    yield statistics.routes(ports.topics, ports.statistics, resources)
    yield ledger_info.routes(ports.topics, ports.statistics, resources)
    yield transactions.routes(ports.transactions, permissions)
    yield compaction.routes(ports.topics, ports.operations, ports.offloads, resources)
    yield offload.routes(ports.topics, ports.offloads, resources)
    yield permission_explanations.routes(ports.topics, resources, settings, permissions)
    # after all with a word in the place of a bundle
    yield bundle_operations.routes(ports.topics, ports.broker, resources)
    yield lookups.routes(ports.broker, resources)
    yield messages.routes(ports.topics, ports.messages, ports.statistics, resources)
    yield produce.routes(ports.topics, ports.schemas, ports.clients, resources, settings)
    yield broker_stats.routes(ports.broker, ports.statistics, resources, settings)
    yield websocket.routes(ports.clients, settings, permissions)
    yield scrape.routes(ports.broker, resources, settings)
