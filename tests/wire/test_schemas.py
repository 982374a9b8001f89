"""Schemas in commands: versions in answers, who is refused, bad input (rules of group 10)."""

from __future__ import annotations

import asyncio
import json
import random

import pytest

from magnetar.model.errors import ServerError
from magnetar.model.names import NamespaceName, TopicName
from magnetar.protocol import commands as c
from magnetar.testing.rawclient import RawClient, RawClientError
from tests.wire.bench import Wires, on_broker

T = "persistent://public/default/t"
LONG = "org.apache.pulsar.broker.service.schema.exceptions.IncompatibleSchemaException"
STRING = c.Schema("s", b"", c.SchemaType.STRING)


def avro(**fields: str) -> c.Schema:
    """Field names and types; a type with ``=0`` has that default."""
    shown = [
        {"name": name, "type": kind.removesuffix("=0"), **({"default": 0} if kind.endswith("=0") else {})}
        for name, kind in fields.items()
    ]
    return c.Schema("s", json.dumps({"type": "record", "name": "R", "fields": shown}).encode(), c.SchemaType.AVRO)


A, MORE, MORE_DEFAULT = avro(a="string"), avro(a="string", b="int"), avro(a="string", b="int=0")


async def refused(client: RawClient, topic: str, schema: c.Schema | None, *, consumer: bool = False) -> str:
    with pytest.raises(RawClientError) as error:
        if consumer:
            await client.subscribe(topic, "refused", schema=schema)
        else:
            await client.producer(topic, schema=schema)
    assert error.value.code is ServerError.IncompatibleSchema
    return error.value.message


async def get(client: RawClient, version: bytes | None = None, topic: str = T) -> c.CommandGetSchemaResponse:
    return await client.request(c.CommandGetSchema(client.new_id(), topic, version), c.CommandGetSchemaResponse)


def number(value: int) -> bytes:
    return value.to_bytes(8, "big")


def test_producers_get_the_version_of_their_schema() -> None:
    """PRODUCER_SUCCESS carries the version of the producer's schema, empty without one (rules 10.3, 10.4 and 10.9)."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        spaced = c.Schema("x", json.dumps(json.loads(A.schema_data), indent=2).encode(), A.type)
        for schema, version in ((A, 0), (spaced, 0), (MORE_DEFAULT, 1), (A, 0)):
            assert (await client.producer(T, schema=schema)).opened.schema_version == number(version)
        assert (await client.producer(T)).opened.schema_version == b""
        found = await get(client)
        assert found.schema_version == number(1)
        assert found.schema == c.Schema("public/default/t", MORE_DEFAULT.schema_data, c.SchemaType.AVRO)
        first = await get(client, number(0), f"{T}-partition-7")
        assert first.schema is not None
        assert first.schema.schema_data == A.schema_data
        for wanted, code in ((number(2), 11), (b"\xff" * 8, 11), (b"", 18), (b"\0\0\0\1", 18), (b"\0" * 9, 18)):
            missing = await get(client, wanted)
            assert (missing.error, missing.schema) == (ServerError(code), None)
        assert (await get(client, topic="bad://x")).error is ServerError.InvalidTopicName

    on_broker(test)


def test_an_incompatible_schema_is_refused_with_pulsars_text() -> None:
    """An incompatible schema is refused with the beginning of Pulsar's text twice, then field and reason; the producer
    id stays free (rule 10.5)."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        await client.producer(T, schema=A)
        text = await refused(client, T, MORE)
        begin = f"{LONG}: Error during schema compatibility check with strategy FULL: org.apache.avro."
        assert text.startswith(begin)
        assert f" caused by {LONG}: Error during" in text
        assert "field b: was not written and the reader has no default for it (rule: a field" in text
        exists = "Incompatible schema: exists schema type AVRO, new schema type STRING"
        assert await refused(client, T, STRING) == f"{LONG}: {exists} caused by {LONG}: {exists}"
        assert await refused(client, T, STRING, consumer=True) == exists
        assert "strategy BACKWARD" in await refused(client, T, MORE, consumer=True)
        topic = wires.world.machine.broker.service.topics[T]
        assert "refused" not in topic.subscriptions
        assert len(topic.producers) == 1

    on_broker(test)


