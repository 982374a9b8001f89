"""Tokens that name several roles (MultiRolesTokenAuthorizationProvider, decision 076): on the wire and over REST."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from magnetar.config.authorization_settings import MULTI_ROLES, PROVIDER
from magnetar.config.settings import Settings
from magnetar.model.names import NamespaceName
from magnetar.protocol import commands as c
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.rawclient import RawClient, RawClientError
from tests.sim.world import World, run_seed
from tests.support.real_broker import RealBroker, run_on_broker
from tests.support.roles import grant
from tests.support.signed_tokens import SECRET, inline, signed

T = "persistent://public/default/t"
SETTINGS: dict[str, Any] = {
    "authenticationEnabled": True,
    "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
    "tokenSecretKey": inline(SECRET), "tokenAuthClaim": "roles", "authorizationEnabled": True, "superUserRoles": "root",
    "proxyRoles": "proxy", "brokerClientAuthenticationPlugin": "any", "authenticateOriginalAuthData": True,
}  # fmt: skip


def token(*roles: str) -> bytes:
    return signed({"sub": "s", "roles": list(roles)}).encode()


async def client(*roles: str, **said: Any) -> RawClient:
    opened = await RawClient.open(HOST, PORT)
    await opened.connect(auth_method_name="token", auth_data=token(*roles), **said)
    return opened


async def may_produce(connected: RawClient) -> bool:
    try:
        await connected.producer(T)
    except RawClientError:
        return False
    return True


@pytest.mark.parametrize("provider", [MULTI_ROLES, PROVIDER])
def test_each_role_of_a_token_may_allow_it(provider: str) -> None:
    """A producer's, a superuser's; of a principal those of its own token, and never those of the proxy."""

    async def simulation(world: World) -> None:
        await world.boot()
        await grant(world.machine.broker.resources, namespace={"alice": ["produce"], "proxy": ["produce"]})
        all_count = provider == MULTI_ROLES
        assert await may_produce(await client("alice", "other"))
        assert not await may_produce(await client("nobody", "other"))
        assert await may_produce(await client("nobody", "alice")) == all_count
        assert await may_produce(await client("nobody", "other", "root")) == all_count

        async def through(*proxy: str, named: tuple[str, ...]) -> RawClient:
            data = token(*named).decode()
            return await client(
                *proxy, original_principal="nobody", original_auth_method="token", original_auth_data=data
            )

        assert await may_produce(await through("proxy", named=("nobody", "alice"))) == all_count
        assert not await may_produce(await through("proxy", "alice", "root", named=("nobody",)))

    run_seed(simulation, 1, settings=Settings(**SETTINGS, authorizationProvider=provider))


@pytest.mark.parametrize(
    ("roles", "kept"),
    [
        (("nobody", "alice", "other"), True),
        (("nobody", "other", "alice", "other"), True),
        (("nobody", "other"), False),
        (("nobody", "alice", "other", "more"), False),
    ],
)
def test_new_credentials_with_other_roles_end_the_connection(
    roles: tuple[str, ...], kept: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """What is open was allowed by a role that may be gone; their order allows nothing. Nobody did anything wrong."""

    async def simulation(world: World) -> None:
        await world.boot()
        await grant(world.machine.broker.resources, namespace={"alice": ["produce"]})
        connected = await client("nobody", "alice", "other")
        assert await may_produce(connected)
        (listener,) = world.machine.broker.connections
        listener.session.protocol.challenge()
        connected.say(c.CommandAuthResponse("x", c.AuthData("token", token(*roles)), 21))
        await asyncio.sleep(1)
        assert connected.lost.done() is not kept
        said = [line.levelname for line in caplog.records if "closing the connection" in line.getMessage()]
        assert said == ([] if kept else ["INFO"])

    caplog.set_level("INFO")
    run_seed(simulation, 1, settings=Settings(**SETTINGS, authorizationProvider=MULTI_ROLES))


@pytest.mark.parametrize("provider", [MULTI_ROLES, PROVIDER])
def test_over_rest_too(tmp_path: Path, provider: str) -> None:
    async def scenario(broker: RealBroker) -> None:
        def status(path: str, *roles: str) -> int:
            url = broker.node.broker.service.web_service_url + path
            request = urllib.request.Request(url, headers={"authorization": f"Bearer {token(*roles).decode()}"})
            try:
                with urllib.request.urlopen(request, timeout=20) as answered:
                    return int(answered.status)
            except urllib.error.HTTPError as refused:
                refused.close()
                return refused.code

        await grant(
            broker.node.broker.resources, NamespaceName.parse("public/default"), namespace={"alice": ["consume"]}
        )
        refused = (401, 403)
        allowed = (200,) if provider == MULTI_ROLES else refused
        for path, role in (("/admin/v2/persistent/public/default", "alice"), ("/admin/v2/tenants", "root")):
            assert await asyncio.to_thread(status, path, "nobody", role) in allowed
            assert await asyncio.to_thread(status, path, role, "nobody") == 200
            assert await asyncio.to_thread(status, path, "nobody", "other") in refused

    run_on_broker(tmp_path, scenario, **SETTINGS, authorizationProvider=provider)
