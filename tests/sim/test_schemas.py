"""An answered schema version is durable, stays what it was, and is never given to another schema."""

from __future__ import annotations

import asyncio
import json

import pytest

from magnetar.broker.schema_registry import SchemaRegistry
from magnetar.metadata.schemas import SchemaStore
from magnetar.model.errors import ServerError
from magnetar.model.names import TopicName
from magnetar.model.schemas import SchemaDefinition, SchemaId, SchemaVersion
from magnetar.protocol import commands as c
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.rawclient import DisconnectedError, RawClient, RawClientError
from tests.sim.world import World, caught, run_seeds
from tests.support.late_metadata import late_metadata

TOPICS = [f"persistent://public/default/{name}" for name in ("a", "b")]


def definition(number: int) -> bytes:
    """Any two of them are compatible with each other."""
    field = {"name": f"f{number}", "type": "int", "default": 0}
    return json.dumps({"type": "record", "name": "R", "fields": [field]}).encode()


class Ledger:
    """The schema versions of one topic that clients have been answered."""

    def __init__(self) -> None:
        self.answered: dict[int, bytes] = {}
        self.highest = -1
        """The highest of all numbers given, deletions included."""
        self.deleted_until = -1
        """Versions up to this one are gone, on purpose."""
        self.unanswered: set[bytes] = set()
        """Schemas of requests that a crash cut off: they may have got a number that no client received yet."""

    def told(self, version: int, data: bytes, highest_before: int) -> None:
        """Somebody who asked when ``highest_before`` had been given got this version."""
        assert version > self.deleted_until, f"version {version} was deleted"
        known = self.answered.get(version)
        assert known in (None, data), f"version {version} was given to two schemas"
        older = known is not None or data in self.unanswered
        assert older or version > highest_before, f"{version} is given after {highest_before}"
        self.answered[version] = data
        live = [v for v, other in self.answered.items() if other == data and v > self.deleted_until]
        assert live == [version], f"one schema has versions {live}"
        self.highest = max(self.highest, version)


async def connection() -> RawClient:
    while True:
        try:
            client = await RawClient.open(HOST, PORT)
            await client.connect()
            return client
        except (OSError, DisconnectedError, TimeoutError):
            await asyncio.sleep(0.1)


async def register(world: World, topic: str, ledger: Ledger, rounds: int) -> None:
    """Producers that come with one schema or another, and sometimes GET_OR_CREATE_SCHEMA."""
    rng = world.rng
    client = await connection()
    while rounds:
        data = definition(rng.randrange(12))
        given = c.Schema("s", data, c.SchemaType.AVRO)
        highest = ledger.highest
        try:
            if rng.random() < 0.3:
                asked = c.CommandGetOrCreateSchema(client.new_id(), topic, given)
                answer = await client.request(asked, c.CommandGetOrCreateSchemaResponse)
                if answer.error is ServerError.TopicNotFound:
                    await client.producer(topic)
                    continue
                assert answer.error is None, answer
                version = answer.schema_version
            else:
                producer = await client.producer(topic, schema=given)
                version = producer.opened.schema_version
                await producer.close()
        except (DisconnectedError, TimeoutError, RawClientError) as error:
            assert not isinstance(error, RawClientError) or error.code is ServerError.ServiceNotReady, error
            ledger.unanswered.add(data)
            client = await connection()
            continue
        assert version is not None
        ledger.told(int.from_bytes(version, "big"), data, highest)
        rounds -= 1
        await asyncio.sleep(rng.uniform(0, 0.1))
    await client.close()


async def look(topic: str, ledger: Ledger) -> None:
    """Every version that was answered and not deleted is there, as it was."""
    client = await connection()
    for version, data in ledger.answered.items():
        asked = c.CommandGetSchema(client.new_id(), topic, version.to_bytes(8, "big"))
        found = await client.request(asked, c.CommandGetSchemaResponse)
        if version <= ledger.deleted_until:
            assert found.error is ServerError.TopicNotFound, found
        else:
            assert found.schema is not None, f"version {version} is gone: {found}"
            assert found.schema.schema_data == data, f"version {version} has changed"
    await client.close()


async def versions(world: World) -> None:
    """Two topics, several clients each, crashes, restarts and deletions."""
    await world.boot()
    ledgers = {topic: Ledger() for topic in TOPICS}
    for _ in range(4):
        running = [register(world, topic, ledger, 6) for topic, ledger in ledgers.items() for _ in range(2)]
        tasks = [world.loop.create_task(one) for one in running]
        await asyncio.sleep(world.rng.uniform(0.0, 0.5))
        await (world.crash() if world.rng.random() < 0.7 else world.restart())
        await asyncio.gather(*tasks)
        for topic, ledger in ledgers.items():
            await look(topic, ledger)
        topic = world.rng.choice(TOPICS)
        ledger = ledgers[topic]
        if world.rng.random() < 0.5:
            # as an administrator would, through REST
            ledger.deleted_until = await world.machine.broker.service.schemas.delete(TopicName.parse(topic))
            assert ledger.deleted_until > ledger.highest, "a deletion has no number of its own"
            ledger.highest = ledger.deleted_until
    for topic, ledger in ledgers.items():
        await look(topic, ledger)


def test_an_answered_version_stays() -> None:
    run_seeds(versions, 8)


def test_with_a_metadata_store_that_answers_late() -> None:
    """An answered version stays what it was, also when two clients register at the same moment (rule 10.4)."""
    run_seeds(versions, 6, tamper=late_metadata)


def test_a_version_that_is_only_in_memory_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def forgetful(
        self: SchemaStore, schema: SchemaId, given: SchemaDefinition, now_ms: int, *, deleted: bool = False
    ) -> SchemaVersion:
        history = self.history(schema)
        made = SchemaVersion(history[-1].version + 1 if history else 0, given, now_ms, deleted)
        self._hold(schema, (*history, made))
        return made

    monkeypatch.setattr(SchemaStore, "append", forgetful)
    caught(versions, lambda broker: None)


def test_numbers_that_begin_anew_after_a_deletion_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    delete = SchemaRegistry.delete

    async def purge(self: SchemaRegistry, topic: TopicName) -> int:
        number = await delete(self, topic)
        await self.purge(topic)
        return number

    monkeypatch.setattr(SchemaRegistry, "delete", purge)
    caught(versions, lambda broker: None)


def test_two_versions_of_one_schema_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("identical", "same"):
        monkeypatch.setattr(f"magnetar.broker.schema_registry.{name}", lambda versions, new: None)
    caught(versions, lambda broker: None)
