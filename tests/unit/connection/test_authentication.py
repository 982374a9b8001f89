"""Authentication on the wire, in a simulated broker: who may come in, under which role, and what others hear."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from magnetar.authorization.caller import Caller
from magnetar.config.settings import Settings
from magnetar.model.errors import ServerError
from magnetar.protocol import commands as c
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.rawclient import DisconnectedError, RawClient, RawClientError
from tests.sim.world import T, World, run_seed
from tests.support.signed_tokens import AUDIENCE, OTHER_SECRET, SECRET, forged, inline, signed

TOKEN_PROVIDER = "org.apache.pulsar.broker.authentication.AuthenticationProviderToken"
Talk = Callable[[World], Coroutine[Any, Any, None]]


def talk(simulation: Talk, **settings: Any) -> None:
    async def booted(world: World) -> None:
        await world.boot()
        await simulation(world)

    given = {
        "authenticationEnabled": True,
        "authenticationProviders": TOKEN_PROVIDER,
        "tokenSecretKey": inline(SECRET),
        **settings,
    }
    run_seed(booted, 1, settings=Settings(**given))


async def login(token: str | bytes, method: str | None = "token", **fields: Any) -> RawClient:
    client = await RawClient.open(HOST, PORT)
    data = token if isinstance(token, bytes) else token.encode()
    await client.connect(auth_method_name=method, auth_data=data, **fields)
    return client


async def refused(token: str | bytes, method: str | None = "token", **fields: Any) -> RawClientError:
    """The answer to a login, after which the connection is closed."""
    client = await RawClient.open(HOST, PORT)
    data = token if isinstance(token, bytes) else token.encode()
    with pytest.raises(RawClientError) as found:
        await client.connect(auth_method_name=method, auth_data=data, **fields)
    assert await client.lost is None
    return found.value


def callers(world: World) -> list[Caller]:
    return [listener.session.caller for listener in world.machine.broker.connections]


def counters(world: World) -> dict[str, tuple[int, int]]:
    authentication = world.machine.broker.service.authentication
    assert authentication is not None
    return authentication.counters()


def test_the_role_is_the_subject() -> None:
    """A token's ``sub`` is the role; a broken one is refused with one text (rules 12.1, 12.2)."""

    async def simulation(world: World) -> None:
        client = await login(signed({"sub": "alice"}))
        await client.producer(T)
        (caller,) = callers(world)
        assert (caller.role, caller.original_role, caller.method) == ("alice", None, "token")
        assert caller.address.startswith("/")
        (listener,) = world.machine.broker.connections
        login_of = listener.session.login
        assert login_of is not None
        assert login_of.peer.role == "alice"
        answer = await refused(signed({"sub": "alice"}, OTHER_SECRET))
        assert (answer.code, answer.message) == (ServerError.AuthenticationError, "Failed to authenticate")

    talk(simulation)


def test_forged_tokens_are_refused_with_the_same_text() -> None:
    async def simulation(world: World) -> None:
        count = 0
        for one in forged(world.machine.clock.now_ms() / 1000):
            if len(one.token) < 60_000:
                answer = await refused(one.token)
                assert (answer.code, answer.message) == (ServerError.AuthenticationError, "Failed to authenticate")
                count += 1
        assert count > 50
        assert not list(world.machine.broker.connections)

    talk(simulation, tokenAudienceClaim="aud", tokenAudience=AUDIENCE)


def test_clients_without_credentials() -> None:
    """A missing or unknown method is anonymous, if there is such a role; a bad token never is (rule 12.1)."""

    async def strict(world: World) -> None:
        for method in (None, "none", "basic", "athenz", "TOKEN", ""):
            assert (await refused(signed({"sub": "alice"}), method)).code is ServerError.AuthenticationError
        assert counters(world) == {"token": (0, 0), "anonymous": (0, 6)}

    async def open_to_all(world: World) -> None:
        for method in (None, "none", "basic", "athenz"):
            client = await login("admin:123456", method)
            assert callers(world)[0].role == "nobody"
            await client.close()
        assert (await refused("bad", "token")).code is ServerError.AuthenticationError
        assert counters(world) == {"token": (0, 1), "anonymous": (4, 0)}

    talk(strict)
    talk(open_to_all, anonymousUserRole="nobody")


