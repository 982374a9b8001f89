"""Credentials expire, are renewed and revoked while messages flow: nothing is lost, and nobody leaves wrongly."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from magnetar.app.node import Broker
from magnetar.broker.connection.credential_checks import REFRESH
from magnetar.broker.connection.handlers import handshake
from magnetar.broker.connection.login import Login
from magnetar.broker.connection.session import Session
from magnetar.config.settings import Settings
from magnetar.model.errors import MagnetarError, ServerError
from magnetar.protocol import commands as c
from magnetar.security.authentication.revocation_list import CHECK_SECONDS
from magnetar.security.identity import Identity
from magnetar.testing.broker import HOST, PORT, Tamper
from magnetar.testing.rawclient import DisconnectedError, RawClient, RawClientError, RawProducer, payload_of
from tests.sim.world import T, World, caught, run_seed, run_seeds
from tests.support.signed_tokens import SECRET, inline, signed

CHECK_S = 60
LIFE_S = 150
TOKEN_PROVIDER = "org.apache.pulsar.broker.authentication.AuthenticationProviderToken"
SETTINGS: dict[str, Any] = {
    "authenticationEnabled": True,
    "authenticationProviders": TOKEN_PROVIDER,
    "tokenSecretKey": inline(SECRET),
    "keepAliveIntervalSeconds": 3600,
}
RENEWS = c.FeatureFlags(supports_auth_refresh=True)


def token(world: World, role: str = "alice", life_s: float = LIFE_S, **claims: Any) -> bytes:
    now = world.machine.clock.now_ms() / 1000
    return signed({"sub": role, "exp": now + life_s, **claims}).encode()


async def login(world: World, data: bytes, **fields: Any) -> RawClient:
    client = await RawClient.open(HOST, PORT)
    client.patience_s = 10 * CHECK_S
    await client.connect(auth_method_name="token", auth_data=data, **{"feature_flags": RENEWS, **fields})
    return client


async def challenged(client: RawClient) -> c.CommandAuthChallenge:
    return await client.hear(c.CommandAuthChallenge)


def renewing(world: World, client: RawClient) -> None:
    """Let a client answer each challenge as official ones do."""

    client.on_command = partial(answer_as, world, client, "alice")


def answer_as(world: World, client: RawClient, role: str, command: c.Command) -> None:
    if isinstance(command, c.CommandAuthChallenge):
        client.say(c.CommandAuthResponse("x", c.AuthData("token", token(world, role)), 21))


def run(simulation: Any, **settings: Any) -> None:
    async def booted(world: World) -> None:
        await world.boot()
        await simulation(world)

    run_seed(booted, 1, settings=Settings(**{**SETTINGS, **settings}))


async def flow(world: World) -> None:
    """Messages flow for ten lives of a token: all of them arrive once and in order, on the first connections."""
    await world.boot()
    sender, receiver = await login(world, token(world)), await login(world, token(world))
    renewing(world, sender)
    renewing(world, receiver)
    producer = await sender.producer(T, "p")
    consumer = await receiver.subscribe(T, "s")
    consumer.flow(1000)
    loop = asyncio.get_running_loop()
    end = loop.time() + 10 * LIFE_S
    sent = 0
    got: list[bytes] = []
    while loop.time() < end:
        await producer.publish(str(sent).encode())
        sent += 1
        got.append(payload_of((await consumer.receive()).entry))
        await asyncio.sleep(world.rng.uniform(1, 20))
    assert got == [str(number).encode() for number in range(sent)]
    assert sent > 50
    asked = len(sender.heard(c.CommandAuthChallenge))
    assert 4 <= asked <= 10
    assert not sender.lost.done()
    assert not receiver.lost.done()


def test_messages_flow_while_credentials_expire() -> None:
    """Expired credentials are renewed on the open connection (rule 12.6)."""
    run_seeds(flow, 5, settings=Settings(**SETTINGS))


def test_a_challenge_and_its_answers() -> None:
    """Expiry is noticed at the next look; an answer in time keeps the connection, another role does not (rule 12.6)."""

    async def simulation(world: World) -> None:
        loop = asyncio.get_running_loop()
        client = await login(world, token(world, life_s=LIFE_S))
        begun = loop.time()
        asked = await challenged(client)
        assert LIFE_S <= loop.time() - begun <= LIFE_S + CHECK_S + 1
        assert asked.challenge == c.AuthData("token", REFRESH)
        assert asked.protocol_version == 21
        client.say(c.CommandAuthResponse("x", c.AuthData("token", token(world)), 21))
        await asyncio.sleep(2 * CHECK_S)
        assert not client.heard(c.CommandAuthChallenge)
        await challenged(client)
        (session,) = (listener.session for listener in world.machine.broker.connections)
        asked_again = loop.time()
        client.say(c.CommandAuthResponse("x", c.AuthData("token", token(world, "admin")), 21))
        assert await client.lost is None
        assert loop.time() - asked_again < 1
        assert session.caller.role == "alice"

    run(simulation)


@pytest.mark.parametrize("answer", ["expired", "bad", "empty", "none at all"])
def test_answers_that_end_the_connection(answer: str) -> None:
    async def simulation(world: World) -> None:
        data = token(world)
        client = await login(world, data)
        await challenged(client)
        asked = asyncio.get_running_loop().time()
        if answer == "none at all":
            assert await client.lost is None
            assert CHECK_S - 1 <= asyncio.get_running_loop().time() - asked <= CHECK_S + 1
            return
        response = {"expired": c.AuthData("token", data), "bad": c.AuthData("token", b"bad"), "empty": None}[answer]
        client.say(c.CommandAuthResponse("x", response, 21))
        assert await client.lost is None
        errors = client.heard(c.CommandError)
        if answer == "empty":
            assert errors == []
        else:
            assert errors == [c.CommandError(-1, ServerError.AuthenticationError, "Failed to authenticate")]

    run(simulation)


def test_clients_that_cannot_renew() -> None:
    """An old client, and a proxy that forwards no credentials, are closed instead (rule 12.6)."""

    async def simulation(world: World) -> None:
        old = await login(world, token(world), feature_flags=None)
        proxy = await login(world, token(world, "proxy"), original_principal="alice")
        for client in (old, proxy):
            assert await client.lost is None
            assert client.heard(c.CommandAuthChallenge) == []

    run(simulation, proxyRoles="proxy")


def test_forwarded_credentials_are_renewed() -> None:
    """A proxy that forwards them is asked for those of the original principal (rules 12.6, 12.13)."""

    async def simulation(world: World) -> None:
        client = await login(
            world,
            token(world, "proxy"),
            original_principal="alice",
            original_auth_data=token(world).decode(),
            original_auth_method="token",
        )
        for _ in range(2):
            await challenged(client)
            client.say(c.CommandAuthResponse("x", c.AuthData("token", token(world)), 21))
        await challenged(client)
        asked = asyncio.get_running_loop().time()
        client.say(c.CommandAuthResponse("x", c.AuthData("token", token(world, "proxy")), 21))
        assert await client.lost is None
        assert asyncio.get_running_loop().time() - asked < 1

    run(simulation, proxyRoles="proxy", authenticateOriginalAuthData=True)


def test_clocks_may_differ() -> None:
    """A token counts for the allowed skew longer, on open connections as at the handshake."""

    async def simulation(world: World) -> None:
        client = await login(world, token(world, life_s=-30))
        begun = asyncio.get_running_loop().time()
        await challenged(client)
        assert 300 - 31 <= asyncio.get_running_loop().time() - begun <= 300 + CHECK_S

    run(simulation, tokenAllowedClockSkewSeconds=300)


def revoke(world: World, *entries: str) -> None:
    Path(world.settings.tokenRevocationListFile).write_text("".join(f"{entry}\n" for entry in entries))


async def publish(world: World, producer: RawProducer, number: int) -> None:
    for _ in range(number):
        await producer.publish(b"more")
        await asyncio.sleep(world.rng.uniform(0.1, 0.9))


async def revocation(world: World) -> None:
    """A revoked token is refused and closed within seconds; others go on, and a new token comes in."""
    revoke(world)
    await world.boot()
    stolen, fresh = token(world, jti="1", life_s=9999), token(world, jti="2", life_s=9999)
    thief, owner = await login(world, stolen), await login(world, fresh)
    producer = await owner.producer(T, "p")
    await publish(world, producer, world.rng.randint(0, 30))
    assert not thief.lost.done()
    revoke(world, "jti 1")
    begun = world.loop.time()
    world.start(publish(world, producer, 30))
    async with asyncio.timeout(60):
        await asyncio.shield(thief.lost)
    assert world.loop.time() - begun < CHECK_SECONDS + 1
    with pytest.raises(RawClientError, match="Failed to authenticate"):
        await login(world, stolen)
    await login(world, fresh)
    await asyncio.sleep(30)
    world.check_tasks()
    assert not owner.lost.done()
    revoke(world, "jti 1", "sub alice")
    with pytest.raises(DisconnectedError):
        await publish(world, producer, 60)


@pytest.fixture
def revocable(tmp_path: Path) -> Settings:
    """Settings of a broker whose list of revoked credentials the simulation writes."""
    return Settings(**{**SETTINGS, "tokenRevocationListFile": str(tmp_path / "revoked")})


def test_revoked_credentials_end_their_connections_only(revocable: Settings) -> None:
    run_seeds(revocation, 5, settings=revocable)


async def expiry(world: World) -> None:
    """Who does not renew is closed, neither before the token's end nor long after it; who does goes on."""
    await world.boot()
    life_s = world.rng.uniform(30, 4 * CHECK_S)
    steady = await login(world, token(world, life_s=life_s))
    renewing(world, steady)
    producer = await steady.producer(T, "p")
    world.start(publish(world, producer, 300))
    silent = await login(world, token(world, life_s=life_s))
    old = await login(world, token(world, life_s=life_s), feature_flags=None)
    other = await login(world, token(world, life_s=life_s))
    other.on_command = partial(answer_as, world, other, "mallory")
    begun = world.loop.time()
    for client, looks in ((old, 1), (other, 1), (silent, 2)):
        async with asyncio.timeout(3600):
            await asyncio.shield(client.lost)
        assert life_s - 1 <= world.loop.time() - begun <= life_s + looks * CHECK_S + 2
    await asyncio.sleep(300)
    world.check_tasks()
    assert not steady.lost.done()


