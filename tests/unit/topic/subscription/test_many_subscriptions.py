"""A topic with very many subscriptions: each gets everything in order, and none of it keeps the loop for long."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

import pytest

from magnetar.broker.throttling.passes import EACH, TURN, Passes
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.model.subscription_types import SubType
from magnetar.testing.simloop import SimLoop, run_in
from tests.support.topic_bench import OrdinalConnection, TopicBench


def bench(path: Path, scenario: Callable[[TopicBench], Awaitable[None]]) -> None:
    async def main() -> None:
        place = TopicBench(path)
        await scenario(place)
        place.topic.close()
        await place.store.close()

    run_in(SimLoop(1), main())


def subscribed(place: TopicBench, name: str) -> OrdinalConnection:
    connection = OrdinalConnection()
    found = place.topic.subscription(
        name, durable=False, ordinal=lambda: place.topic.log.end, properties={}, done=lambda: None
    )
    consumer = found.add_consumer(connection, name="c", consumer_id=1, sub_type=SubType.Exclusive)
    found.flow(consumer, 1_000_000)
    return connection


def ordinals(connection: OrdinalConnection) -> list[int]:
    return [ordinal for ordinal, _, _, _ in connection.got]


def test_no_turn_of_the_loop_serves_more_than_its_share_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups that come while the subscriptions still have their turns are seen by all; one that leaves is left out."""

    async def scenario(place: TopicBench) -> None:
        rng, turn, served = Random(3), 0, dict[int, int]()
        appended, begin = Subscription.entries_appended, Passes._begin_turn

        def next_turn(passes: Passes) -> None:
            nonlocal turn
            turn += 1
            begin(passes)

        def counted(subscription: Subscription) -> int:
            dealt = appended(subscription)
            served[turn] = served.get(turn, 0) + EACH + dealt
            return dealt

        monkeypatch.setattr(Passes, "_begin_turn", next_turn)
        monkeypatch.setattr(Subscription, "entries_appended", counted)
        connections = [subscribed(place, f"s{number}") for number in range(500)]
        sent = 0
        for _ in range(20):
            count = rng.choice((1, 3, 40))
            place.publish(*([0] * count))
            sent += count
            await place.durable()
            for _ in range(rng.choice((0, 1, 30))):
                await asyncio.sleep(0)
        place.topic.delete_subscription("s499", lambda: None)
        while len(connections[498].got) < sent:  # noqa: ASYNC110
            await asyncio.sleep(0)
        for connection in connections[:-1]:
            assert ordinals(connection) == list(range(sent))
        left = ordinals(connections[-1])
        assert left == list(range(len(left)))
        assert max(served.values()) < TURN + EACH + sent
        assert len(served) > 20

    bench(tmp_path, scenario)


def test_few_subscriptions_are_served_with_their_group(tmp_path: Path) -> None:
    """As one is: what is durable is on its way to all of them when the next callback of the loop runs."""

    async def scenario(place: TopicBench) -> None:
        connections = [subscribed(place, f"s{number}") for number in range(10)]
        place.publish(0, 0, 0)
        got: list[list[int]] = []

        def next_callback() -> None:
            got.extend(map(ordinals, connections))

        def in_durable() -> None:
            asyncio.get_running_loop().call_soon(next_callback)

        place.topic.log.barrier(in_durable)
        await place.durable()
        await asyncio.sleep(0)
        assert got == [[0, 1, 2]] * 10

    bench(tmp_path, scenario)