def test_nobody_becomes_another() -> None:
    """A second CONNECT, and an AUTH_RESPONSE that nobody asked for, close the connection (rule 1.2.1)."""
    alice, admin = signed({"sub": "alice"}), signed({"sub": "admin"})

    async def simulation(world: World) -> None:
        for again in (
            c.CommandConnect("x", 21, "token", admin.encode()),
            c.CommandAuthResponse("x", c.AuthData("token", admin.encode()), 21),
            c.CommandAuthResponse("x", c.AuthData("token", alice.encode()), 21),
        ):
            client = await login(alice)
            (session,) = (listener.session for listener in world.machine.broker.connections)
            client.say(again, c.CommandProducer(T, 1, 1))
            with pytest.raises(DisconnectedError):
                await client.hear(c.CommandProducerSuccess)
            assert session.caller.role == "alice"

    talk(simulation)


def test_nothing_but_the_handshake_before_it() -> None:
    """Commands before CONNECT, or behind a refused one, are not carried out (rule 1.2.1)."""

    async def simulation(world: World) -> None:
        client = await RawClient.open(HOST, PORT)
        producer = c.CommandProducer(T, 1, 1)
        client.say(c.CommandConnect("x", 21, "token", b"bad"), producer)
        with pytest.raises(DisconnectedError):
            await client.hear(c.CommandProducerSuccess)
        client = await RawClient.open(HOST, PORT)
        client.say(producer)
        with pytest.raises(DisconnectedError):
            await client.hear(c.CommandProducerSuccess)
        assert world.machine.broker.service.topics == {}

    talk(simulation)


def test_original_principals() -> None:
    """A proxy names whom it speaks for, and nobody else does (rule 12.13)."""
    proxy, alice = signed({"sub": "proxy"}), signed({"sub": "alice"})

    async def simulation(world: World) -> None:
        client = await login(proxy, original_principal="alice")
        assert [(one.role, one.original_role) for one in callers(world)] == [("proxy", "alice")]
        await client.close()
        for token, fields in (
            (alice, {"original_principal": "bob"}),
            (alice, {"original_principal": "alice"}),
            (alice, {"proxy_version": "1"}),
            (proxy, {}),
            (proxy, {"original_principal": "proxy2"}),
            (proxy, {"original_principal": ""}),
            (proxy, {"original_principal": " \t"}),
            (proxy, {"original_principal": "alice\n"}),
            (proxy, {"original_principal": " alice"}),
            (proxy, {"original_principal": "a\x00b"}),
            (proxy, {"original_principal": "a" * 1025}),
        ):
            answer = await refused(token, **fields)
            assert (answer.code, answer.message) == (ServerError.AuthorizationError, "Invalid roles.")

    async def checked(world: World) -> None:
        fields: dict[str, Any] = {"original_principal": "mallory", "original_auth_method": "token"}
        client = await login(proxy, original_auth_data=alice, **fields)
        assert [(one.role, one.original_role) for one in callers(world)] == [("proxy", "alice")]
        await client.close()
        for data in ("bad", "", signed({"sub": "alice"}, OTHER_SECRET)):
            assert (await refused(proxy, original_auth_data=data, **fields)).code is ServerError.AuthenticationError

    talk(simulation, proxyRoles="proxy,proxy2")
    talk(checked, proxyRoles="proxy", authenticateOriginalAuthData=True)


def test_revoked_original_principals(tmp_path: Path) -> None:
    """A proxy speaks no longer for whom the revocation list names, on new connections and on open ones."""
    proxy = signed({"sub": "proxy"})
    revoked = tmp_path / "revoked"
    revoked.write_text("sub alice\n")

    async def simulation(world: World) -> None:
        answer = await refused(proxy, original_principal="alice")
        assert (answer.code, answer.message) == (ServerError.AuthenticationError, "Failed to authenticate")
        bob, carol = [await login(proxy, original_principal=name) for name in ("bob", "carol")]
        revoked.write_text("sub alice\nsub bob\n")
        await bob.lost
        assert [one.original_role for one in callers(world)] == ["carol"]
        await carol.close()

    talk(simulation, proxyRoles="proxy", tokenRevocationListFile=str(revoked))


def test_without_authentication_credentials_are_ignored() -> None:
    """Everything is accepted and nothing is looked at (rule 12.5)."""

    async def simulation(world: World) -> None:
        await login("bad")
        await login(b"\xff" * 100, "athenz", original_principal="x")
        assert {one.role for one in callers(world)} == {None}

    talk(simulation, authenticationEnabled=False)