def test_consumers_register_on_idle_topics_only() -> None:
    """A consumer's schema is registered on an idle topic and checked on any other (rules 10.7 and 10.8)."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        auto = c.Schema("s", b"", c.SchemaType.AUTO_CONSUME)
        await client.subscribe(T, "auto", schema=auto)
        assert (await get(client)).error is ServerError.TopicNotFound
        await client.subscribe(T, "s", schema=STRING)
        found = await get(client)
        assert found.schema is not None
        assert found.schema.type is c.SchemaType.STRING
        text = "Failed to add schema to an active topic with empty(BYTES) schema: new schema type STRING"
        for name in ("producer", "consumer", "data"):
            topic = f"persistent://public/default/{name}"
            if name == "producer":
                await client.producer(topic)
            elif name == "consumer":
                await client.subscribe(topic, "plain")
            else:
                producer = await client.producer(topic)
                await producer.publish(b"x")
                await producer.close()
            assert await refused(client, topic, STRING, consumer=True) == text
            assert (await client.producer(topic, schema=STRING)).opened.schema_version == number(0)
            await client.subscribe(topic, "now", schema=STRING)

    on_broker(test)


def test_policies() -> None:
    """Policies decide which schemas are accepted; a change counts for the next client (rules 10.4, 10.6 and 10.12)."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        namespaces = wires.world.machine.broker.resources.namespaces
        default = NamespaceName.parse("public/default")
        await namespaces.update(default, is_allow_auto_update_schema=False)
        assert (await refused(client, T, A)).endswith("Schema not found and schema auto updating is disabled.")
        await namespaces.update(default, is_allow_auto_update_schema=True, schema_validation_enforced=True)
        await client.producer(T, schema=A)
        assert "without a schema to topics with a schemawhen" in await refused(client, T, None)
        await client.subscribe(T, "s")
        await client.producer(f"{T}2")
        await namespaces.update(default, schema_compatibility_strategy="FORWARD", is_allow_auto_update_schema=False)
        assert (await client.producer(T, schema=A)).opened.schema_version == number(0)
        await namespaces.update(default, is_allow_auto_update_schema=True)
        assert (await client.producer(T, schema=MORE)).opened.schema_version == number(1)

    on_broker(test)


def test_system_topics_have_a_strategy_of_their_own() -> None:
    async def test(wires: Wires) -> None:
        await wires.world.machine.broker.resources.topic_policies.update(TopicName.parse(T), "maxProducers", 9)
        client = await wires.open()
        topic = "persistent://public/default/__change_events"
        assert (await client.producer(topic, schema=A)).opened.schema_version == number(0)
        assert (await client.producer(topic, schema=STRING)).opened.schema_version == number(1)

    on_broker(test)


def test_both_domains_share_a_schema() -> None:
    """A persistent and a non-persistent topic of one name share a schema; deleting one of them does not take it from
    the other (rule 10.2)."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        other = T.replace("persistent", "non-persistent")
        for topic in (T, other):
            assert (await client.producer(topic, schema=A)).opened.schema_version == number(0)
        assert (await refused(client, other, STRING)).startswith(LONG)
        service = wires.world.machine.broker.service
        await service.delete_nonpersistent(TopicName.parse(other))
        assert (await get(client)).schema is not None
        await service.delete(TopicName.parse(T), force=True)
        await asyncio.sleep(1)
        assert (await get(client)).error is ServerError.TopicNotFound

    on_broker(test)


def test_get_or_create() -> None:
    """GET_OR_CREATE_SCHEMA registers a schema as a producer would (rule 10.10)."""

    async def test(wires: Wires) -> None:
        client = await wires.open()

        async def ask(topic: str, schema: c.Schema) -> c.CommandGetOrCreateSchemaResponse:
            command = c.CommandGetOrCreateSchema(client.new_id(), topic, schema)
            return await client.request(command, c.CommandGetOrCreateSchemaResponse)

        missing = await ask(T, A)
        assert (missing.error, missing.message) == (ServerError.TopicNotFound, f"Topic not found {T}")
        await client.producer(T)
        for schema, version in ((A, number(0)), (A, number(0)), (MORE_DEFAULT, number(1))):
            assert (await ask(T, schema)).schema_version == version
        assert (await ask(T, c.Schema("s", b"", c.SchemaType.NONE))).schema_version == b""
        assert (await ask(T, STRING)).error is ServerError.IncompatibleSchema
        assert (await ask("bad://x", STRING)).error is ServerError.InvalidTopicName

    on_broker(test)


def test_any_definition_is_answered() -> None:
    """Random changes of a definition, of every type, are registered or refused, and the connection goes on."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        rng = random.Random(5)
        kinds = [kind for kind in c.SchemaType if kind >= 0]
        for index in range(400):
            data = bytearray(rng.choice((A.schema_data, b"", b"\0\0\0\1x\0\0\0\0", b'{"type":"object","id":5}')))
            for _ in range(rng.randrange(4)):
                at = rng.randrange(len(data) + 1)
                data[at : at + rng.randrange(3)] = rng.choice((b"", b"\xff", b"{", b"[", b'"', b"null", b'{"type":[]}'))
            properties = (("key.schema.type", rng.choice(("AVRO", "NOPE", ""))),) if rng.random() < 0.5 else ()
            schema = c.Schema("s", bytes(data), rng.choice(kinds), properties)
            topic = f"{T}{index % 40}"
            try:
                if rng.random() < 0.3:
                    await client.subscribe(topic, "s", c.SubType.Shared, schema=schema)
                else:
                    await client.producer(topic, schema=schema)
            except RawClientError as error:
                assert error.code is ServerError.IncompatibleSchema, error

    on_broker(test)
