"""Who serves a topic, over HTTP (SEMANTICS 2.20, 14.15)."""

from __future__ import annotations

from bisect import bisect_right
from typing import Annotated
from zlib import crc32

from fastapi import APIRouter, Header, Query
from starlette.responses import PlainTextResponse, Response

from magnetar.admin.http.bodies import answer
from magnetar.admin.http.parameters import PathText, topic_name
from magnetar.admin.ports import BrokerPort
from magnetar.metadata.resources import Resources
from magnetar.model.errors import MagnetarError, ServiceNotReadyError
from magnetar.model.names import TopicName

PATH = "/lookup/v2/topic/{domain:domain}/{tenant}/{namespace}/{topic}"


def routes(broker: BrokerPort, resources: Resources) -> APIRouter:
    """All routes of this group."""
    router = APIRouter(tags=["lookup"])

    @router.get(PATH)
    async def lookup(
        domain: PathText,
        tenant: PathText,
        namespace: PathText,
        topic: PathText,
        listenerName: Annotated[str | None, Query()] = None,
        listener: Annotated[str | None, Header(alias="X-Pulsar-ListenerName")] = None,
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        resources.require_namespace(name)
        try:
            found = broker.lookup(name, listenerName or listener)
        except ServiceNotReadyError as error:
            # Pulsar has no better word for an unknown listener over HTTP than an internal error
            raise MagnetarError(f"\n --- An unexpected error occurred in the server ---\n\nMessage: {error}") from error
        return answer(
            {
                "brokerUrl": found.broker_url,
                "httpUrl": found.http_url,
                "nativeUrl": found.broker_url,
                "brokerUrlSsl": "",
            }
        )

    @router.get(PATH + "/bundle")
    async def bundle(domain: PathText, tenant: PathText, namespace: PathText, topic: PathText) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        return PlainTextResponse(bundle_of(resources, name), media_type="application/json")

    return router


def bundle_of(resources: Resources, topic: TopicName) -> str:
    """The piece of the hash space the name falls in, by CRC-32; everything is one piece for an unknown namespace."""
    if not resources.namespaces.exists(topic.namespace):
        return "0x00000000_0xffffffff"
    found = resources.namespaces.policies(topic.namespace)["bundles"]
    listed = found["boundaries"] if isinstance(found, dict) else []
    boundaries = [str(text) for text in listed] if isinstance(listed, list) else []
    place = bisect_right([int(text, 16) for text in boundaries], crc32(topic.fqn.encode()))
    place = min(place, len(boundaries) - 1)
    return f"{boundaries[place - 1]}_{boundaries[place]}"
