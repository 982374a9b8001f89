"""Changes of grants hold for what is open already; the connection stays (rule 12.9)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest

from magnetar.broker.connection import grant_changes
from magnetar.model.names import NamespaceName
from magnetar.protocol import commands as c
from magnetar.testing.rawclient import RawClient, RawClientError
from tests.sim.world import World, run_seed
from tests.support.roles import DEFAULT, SETTINGS, believing, client_of, grant, policies_of

T = "persistent://public/default/t"
N = "non-persistent://public/default/t"
BOTH = ["produce", "consume"]
Talk = Callable[[World], Coroutine[Any, Any, None]]


def talk(simulation: Talk) -> None:
    async def booted(world: World) -> None:
        await world.boot()
        await grant(world.machine.broker.resources, namespace={"alice": BOTH, "bob": BOTH, "proxy": BOTH})
        await simulation(world)

    run_seed(booted, 1, settings=SETTINGS, tamper=believing)


async def alive(client: RawClient) -> bool:
    """Whether the connection is still there: it answers."""
    await client.lookup(T)
    return not client.lost.done()


def closed(client: RawClient) -> list[str]:
    """What the broker has closed."""
    consumers = [f"consumer {one.consumer_id}" for one in client.heard(c.CommandCloseConsumer)]
    return sorted([*consumers, *(f"producer {one.producer_id}" for one in client.heard(c.CommandCloseProducer))])


def changed(world: World, **grants: Any) -> None:
    """Replace the grants within this turn of the loop."""
    namespaces = world.machine.broker.resources.namespaces
    namespaces.policies(DEFAULT)["auth_policies"] = policies_of(**grants)
    namespaces.grants_changed(DEFAULT)


async def revoke(world: World, **grants: Any) -> None:
    """Replace the grants and wait until they hold, as REST does."""
    await grant(world.machine.broker.resources, **grants)
    await world.machine.broker.service.grants_in_force()


@pytest.mark.parametrize("topic", [T, N])
def test_what_is_not_allowed_any_more_is_closed_and_nothing_else(topic: str) -> None:
    async def simulation(world: World) -> None:
        alice, bob = await client_of("alice"), await client_of("bob")
        for client in (alice, bob):
            await client.producer(topic)
            await client.subscribe(topic, "s", c.SubType.Shared)
        service = world.machine.broker.service
        await revoke(world, namespace={"alice": ["consume"], "bob": BOTH})
        assert await alive(alice) and await alive(bob)
        assert closed(alice) == ["producer 1"] and closed(bob) == []
        await revoke(world, namespace={"bob": BOTH})
        assert await alive(alice) and await alive(bob)
        assert closed(alice) == ["consumer 3", "producer 1"] and closed(bob) == []
        served = service.topics.get(topic) or service.nonpersistent_topics.by_name[topic]
        assert len(served.producers) == 1 and len(served.subscriptions["s"].consumers) == 1
        with pytest.raises(RawClientError, match="not authorized to Produce"):
            await alice.producer(topic)

    talk(simulation)


def test_the_reasons_for_which_something_is_not_allowed_any_more() -> None:
    """An administrator who is none any more, a subscription that is reserved, its mode, a proxy's own role."""

    async def simulation(world: World) -> None:
        resources, service = world.machine.broker.resources, world.machine.broker.service
        info: Any = {"adminRoles": ["owner"], "allowedClusters": ["standalone"]}
        await resources.tenants.update("public", info)
        owner, alice, through = await client_of("owner"), await client_of("alice"), await client_of("proxy", "bob")
        await owner.producer(T)
        consumer = await alice.subscribe(T, "s", c.SubType.Shared)
        await through.producer(T)
        await resources.tenants.update("public", {**info, "adminRoles": []})
        await service.grants_in_force()
        assert await alive(owner) and closed(owner) == ["producer 1"]
        await revoke(world, namespace={"alice": BOTH, "bob": BOTH}, subscriptions={"s": ["bob"]})
        assert await alive(alice) and closed(alice) == [f"consumer {consumer.consumer_id}"]
        assert await alive(through) and closed(through) == ["producer 1"], "the proxy's own role is asked, too"
        consumer = await alice.subscribe(T, "x", c.SubType.Shared)
        await revoke(world, mode="Prefix", namespace={"alice": BOTH})
        assert await alive(alice) and f"consumer {consumer.consumer_id}" in closed(alice)

    talk(simulation)


def test_a_superuser_and_other_namespaces_are_left_alone() -> None:
    async def simulation(world: World) -> None:
        resources = world.machine.broker.resources
        other = await resources.namespaces.create("public", "other")
        await grant(resources, other, namespace={"alice": BOTH})
        root, alice = await client_of("root"), await client_of("alice")
        await root.producer(T)
        await alice.producer("persistent://public/other/t")
        await revoke(world)
        await resources.namespaces.delete(NamespaceName.parse("public/default"), has_topics=False)
        assert await alive(root) and await alive(alice) and not closed(root) and not closed(alice)
        await resources.namespaces.update(other, retention_policies={"retentionTimeInMinutes": 1})
        assert await alive(alice) and not closed(alice)

    talk(simulation)


