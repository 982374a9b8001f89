"""A client that holds what another one wants is asked for a sign of life, for as long as is set (rule 3.1.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from magnetar.broker.connection.bounds.socket_pauses import RATE
from magnetar.broker.connection.listener import Connections
from magnetar.config.settings import Settings
from magnetar.model.errors import ServerError
from magnetar.protocol import codec
from magnetar.protocol import commands as c
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.rawclient import RawClient, RawClientError, RawConsumer, RawProducer
from tests.sim.world import T, World, run_seed
from tests.support.connections import PING, connected, fake_service, hang_up

PLACES = {
    "name": ServerError.ProducerBusy,
    "exclusive": ServerError.ConsumerBusy,
    "ranges": ServerError.ConsumerAssignError,
}


def talk(simulation: Callable[[World], Coroutine[Any, Any, None]], settings: Settings | None = None) -> None:
    async def booted(world: World) -> None:
        await world.boot()
        await simulation(world)

    run_seed(booted, 1, settings=settings)


async def client(*, answer_pings: bool = True) -> RawClient:
    made = await RawClient.open(HOST, PORT, answer_pings=answer_pings)
    await made.connect()
    return made


def ranges(*declared: tuple[int, int]) -> c.KeySharedMeta:
    return c.KeySharedMeta(c.KeySharedMode.STICKY, tuple(c.IntRange(*one) for one in declared))


async def take(one: RawClient, place: str) -> RawProducer | RawConsumer:
    if place == "name":
        return await one.producer(T, "n")
    if place == "exclusive":
        return await one.subscribe(T, "s")
    return await one.subscribe(T, "s", c.SubType.Key_Shared, key_shared_meta=ranges((0, 65_535)))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("patience_ms", [700, 9_000])
def test_a_dead_holder_makes_room_when_its_time_is_over(place: str, patience_ms: int) -> None:
    async def simulation(world: World) -> None:
        owner = await client(answer_pings=False)
        await take(owner, place)
        begun = world.loop.time()
        await take(await client(), place)
        assert patience_ms / 1000 <= world.loop.time() - begun < patience_ms / 1000 + 0.5
        await owner.lost

    talk(simulation, Settings(connectionLivenessCheckTimeoutMillis=patience_ms))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("patience_ms", [0, -1])
def test_without_a_time_nobody_is_asked_and_the_keep_alive_decides(place: str, patience_ms: int) -> None:
    async def simulation(world: World) -> None:
        owner = await client(answer_pings=False)
        await take(owner, place)
        other = await client()
        begun = world.loop.time()
        with pytest.raises(RawClientError) as refused:
            await take(other, place)
        assert refused.value.code is PLACES[place]
        assert world.loop.time() - begun < 0.5
        await owner.lost
        assert world.loop.time() - begun > 4, "it was silent for less than a keep-alive interval"
        await take(other, place)

    talk(simulation, Settings(connectionLivenessCheckTimeoutMillis=patience_ms, keepAliveIntervalSeconds=4))


def test_whoever_declares_a_range_of_a_living_consumer_is_refused() -> None:
    """A sign of life keeps the range, and a consumer of the same connection is not asked (rule 5.6.8)."""

    async def simulation(world: World) -> None:
        owner = await client()
        await owner.subscribe(T, "s", c.SubType.Key_Shared, key_shared_meta=ranges((0, 99)), consumer_name="first")
        for one in (await client(), owner):
            begun = world.loop.time()
            with pytest.raises(RawClientError, match=r"Range conflict with consumer Consumer.*consumerName=first"):
                await one.subscribe(T, "s", c.SubType.Key_Shared, key_shared_meta=ranges((50, 60)))
            assert world.loop.time() - begun < 0.5
        await asyncio.sleep(20)
        assert not owner.lost.done(), "a sign of life is enough"

    talk(simulation)


def test_one_sign_of_life_answers_all_who_asked() -> None:
    async def scenario() -> None:
        listener, transport = connected(Connections())
        await asyncio.sleep(0)  # CONNECTED goes out
        before = len(transport.written)
        answers: list[bool] = []
        for _ in range(3):
            listener.session.probe(answers.append)
        await asyncio.sleep(0)
        assert bytes(transport.written[before:]) == PING
        assert answers == []
        listener.data_received(codec.encode(c.CommandPong()))
        assert answers == [True] * 3
        hang_up(listener)

    asyncio.run(scenario())


def test_nobody_is_asked_without_a_time() -> None:
    async def scenario() -> None:
        listener, transport = connected(Connections(), fake_service(connectionLivenessCheckTimeoutMillis=0))
        await asyncio.sleep(0)  # CONNECTED goes out
        before = len(transport.written)
        answers: list[bool] = []
        listener.session.probe(answers.append)
        assert answers == [True]
        await asyncio.sleep(0)
        assert len(transport.written) == before
        hang_up(listener)

    asyncio.run(scenario())


@pytest.mark.parametrize("takes_answers", [True, False])
def test_a_client_that_is_not_read_is_not_called_dead_unless_it_takes_nothing(takes_answers: bool) -> None:
    """It cannot give a sign of life while a limit of the broker's keeps its socket from being read."""

    async def scenario() -> None:
        listener, _ = connected(Connections(), fake_service(connectionLivenessCheckTimeoutMillis=1))
        session = listener.session
        session.stop_reading(RATE)
        session.stuck = not takes_answers
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        session.probe(answer.set_result)
        assert await answer is takes_answers
        assert session.closed is not takes_answers
        hang_up(listener)

    asyncio.run(scenario())
