"""Readers of a compacted topic whose log is trimmed: what is left of it stands in the view alone (rule 5.9.13)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from magnetar.config.settings import Settings
from magnetar.protocol import commands as c
from magnetar.protocol.entries import EntryMetadata, build_entry
from magnetar.testing.rawclient import RawClient, RawConsumer, payload_of
from tests.sim.world import SMALL, T, World, run_seed
from tests.support.conversations import connected

EARLIEST = c.MessageIdData(-1, -1)
WRITTEN = (("a", "0"), ("b", "0"), ("a", "1"), ("c", "0"), ("b", "1"), ("c", ""), ("d", "0"), ("d", ""))
"""Keys and values, of which an empty one deletes its key: what stays stands at 2 and 4."""


async def compacted(world: World) -> tuple[RawClient, list[Any]]:
    """The ids of what was written, a second apart; of the log itself only the end is left."""
    world.storage = replace(SMALL, ledger_entries_max=2)
    await world.boot()
    client = await connected()
    producer = await client.producer(T)
    now, ids = world.machine.clock.now_ms(), []
    for number, (key, value) in enumerate(WRITTEN):
        published = now - 1000 * len(WRITTEN) + 1000 * number + 500
        about = EntryMetadata(producer.name, number, published, partition_key=key, null_value=not value)
        entry = build_entry(about, value.encode())
        ids.append((await producer.receipt(producer.send(b"", entry=entry))).message_id)
    topic = world.machine.broker.service.topics[T]
    compactor = topic.compaction()
    compactor.begin(retain_keyless=False)
    await compactor.wait()
    topic.trim()
    assert topic.log.first >= 6
    return client, ids


async def read(consumer: RawConsumer, count: int) -> list[tuple[Any, bytes]]:
    consumer.flow(10)
    messages = [await consumer.receive() for _ in range(count)]
    return [(one.message_id, bytes(payload_of(one.entry))) for one in messages]


def talk(simulation: Any) -> None:
    run_seed(simulation, 1, settings=Settings())


@pytest.mark.parametrize(
    ("fields", "first"),
    [
        ({"start": None, "durable": False}, 2),
        ({"start": 2, "durable": False}, 2),
        ({"start": 3, "durable": False}, 4),
        ({"initial_position": c.InitialPosition.Earliest, "durable": False}, 2),
        ({"initial_position": c.InitialPosition.Earliest}, 2),
        ({"start_message_rollback_duration_sec": 6}, 2),
        ({"start_message_rollback_duration_sec": 4}, 4),
        ({"start_message_rollback_duration_sec": 1}, 8),
    ],
)
def test_a_new_cursor_begins_where_the_view_has_its_place(fields: dict[str, Any], first: int) -> None:
    async def simulation(world: World) -> None:
        client, ids = await compacted(world)
        given = {**fields}
        if "start" in given:
            start = given.pop("start")
            given["start_message_id"] = EARLIEST if start is None else ids[start]
        consumer = await client.subscribe(T, "s", read_compacted=True, **given)
        last = await (await client.producer(T)).publish(b"last")
        expected = [ids[number] for number in (2, 4) if number >= first]
        found = await read(consumer, len(expected) + 1)
        assert [one for one, _ in found] == [*expected, last]

    talk(simulation)


def test_the_last_message_and_what_is_acknowledged_are_places_in_the_view() -> None:
    """What deletions hide is not the last, and a place whose ledger is gone has its old name."""

    async def simulation(world: World) -> None:
        client, ids = await compacted(world)
        consumer = await client.subscribe(T, "s", read_compacted=True, durable=False, start_message_id=EARLIEST)
        await read(consumer, 2)
        found = await consumer.last_message_id()
        assert (found.last_message_id.ledger, found.last_message_id.entry) == (ids[4].ledger, ids[4].entry)
        await consumer.ack(ids[2], cumulative=True)
        mark = (await consumer.last_message_id()).consumer_mark_delete_position
        assert mark is not None
        assert (mark.ledger, mark.entry) == (ids[2].ledger, ids[2].entry)

    talk(simulation)


def test_a_seek_to_a_place_in_the_view_goes_there() -> None:
    async def simulation(world: World) -> None:
        client, ids = await compacted(world)
        consumer = await client.subscribe(T, "s", read_compacted=True)
        await consumer.seek(ids[3])
        consumer = await client.subscribe(T, "s", read_compacted=True)
        assert await read(consumer, 1) == [(ids[4], b"1")]

    talk(simulation)