def test_what_is_being_opened_is_refused() -> None:
    async def simulation(world: World) -> None:
        alice, bob = await client_of("alice"), await client_of("bob")
        await bob.producer(T, producer_access_mode=c.ProducerAccessMode.Exclusive)
        waiting = alice.new_id()
        mode = c.ProducerAccessMode.WaitForExclusive
        alice.say(c.CommandProducer(T, waiting, waiting, producer_access_mode=mode))
        answer = await alice.hear(c.CommandProducerSuccess)
        assert answer.producer_ready is False
        world.machine.hold_writes()
        alice.say(c.CommandSubscribe("persistent://public/default/new", "s", c.SubType.Shared, 8, 8))
        assert await alive(alice)
        await asyncio.sleep(0.1)
        assert not alice.heard(c.CommandSuccess)
        records = world.machine.broker.resources.namespaces
        records.policies(DEFAULT)["auth_policies"] = policies_of(namespace={"bob": BOTH})
        records.grants_changed(DEFAULT)
        await world.machine.broker.service.grants_in_force()
        refused = [await alice.hear(c.CommandError), await alice.hear(c.CommandError)]
        assert {one.request_id: one.message for one in refused} == {
            waiting: "Client is not authorized to Produce",
            8: "Client is not authorized to subscribe",
        }
        world.machine.release_writes()
        await asyncio.sleep(1)
        assert await alive(alice) and not alice.heard(c.CommandSuccess)
        topic = world.machine.broker.service.topics[T]
        topic.producers.close_all()
        await asyncio.sleep(1)
        assert not alice.heard(c.CommandProducerSuccess)
        (session,) = (one.session for one in world.machine.broker.connections if one.session.caller.role == "alice")
        assert not session.producers and not session.consumers

    talk(simulation)


def test_a_watch_gets_no_more_updates() -> None:
    async def simulation(world: World) -> None:
        alice, bob = await client_of("alice"), await client_of("bob")
        for client in (alice, bob):
            await client.request(
                c.CommandWatchTopicList(client.new_id(), 5, "public/default", ".*"), c.CommandWatchTopicListSuccess
            )
        await bob.producer(T)
        await alice.hear(c.CommandWatchTopicUpdate)
        await revoke(world, namespace={"bob": BOTH})
        await bob.producer(f"{T}2")
        await bob.hear(c.CommandWatchTopicUpdate, where=lambda one: one.new_topics == (f"{T}2",))
        assert await alive(alice) and not alice.heard(c.CommandWatchTopicUpdate)
        held = {one.session.caller.role: list(one.session.watches) for one in world.machine.broker.connections}
        assert held == {"alice": [], "bob": [5]}

    talk(simulation)


def test_many_are_judged_in_turns_and_the_change_is_in_force_after_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    async def simulation(world: World) -> None:
        clients = [await client_of("alice") for _ in range(4)]
        for client in clients:
            for _ in range(10):
                await client.producer(T)
        topic, service = world.machine.broker.service.topics[T], world.machine.broker.service
        await grant(world.machine.broker.resources, namespace={})
        left = len(topic.producers)
        assert 0 < left < 40, "some at once, not all"
        forced = asyncio.ensure_future(service.grants_in_force())
        await grant(world.machine.broker.resources, namespace={"bob": BOTH})  # while the first is looked at
        await forced
        assert len(topic.producers) == 0
        for client in clients:
            assert await alive(client) and len(closed(client)) == 10

    monkeypatch.setattr(grant_changes, "AT_ONCE", 12)
    talk(simulation)


def test_a_handle_that_cannot_be_judged_ends_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("a fault")

    async def simulation(world: World) -> None:
        alice = await client_of("alice")
        await alice.producer(T)
        monkeypatch.setattr(grant_changes, "_needed", broken)
        await revoke(world, namespace={"alice": BOTH})
        await alice.lost

    talk(simulation)


