"""Entries that wait for the definition of their schema while everything is asked for again."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from magnetar.client.aio.connections.topic_lookup import TopicLookup
from magnetar.client.machines.message import Message
from magnetar.client.values.avro_schema import AvroSchema
from magnetar.protocol.commands import SubType
from tests.sim.world import T
from tests.support.delivery_stage import Stage, nothing, play


@dataclass
class Older:
    a: int


@dataclass
class Newer:
    a: int
    b: str = ""


@pytest.mark.parametrize("kind", [SubType.Shared, SubType.Exclusive])
def test_they_come_once(kind: SubType, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a shared subscription each came twice: once when the definition was there, and once again."""
    answered, ask = asyncio.Event(), TopicLookup.schema_of_version

    async def late(self: TopicLookup, *given: Any) -> Any:
        await answered.wait()
        return await ask(self, *given)

    monkeypatch.setattr(TopicLookup, "schema_of_version", late)

    async def story(stage: Stage) -> None:
        async with await stage.client.create_producer(T, schema=AvroSchema(Older), batching_enabled=False) as producer:
            for number in range(3):
                await producer.send(Older(number))
        consumer = await stage.subscribe(consumer_type=kind, schema=AvroSchema(Newer), receiver_queue_size=4)
        await asyncio.sleep(1)
        member = consumer.member_of(T)
        assert member.waiting == 3 and not member.consumption.waiting, "they are held"
        consumer.redeliver_all()
        await asyncio.sleep(1)
        answered.set()
        found: list[Message[Any]] = [await consumer.receive(5_000) for _ in range(3)]
        assert sorted(one.value().a for one in found) == [0, 1, 2]
        await nothing(consumer, 10)
        member.consumption.check()

    play(story)
