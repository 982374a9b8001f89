"""Whose credentials are looked at when some are revoked (rule 12.6): the peer's, and those of who stands behind it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from magnetar.broker.connection.credential_checks import CredentialChecks
from magnetar.broker.connection.handlers import subscribe_command
from magnetar.broker.connection.listener import Connections
from magnetar.broker.connection.login import Login
from magnetar.protocol import commands as c
from tests.sim.world import World, run_seed
from tests.support.connections import connected, fake_service, hang_up
from tests.support.roles import DEFAULT, SETTINGS, believing, client_of, grant, policies_of

PEER, ORIGINAL = cast(Any, "the proxy's token"), cast(Any, "alice's token")


@pytest.mark.parametrize("revoked", [None, PEER, ORIGINAL, "alice"])
@pytest.mark.parametrize("forwarded", [False, True])
def test_a_connection_ends_with_any_of_its_credentials_and_with_no_other(revoked: object, forwarded: bool) -> None:
    async def scenario() -> None:
        async def refresh() -> bool:
            return True

        service: Any = fake_service()
        connections = Connections()
        client, transport = connected(connections, service)
        service.authentication = SimpleNamespace(
            revoked=lambda identity: identity == revoked, revoked_original=lambda role: role == revoked, refresh=refresh
        )
        session = client.session
        session.login = Login("token", PEER, ORIGINAL if forwarded else None)
        session.caller = replace(session.caller, role="proxy", original_role="alice")
        await CredentialChecks(service, connections).look_for_revoked()
        assert transport.closing is (revoked in (PEER, "alice") or (forwarded and revoked == ORIGINAL))
        hang_up(client)

    asyncio.run(scenario())


@pytest.mark.parametrize("over", [None, PEER, ORIGINAL])
@pytest.mark.parametrize("forwarded", [False, True])
def test_the_credentials_that_would_be_asked_for_again_are_those_that_expire(over: object, forwarded: bool) -> None:
    """A proxy that forwards its client's is asked for those, and its own count for as long as it is connected."""

    async def scenario() -> None:
        service: Any = fake_service()
        connections = Connections()
        client, transport = connected(connections, service)
        service.authentication = SimpleNamespace(
            revoked=lambda identity: False, revoked_original=lambda role: False, expired=lambda one: one == over
        )
        session = client.session
        session.features = c.FeatureFlags(supports_auth_refresh=True)
        session.protocol_version = 15 if forwarded else 30
        session.login = Login("word", PEER, ORIGINAL if forwarded else None)
        session.caller = replace(session.caller, role="proxy", original_role="alice" if forwarded else None)
        checks = CredentialChecks(service, connections)
        for seconds in range(2):
            await checks.look()
            await asyncio.sleep(0)
            asked = [one for one in transport.heard() if isinstance(one, c.CommandAuthChallenge)]
            if over != (ORIGINAL if forwarded else PEER):
                assert not asked and not transport.closing
            elif not seconds:
                (challenge,) = asked
                assert challenge.challenge == c.AuthData("word", b"PulsarAuthRefresh"), "what clients look for"
                assert challenge.protocol_version == (15 if forwarded else 21)
                assert not transport.closing
            else:
                assert transport.closing, "it did not answer by the next pass"
                assert service.said == [], "time passes for everybody: no fault of the client"
        hang_up(client)

    asyncio.run(scenario())


def test_a_connection_that_has_ended_is_not_looked_at() -> None:
    """Its socket may be there for a while."""

    async def scenario() -> None:
        service: Any = fake_service()
        connections = Connections()
        client, _ = connected(connections, service)
        asked: list[object] = []
        service.authentication = SimpleNamespace(revoked=lambda identity: asked.append(identity))
        client.session.login = Login("token", PEER)
        client.session.closed = True
        await CredentialChecks(service, connections).look()
        assert asked == []
        hang_up(client)

    asyncio.run(scenario())


def test_all_that_is_open_is_judged_again_when_superusers_are_others() -> None:
    """No record changes then, and whoever lost the role may do what grants say (rule 12.9)."""

    async def simulation(world: World) -> None:
        await world.boot()
        broker = world.machine.broker
        await grant(broker.resources, namespace={"alice": ["produce"]})
        alice = await client_of("alice")
        await alice.producer("persistent://public/default/t")
        broker.resources.namespaces.policies(DEFAULT)["auth_policies"] = policies_of(namespace={})
        judges: Any = cast(Any, broker.service.grants_in_force).__self__
        judges.everything()
        await judges.in_force()
        await alice.hear(c.CommandCloseProducer)
        assert not alice.lost.done()

    run_seed(simulation, 1, settings=SETTINGS, tamper=believing)


def test_who_may_not_any_more_when_its_consumer_joins_does_not_join(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last look before the consumer is there; what it had begun goes, too (rule 12.9)."""

    async def simulation(world: World) -> None:
        await world.boot()
        broker = world.machine.broker
        await grant(broker.resources, namespace={"alice": ["consume"]})
        alice = await client_of("alice")
        monkeypatch.setattr(subscribe_command, "still_allowed", lambda session, command: False)
        topic = "persistent://public/default/t"
        alice.say(c.CommandSubscribe(topic, "s", c.SubType.Shared, 7, alice.new_id()))
        await asyncio.sleep(1)
        assert not alice.heard(c.CommandSuccess)
        assert not broker.service.topics[topic].consumer_count()

    run_seed(simulation, 1, settings=SETTINGS, tamper=believing)
