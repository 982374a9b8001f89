"""A seek lands where its answer says: under load, by id and by time, and across a crash."""

from __future__ import annotations

import asyncio

import pytest

from magnetar.protocol.commands import CommandCloseConsumer, CommandMessage, InitialPosition, MessageIdData, SubType
from magnetar.storage.ledgers.cursor import Cursor
from magnetar.storage.log.journal import Journal
from magnetar.storage.log.write_group import DirtyCursor, Done
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.history import MessagePosition, Receipted
from magnetar.testing.rawclient import RawClient, make_entry
from tests.sim.clients import Publisher, place_of
from tests.sim.world import T, World, caught, run_seeds

S = "sub"


def receipted(world: World) -> list[MessagePosition]:
    return sorted(event.place for event in world.history if isinstance(event, Receipted))


async def seek(world: World) -> None:
    """Consume and acknowledge, seek to a random message while others are published, crash or not, read on."""
    await world.boot()
    sub_type = world.rng.choice((SubType.Exclusive, SubType.Shared, SubType.Key_Shared, SubType.Failover))
    publisher = Publisher(world, "p", T)
    world.start(publisher.run(150))
    for _ in range(3):
        await asyncio.sleep(world.rng.uniform(0.1, 0.5))
        client = await RawClient.open(HOST, PORT)
        await client.connect()
        consumer = await client.subscribe(T, S, sub_type, initial_position=InitialPosition.Earliest)
        consumer.flow(100)
        await asyncio.sleep(world.rng.uniform(0.0, 0.3))
        for message in client.heard(CommandMessage):
            if world.rng.random() < 0.7:
                consumer.ack_unconfirmed(message.message_id)
        target = world.rng.choice(receipted(world))
        await consumer.seek(MessageIdData(target.ledger, target.entry))
        assert client.heard(CommandCloseConsumer)
        client.transport.close()
        if world.rng.random() < 0.6:
            await world.crash()
        expected = [place for place in receipted(world) if place >= target]
        assert await first_deliveries(sub_type, len(expected)) == expected
    world.check_tasks()


async def by_time(world: World) -> None:
    """The first message published at or after a time is the next one."""
    await world.boot()
    client = await RawClient.open(HOST, PORT)
    await client.connect()
    producer = await client.producer(T)
    entries: list[tuple[int, MessagePosition]] = []
    for i in range(60):
        entry = _entry(producer.name, i, publish_time_ms=1_000 * i)
        receipt = await producer.receipt(producer.send(b"", entry=entry))
        assert receipt.message_id is not None
        entries.append((1_000 * i, place_of(receipt.message_id)))
    consumer = await client.subscribe(T, S, SubType.Exclusive)
    wanted = world.rng.randint(0, 60_000)
    await consumer.seek(publish_time_ms=wanted)
    if world.rng.random() < 0.5:
        await world.crash()
    expected = [place for time, place in entries if time >= wanted]
    assert await first_deliveries(SubType.Exclusive, len(expected)) == expected


def _entry(producer: str, sequence_id: int, publish_time_ms: int) -> bytes:
    return make_entry(b"x", producer=producer, sequence_id=sequence_id, publish_time_ms=publish_time_ms)


async def first_deliveries(sub_type: SubType, count: int) -> list[MessagePosition]:
    """What a fresh consumer gets that acknowledges nothing."""
    client = await RawClient.open(HOST, PORT)
    await client.connect()
    consumer = await client.subscribe(T, S, sub_type)
    consumer.flow(count + 500)
    got = [place_of((await consumer.receive()).message_id) for _ in range(count)]
    await consumer.close()
    client.transport.close()
    await asyncio.sleep(0.1)
    return sorted(got) if sub_type is SubType.Key_Shared else got


def test_seek_by_id() -> None:
    run_seeds(seek, 20)


def test_seek_by_time() -> None:
    run_seeds(by_time, 10)


def test_a_seek_that_lands_beside_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    reset = Cursor.reset
    monkeypatch.setattr(Cursor, "reset", lambda self, ordinal, durable=None: reset(self, ordinal + 1, durable))
    caught(seek, lambda broker: None)
    caught(by_time, lambda broker: None)


def test_a_seek_answered_too_early_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    touch = Journal.touch

    def early(self: Journal, cursor: DirtyCursor, done: Done | None) -> None:
        touch(self, cursor, None)
        if done is not None:
            done()

    monkeypatch.setattr(Journal, "touch", early)
    caught(seek, lambda broker: None)