def test_changes_that_never_end_delay_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each turn of the loop another grant changes: who waits is answered by the end of the look after the change."""

    async def simulation(world: World) -> None:
        changes, resources = world.machine.broker.grant_changes, world.machine.broker.resources
        alice = await client_of("alice")
        for _ in range(10):
            await alice.producer(T)
        topic = world.machine.broker.service.topics[T]
        _others = [await client_of("root") for _ in range(10)]  # so that each look takes several turns
        record = resources.namespaces.policies(DEFAULT)
        over = False

        async def change_all_the_time() -> None:
            number = 0
            while not over:
                number += 1
                record["auth_policies"] = policies_of(namespace={f"role{number}": BOTH})
                resources.namespaces.grants_changed(DEFAULT)
                await asyncio.sleep(0)

        record["auth_policies"] = policies_of()
        resources.namespaces.grants_changed(DEFAULT)
        first = asyncio.ensure_future(changes.in_force())
        stream = asyncio.ensure_future(change_all_the_time())
        for _ in range(3):
            await asyncio.sleep(0)
        second = asyncio.ensure_future(changes.in_force())
        turns = 0
        while not (first.done() and second.done()):
            turns += 1
            assert turns < 100, "the stream of changes delays the answers"
            await asyncio.sleep(0)
        assert len(topic.producers) == 0
        over = True
        await stream
        await changes.in_force()

    monkeypatch.setattr(grant_changes, "AT_ONCE", 3)
    talk(simulation)


def test_whoever_asked_during_a_look_is_answered_when_nothing_is_open_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    async def simulation(world: World) -> None:
        changes, connections = world.machine.broker.grant_changes, world.machine.broker.connections
        alice = await client_of("alice")
        for _ in range(10):
            await alice.producer(T)
        changed(world, namespace={"alice": BOTH})
        changed(world, namespace={"bob": BOTH})
        forced = asyncio.ensure_future(changes.in_force())
        for listener in list(connections):
            listener.session.transport.abort()
        await asyncio.wait_for(forced, 5)
        assert not len(connections)

    monkeypatch.setattr(grant_changes, "AT_ONCE", 1)
    talk(simulation)


def test_whoever_asked_during_a_look_is_not_answered_before_the_end_of_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def simulation(world: World) -> None:
        alice = await client_of("alice")
        for _ in range(10):
            await alice.producer(T)
        topic, service = world.machine.broker.service.topics[T], world.machine.broker.service
        changed(world, namespace={"alice": BOTH})
        for _ in range(2):
            await asyncio.sleep(0)
        changed(world, namespace={"bob": BOTH})
        assert len(topic.producers) == 10, "most of them were looked at before that change"
        await service.grants_in_force()
        assert len(topic.producers) == 0

    monkeypatch.setattr(grant_changes, "AT_ONCE", 3)
    talk(simulation)


def test_only_what_grants_has_what_is_open_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def simulation(world: World) -> None:
        resources = world.machine.broker.resources
        alice = await client_of("alice")
        await alice.producer(T)
        looked: list[Any] = []
        needed = grant_changes._needed

        def counted(*held: Any) -> Any:
            looked.append(held)
            return needed(*held)

        monkeypatch.setattr(grant_changes, "_needed", counted)
        await resources.namespaces.update(DEFAULT, retention_policies={"retentionTimeInMinutes": 1})
        info: Any = resources.tenants.get("public")
        await resources.tenants.update("public", {**info})
        await grant(resources, namespace={"alice": BOTH, "bob": BOTH, "proxy": BOTH})
        assert not looked, "the grants are what they were"
        await grant(resources, namespace={"alice": BOTH})
        assert len(looked) == 1
        await grant(resources, mode="Prefix", namespace={"alice": BOTH})
        assert len(looked) == 2
        await resources.tenants.update("public", {**info, "adminRoles": ["owner"]})
        assert len(looked) == 3
        await resources.namespaces.delete(DEFAULT, has_topics=False)
        assert len(looked) == 4 and await alive(alice) and closed(alice) == ["producer 1"]

    talk(simulation)


def test_what_grants_of_tenants_and_namespaces_that_are_gone_is_forgotten() -> None:
    """Names come and go for as long as a broker runs, and a new record is none of the old one."""

    async def simulation(world: World) -> None:
        resources = world.machine.broker.resources
        judges: Any = cast(Any, world.machine.broker.service.grants_in_force).__self__
        before = dict(judges._seen)
        name = NamespaceName.parse("acme/orders")
        for _ in range(2):
            await resources.tenants.create("acme", {"adminRoles": ["owner"], "allowedClusters": ["standalone"]})
            await resources.namespaces.create("acme", "orders")
            assert judges._seen.keys() == {*before, "acme", name}
            await resources.namespaces.delete(name, has_topics=False)
            await resources.tenants.delete("acme", has_namespaces=False)
            assert judges._seen == before

    talk(simulation)


def test_what_was_closed_is_not_judged_any_further(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits to be opened may need several things: the first that is missing closes it, once, with one record."""
    said: list[str] = []
    monkeypatch.setattr(grant_changes, "_close", lambda *_: said.append("closed"))
    denied = SimpleNamespace(allowed=False, reason="no")
    authorizer = SimpleNamespace(decide=lambda *_: denied, record=lambda *_: said.append("recorded"))
    session = SimpleNamespace(caller=None, complain=lambda *_: None)
    judge: Any = grant_changes.GrantChanges._judge
    judge(None, authorizer, session, 1, object(), ["produce", "consume"])
    assert said == ["recorded", "closed"]
