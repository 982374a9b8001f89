"""Topic lookup over HTTP (rules 2.20, 14.15)."""

from __future__ import annotations

from typing import Annotated

from starlette.responses import PlainTextResponse, Response

from magnetar.admin.http.arguments import RequestParameter
from magnetar.admin.http.bodies import answer
from magnetar.admin.http.parameters import NameText, PathText, topic_name
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.ports import BrokerPort
from magnetar.admin.routes.namespaces.bundles import bundle_of
from magnetar.metadata.resources import Resources
from magnetar.model.errors import MagnetarError, ServiceNotReadyError

PATH = "/lookup/v2/topic/{domain:domain}/{tenant}/{namespace}/{topic}"


def routes(broker: BrokerPort, resources: Resources) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup()

    @router.get(PATH)
    async def lookup(
        domain: PathText,
        tenant: PathText,
        namespace: PathText,
        topic: NameText,
        listenerName: str | None = None,
        listener: Annotated[str | None, RequestParameter(name="X-Pulsar-ListenerName", header=True)] = None,
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        resources.require_namespace(name)
        try:
            found = broker.lookup(name, listenerName or listener)
        except ServiceNotReadyError as error:
            # over HTTP Pulsar answers an unknown listener with an internal error
            raise MagnetarError(f"\n --- An unexpected error occurred in the server ---\n\nMessage: {error}") from error
        urls = {
            "brokerUrl": found.broker_url,
            "brokerUrlTls": found.broker_url_tls,
            "httpUrl": found.http_url,
            "httpUrlTls": found.http_url_tls,
            "nativeUrl": found.broker_url,
        }
        return answer({**{name: url for name, url in urls.items() if url}, "brokerUrlSsl": ""})

    @router.get(PATH + "/bundle")
    async def bundle(domain: PathText, tenant: PathText, namespace: PathText, topic: NameText) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        return PlainTextResponse(bundle_of(resources, name), media_type="application/json")

    return router
