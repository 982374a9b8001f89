"""Peers of WebSockets in an asyncio test, made of the websockets library."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from magnetar.model.names import NamespaceName
from magnetar.model.policies import Json, JsonObject
from tests.support.real_broker import RealBroker

P = "/ws/v2/producer/persistent/public/default/"
C = "/ws/v2/consumer/persistent/public/default/"
R = "/ws/v2/reader/persistent/public/default/"
PROVIDER = "org.apache.pulsar.broker.authentication.AuthenticationProviderToken"


def url(broker: RealBroker, path: str) -> str:
    return broker.node.broker.service.web_service_url.replace("http", "ws", 1) + path


def opened(broker: RealBroker, path: str, **options: Any) -> Any:
    return connect(url(broker, path), compression=None, proxy=None, close_timeout=0.2, **options)


def message(number: int, size: int = 0) -> str:
    payload = base64.b64encode(b"%d" % number + b"x" * size).decode()
    return json.dumps({"payload": payload, "context": str(number)})


async def said(socket: ClientConnection) -> Any:
    return json.loads(await asyncio.wait_for(socket.recv(), 20))


async def refused(broker: RealBroker, path: str, **headers: str) -> tuple[int, str]:
    """The status of a handshake, and the reason if it is refused."""
    try:
        async with opened(broker, path, additional_headers=headers):
            return 101, ""
    except InvalidStatus as answer:
        return answer.response.status_code, json.loads(answer.response.body or b"{}")["reason"]


async def grant(broker: RealBroker, **roles: Json) -> None:
    """Give roles their actions on the namespace, and nobody else any."""
    service = broker.node.broker.service
    if not service.resources.namespaces.exists(NamespaceName.parse("public/default")):
        await service.resources.tenants.create("public", {"adminRoles": [], "allowedClusters": ["standalone"]})
        await service.resources.namespaces.create("public", "default")
    granted: JsonObject = {"namespace_auth": roles, "destination_auth": {}, "subscription_auth_roles": {}}
    await service.resources.namespaces.update(NamespaceName.parse("public/default"), auth_policies=granted)
    await service.grants_in_force()
