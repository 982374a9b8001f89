"""The name of a consumer, by which brokers order consumers and spread keys."""

from __future__ import annotations

import asyncio

import pytest

from magnetar.protocol.commands import SubType
from tests.sim.world import T
from tests.support.delivery_stage import S, Stage, play


def _names(stage: Stage, topics: list[str]) -> set[str]:
    """The names of a subscription's consumers, as the broker has them."""
    found = stage.world.machine.broker.service.topics
    return {one.name for topic in topics for one in found[topic].subscriptions[S].consumers}


@pytest.mark.parametrize("given", [None, "mine"])
def test_a_name_stays_across_partitions_and_connections(given: str | None) -> None:
    """One that was not given is made by the client, and no two consumers share it (rule 5.1.8)."""

    async def story(stage: Stage) -> None:
        await stage.partitioned(f"{T}-many", 4)
        consumer = await stage.subscribe(f"{T}-many", consumer_type=SubType.Key_Shared, consumer_name=given)
        before = _names(stage, consumer.topics)
        assert before == {consumer.consumer_name()} and before != {""} and (given is None or before == {given})
        for link in list(stage.world.network.links):
            link.cut()
        await stage.send(b"a", topic=f"{T}-many")
        assert (await consumer.receive(60_000)).data() == b"a"
        assert _names(stage, consumer.topics) == before
        other = await stage.subscribe(f"{T}-many", consumer_type=SubType.Key_Shared)
        assert other.consumer_name() != consumer.consumer_name()

    play(story)


def test_consumers_without_names_share_the_partitions_of_a_failover_subscription() -> None:
    """Each partition orders them by name, so each of two has half of the partitions (rule 5.1.8)."""

    async def story(stage: Stage) -> None:
        await stage.partitioned(f"{T}-many", 8)
        both = [await stage.subscribe(f"{T}-many", consumer_type=SubType.Failover) for _ in range(2)]
        await asyncio.sleep(5)
        await stage.send(*[b"%d" % number for number in range(8)], topic=f"{T}-many")
        served = [{(await one.receive(10_000)).topic_name() for _ in range(4)} for one in both]
        assert [len(one) for one in served] == [4, 4] and not served[0] & served[1]

    play(story)
