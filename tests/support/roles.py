"""Clients with roles: a broker that believes everybody's word, and grants of its default namespace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from magnetar.app.node import Broker
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.names import NamespaceName
from magnetar.model.policies import Json
from magnetar.security.authentication.provider import Credentials
from magnetar.security.authentication.service import AuthenticationService
from magnetar.security.identity import Identity
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.rawclient import RawClient

METHOD = "word"
SETTINGS = Settings(
    authorizationEnabled=True, superUserRoles="root", proxyRoles="proxy", transactionCoordinatorEnabled=True,
    brokerClientAuthenticationPlugin="any",
)  # fmt: skip
"""With a plugin, so that the tenant public is there."""
DEFAULT = NamespaceName.parse("public/default")


class ByWord:
    """The authentication provider that believes everybody's word: the role is what the client says."""

    method = METHOD

    async def authenticate(self, credentials: Credentials) -> Identity:
        return Identity(credentials.data.decode(), METHOD)

    def still_valid(self, identity: Identity) -> bool:
        return True

    async def refresh(self) -> bool:
        return False

    async def close(self) -> None: ...


def believing(broker: Broker) -> None:
    """Let the broker believe everybody."""
    proxies = frozenset(broker.settings.proxy_roles)
    broker.service.authentication = AuthenticationService([ByWord()], broker.service.clock, "", proxies)


async def client_of(role: str, original: str | None = None, patience_s: float = 8.0) -> RawClient:
    """A connected client with that role, in a simulated world."""
    client = await RawClient.open(HOST, PORT, patience_s=patience_s)
    await client.connect(auth_method_name=METHOD, auth_data=role.encode(), original_principal=original)
    return client


def policies_of(
    namespace: dict[str, list[str]] | None = None,
    topics: dict[str, dict[str, list[str]]] | None = None,
    subscriptions: dict[str, list[str]] | None = None,
) -> Json:
    """``auth_policies`` of a namespace with these grants."""
    named: dict[str, Any] = {
        "namespace_auth": namespace or {},
        "destination_auth": topics or {},
        "subscription_auth_roles": subscriptions or {},
    }
    return named


async def grant(resources: Resources, name: NamespaceName = DEFAULT, mode: str = "None", **grants: Any) -> None:
    """Replace all grants of a namespace, as REST does it."""
    await resources.namespaces.update(name, auth_policies=policies_of(**grants), subscription_auth_mode=mode)


def both(*tampers: Callable[[Broker], None]) -> Callable[[Broker], None]:
    """Do one after the other."""

    def tamper(broker: Broker) -> None:
        for one in tampers:
            one(broker)

    return tamper
