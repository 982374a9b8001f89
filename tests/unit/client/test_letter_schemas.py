"""Which schema the copies of messages have whose topic's schema changed, in virtual time against a whole broker."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from magnetar.client.aio.consumers.letter_producer import (
    PRODUCERS_MAX,
    LetterAddress,
    LetterOutlet,
    LetterProducers,
)
from magnetar.client.errors import AlreadyClosedError
from magnetar.client.machines.message import Message
from magnetar.client.machines.outgoing.outgoing_message import OutgoingMessage
from magnetar.client.machines.redelivery.dead_letter_policy import ConsumerDeadLetterPolicy
from magnetar.client.values.auto_schemas import AutoConsumeSchema
from magnetar.client.values.avro_schema import AvroSchema
from magnetar.model.errors import InvalidValueError
from magnetar.model.schemas import SchemaDefinition
from magnetar.protocol import commands as c
from magnetar.protocol.commands import InitialPosition
from tests.sim.world import T
from tests.support.delivery_stage import DLQ, RETRY, Stage, nothing, play

_OLD = AvroSchema(None, {"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]})
_NEW = AvroSchema(
    None,
    {
        "type": "record",
        "name": "R",
        "fields": [{"name": "b", "type": "string", "default": "none"}, {"name": "a", "type": "string"}],
    },
)
_VALUES = [{"a": "older"}, {"b": "newer", "a": "new"}, {"a": "old again"}]
_READ = [{"b": "none", "a": "older"}, {"b": "newer", "a": "new"}, {"b": "none", "a": "old again"}]


async def _sent(stage: Stage) -> None:
    for schema, value in zip((_OLD, _NEW, _OLD), _VALUES, strict=True):
        async with await stage.client.create_producer(T, schema=schema) as producer:
            await producer.send(value)


async def _values(stage: Stage, topic: str, schema: Any) -> list[dict[str, str]]:
    consumer = await stage.client.subscribe(topic, "reviewer", schema=schema, initial_position=InitialPosition.Earliest)
    found = [(await consumer.receive(1_000)).value() for _ in _VALUES]
    await nothing(consumer, 5)
    await consumer.unsubscribe()
    return _sorted(found)


def _sorted(values: list[Any]) -> list[dict[str, str]]:
    return sorted((dict(one) for one in values), key=lambda one: one["a"])


@pytest.mark.parametrize("schema", [_NEW, AutoConsumeSchema()], ids=["the newest", "any"])
def test_a_dead_letter_has_the_schema_that_it_was_written_with(schema: Any) -> None:
    """Its bytes are copied as they are, so those of an older version are no value of the consumer's schema."""

    async def story(stage: Stage) -> None:
        await _sent(stage)
        policy = ConsumerDeadLetterPolicy(1, initial_subscription_name="review")
        consumer = await stage.subscribe(
            schema=schema, consumer_name="worker", negative_ack_redelivery_delay_ms=100, dead_letter_policy=policy
        )
        for _ in range(2 * len(_VALUES)):
            await consumer.negative_acknowledge(await consumer.receive(1_000))
        await nothing(consumer, 5)
        assert await _values(stage, DLQ, AutoConsumeSchema()) == _sorted(_VALUES)
        assert await _values(stage, DLQ, _NEW) == _sorted(_READ)
        names = {one.producer_name() for one in await stage.all_of(DLQ)}
        assert len(names) == 2 and all(one.startswith(f"{T}-sub-worker-") and one.endswith("-DLQ") for one in names), (
            names
        )
        assert stage.backlog() == 0

    play(story)


@pytest.mark.parametrize("schema", [_NEW, AutoConsumeSchema()], ids=["the newest", "any"])
def test_a_retry_has_the_schema_that_it_was_written_with(schema: Any) -> None:
    async def story(stage: Stage) -> None:
        await _sent(stage)
        consumer = await stage.subscribe(
            schema=schema, retry_enable=True, dead_letter_policy=ConsumerDeadLetterPolicy(1)
        )
        for _ in _VALUES:
            await consumer.reconsume_later(await consumer.receive(1_000), 100)
        again = [await consumer.receive(1_000) for _ in _VALUES]
        assert {one.topic_name() for one in again} == {RETRY}
        expected = _READ if schema is _NEW else _VALUES
        assert _sorted([one.value() for one in again]) == _sorted(expected)
        for one in again:
            await consumer.reconsume_later(one, 100)
        assert await _values(stage, DLQ, _NEW) == _sorted(_READ)
        assert stage.backlog() == 0 and stage.backlog(RETRY) == 0

    play(story)


def test_many_versions_have_few_producers() -> None:
    """A topic may have any number of versions, and a broker may allow few producers."""
    count = PRODUCERS_MAX + 3
    fields = [{"name": f"f{number}", "type": "string", "default": ""} for number in range(count)]
    schemas = [
        AvroSchema(None, {"type": "record", "name": "R", "fields": fields[: number + 1]}) for number in range(count)
    ]

    async def story(stage: Stage) -> None:
        consumer = await stage.subscribe(
            schema=AutoConsumeSchema(), dead_letter_policy=ConsumerDeadLetterPolicy(1), retry_enable=True
        )
        for round_ in "first", "second":
            for schema in schemas:
                async with await stage.client.create_producer(T, schema=schema) as producer:
                    await producer.send({"f0": round_})
                await consumer.reconsume_later(await consumer.receive(1_000), 1_000_000)
            assert len(stage.world.machine.broker.service.topics[RETRY].producers) == PRODUCERS_MAX
        found = await stage.all_of(RETRY)
        versions = [one.schema_version() for one in found]
        assert len(set(versions)) == count and versions == versions[:count] * 2
        assert stage.backlog() == 0
        await consumer.close()
        await asyncio.sleep(1)
        assert not len(stage.world.machine.broker.service.topics[RETRY].producers)

    play(story)


def test_a_letter_whose_schema_comes_after_the_end_opens_no_producer() -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def schema_of(topic: str, version: bytes) -> SchemaDefinition:
        asked.set()
        await go_on.wait()
        raise InvalidValueError("it is gone")

    async def open_outlet(address: LetterAddress) -> LetterOutlet:
        pytest.fail("a producer that nothing closes")

    class Original:
        def schema_version(self) -> bytes:
            return b"1"

        def topic_name(self) -> str:
            return T

    async def story() -> None:
        address = LetterAddress(DLQ, schema=c.Schema("R", b"{}", c.SchemaType.AVRO))
        producers = LetterProducers(open_outlet, address, schema_of)
        original: Message[Any] = Original()  # type: ignore[assignment]
        posting = asyncio.create_task(producers.post(OutgoingMessage(b""), original))
        await asked.wait()
        await producers.close()
        go_on.set()
        with pytest.raises(AlreadyClosedError):
            _ = await posting

    asyncio.run(story())
