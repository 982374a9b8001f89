"""What changes while a pass of retention waits for the disk."""

from __future__ import annotations

import asyncio

import pytest

from magnetar.broker.topic.cleanup.retention import apply_retention
from magnetar.model.names import TopicName
from magnetar.model.policies import JsonObject
from magnetar.protocol import commands as c
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.rawclient import RawClient
from tests.sim.world import T, World, run_seed

MESSAGES = 100


async def _filled(client: RawClient, topic: str) -> list[c.MessageIdData]:
    producer = await client.producer(topic)
    return [await producer.publish(b"x" * 100) for _ in range(MESSAGES)]


@pytest.mark.parametrize("sought", [True, False])
def test_what_somebody_has_just_sought_back_to_is_not_trimmed(sought: bool) -> None:
    async def simulation(world: World) -> None:
        await world.boot()
        client = await RawClient.open(HOST, PORT)
        await client.connect()
        consumer = await client.subscribe(T, "s", c.SubType.Shared, initial_position=c.InitialPosition.Earliest)
        machine = world.machine
        kept: JsonObject = {"retentionTimeInMinutes": 1, "retentionSizeInMB": -1}  # or a filled segment has it trimmed
        await machine.broker.resources.topic_policies.update(TopicName.parse(T), "retention", kept)
        ids = await _filled(client, T)
        await consumer.ack(*ids)
        await _filled(client, "persistent://public/default/other")  # what the cache held of the first is evicted
        await asyncio.sleep(90)
        topic = machine.broker.service.topics[T]
        machine.loop.hold(machine._threads["reader"])
        running = world.loop.create_task(apply_retention(topic, machine.clock.now_ms()))
        await asyncio.sleep(1)
        assert not running.done(), "the pass waits for its read"
        if sought:
            await consumer.seek(ids[3])
        machine.loop.release(machine._threads["reader"])
        await running
        assert (topic.log.first <= 3) is sought
        if sought:
            again = await client.subscribe(T, "s", c.SubType.Shared)
            again.flow(1000)
            assert [(await again.receive()).message_id.entry for _ in ids[3:]] == [sent.entry for sent in ids[3:]]

    run_seed(simulation, 1)