def test_only_who_renews_goes_on() -> None:
    """Rule 12.6."""
    run_seeds(expiry, 5, settings=Settings(**SETTINGS))


# wrong builds ----------------------------------------------------------------------------------------------------


def authentication_of(broker: Broker) -> Any:
    assert broker.service.authentication is not None
    return broker.service.authentication


def never_expired(broker: Broker) -> None:
    authentication_of(broker).expired = lambda identity: False


def never_revoked(broker: Broker) -> None:
    authentication_of(broker).revoked = lambda identity: False


def not_read_again(broker: Broker) -> None:
    async def refresh() -> bool:
        return False

    authentication_of(broker).refresh = refresh


def all_are_closed(broker: Broker) -> None:
    """A broker that ends every connection when the list has changed."""

    async def refresh() -> bool:
        changed: bool = await real()
        if changed:
            for connection in list(broker.connections):
                connection.close("the list has changed")
        return changed

    authentication = authentication_of(broker)
    real, authentication.refresh = authentication.refresh, refresh


def closed_instead_of_asked(broker: Broker) -> None:
    broker.credential_checks._hindrance = lambda session, login: "it is over"  # type: ignore[method-assign]


def patient(broker: Broker) -> None:
    """A broker that asks again and again."""
    broker.credential_checks._hindrance = lambda session, login: ""  # type: ignore[method-assign]


@pytest.mark.parametrize("wrong", [never_expired, closed_instead_of_asked])
@pytest.mark.parametrize("simulation", [flow, expiry])
def test_expiry_that_nobody_looks_at_and_nobody_may_mend_is_noticed(simulation: Any, wrong: Tamper) -> None:
    caught(simulation, wrong, by_each_of=2, settings=Settings(**SETTINGS))


def test_clients_that_never_answer_and_stay_are_noticed() -> None:
    caught(expiry, patient, by_each_of=2, settings=Settings(**SETTINGS))


def test_new_credentials_that_are_not_looked_at_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def trusting(session: Session, login: Login, identity: Identity | None, error: MagnetarError | None) -> None: ...

    monkeypatch.setattr(handshake, "_refreshed", trusting)
    caught(expiry, lambda broker: None, by_each_of=2, settings=Settings(**SETTINGS))


@pytest.mark.parametrize("wrong", [never_revoked, not_read_again, all_are_closed])
def test_revocations_that_reach_nobody_or_everybody_are_noticed(revocable: Settings, wrong: Tamper) -> None:
    caught(revocation, wrong, by_each_of=2, settings=revocable)
