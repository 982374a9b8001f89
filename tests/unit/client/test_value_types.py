"""What a type checker sees of values: mypy reads this file with all others; nothing here needs a broker.

Each wrong line carries the error that it must have, and mypy complains of one that has none.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, TypedDict, assert_type

from pydantic import BaseModel

import magnetar
from magnetar import aio, schema


@dataclass
class Order:
    number: int


class Model(BaseModel):
    name: str


class Point(TypedDict):
    x: float


async def with_asyncio(client: aio.Client, topic: str) -> None:
    """Producers, consumers, readers and messages are of the schema's values, of bytes without one."""
    producer = await client.create_producer(topic, schema=schema.AvroSchema(Order))
    assert_type(producer, aio.Producer[Order])
    await producer.send(Order(1))
    await producer.send(None)
    await producer.send(b"raw")  # type: ignore[arg-type]
    consumer = await client.subscribe(topic, "s", schema=schema.JsonSchema(Model))
    assert_type(consumer, aio.Consumer[Model])
    message = await consumer.receive()
    assert_type(message, aio.Message[Model])
    assert_type(message.value(), Model)
    assert_type(message.data(), bytes)
    number: int = message.value()  # type: ignore[assignment]
    assert_type(consumer.receive_nowait(), aio.Message[Model] | None)
    assert_type(await consumer.batch_receive(), list[aio.Message[Model]])
    reader = await client.create_reader(topic, aio.MessageId.earliest, schema=schema.StringSchema())
    assert_type(reader, aio.Reader[str])
    assert_type((await reader.read_next()).value(), str)
    plain = await client.create_producer(topic)
    assert_type(plain, aio.Producer[bytes])
    await plain.send("text")  # type: ignore[arg-type]
    assert_type((await (await client.subscribe(topic, "s")).receive()).value(), bytes)
    del number


def with_threads(client: magnetar.Client, topic: str) -> None:
    """Use each type with the blocking client."""
    pair = schema.KeyValueSchema(schema.StringSchema(), schema.AvroSchema(Point))
    producer = client.create_producer(topic, schema=pair)
    producer.send(schema.KeyValue("k", Point(x=1.0)))
    producer.send("k")  # type: ignore[arg-type]
    message = client.subscribe(topic, "s", schema=pair).receive()
    assert_type(message, aio.Message[schema.KeyValue[str, Point]])
    assert_type(message.value().key, str)
    assert_type(client.create_reader(topic, aio.MessageId.earliest).read_next().value(), bytes)
    generic = client.subscribe(topic, "s", schema=schema.AutoConsumeSchema())
    assert_type(generic.receive().value(), Any)


def of_definitions() -> None:
    """Without a class values are dicts."""
    assert_type(schema.AvroSchema(None, {"type": "record", "name": "R", "fields": []}).decode(b""), dict[str, Any])
    assert_type(magnetar.schema.BytesSchema().decode(b""), bytes)


def test_the_checks_stand_here() -> None:
    """mypy reads them; run, those that need no broker hold, too."""
    of_definitions()
    assert inspect.iscoroutinefunction(with_asyncio) and callable(with_threads)
