"""Values by schema at a real broker: versions, pairs, what the topic has, and the official client on the other side."""

from __future__ import annotations

import asyncio
import datetime as dt
import enum
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, assert_type

import pulsar  # type: ignore[import-untyped]  # the official client carries no types
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from pulsar import schema as official

import magnetar
from magnetar import aio, schema
from magnetar.model.errors import InvalidValueError
from tests.support.live_broker import LiveBroker, live_broker

Body = Callable[[aio.Client], Awaitable[None]]
EARLIEST = aio.InitialPosition.Earliest
PATIENCE_MS = 10_000


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    with live_broker(tmp_path_factory.mktemp("schemas")) as started:
        yield started


@pytest.fixture(scope="module")
def theirs(broker: LiveBroker) -> Iterator[Any]:
    """The official client."""
    client = pulsar.Client(broker.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    yield client
    client.close()


def run(broker: LiveBroker, body: Body) -> None:
    async def main() -> None:
        async with asyncio.timeout(30), aio.Client(broker.url) as client:
            await body(client)

    asyncio.run(main())


@dataclass
class Order:
    """The first version."""

    number: int
    customer: str


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def later_order() -> type[Any]:
    """Return the second version, which has the same name and one field more."""

    @dataclass
    class Order:
        number: int
        customer: str
        paid: bool | None = None
        lines: list[str] = field(default_factory=list)

    return Order


def test_a_reader_of_today_reads_what_older_and_newer_producers_wrote(broker: LiveBroker) -> None:
    """Each message is decoded by the version it names, in order, and reconnects register nothing twice (rule 10.4)."""
    later = later_order()

    async def body(client: aio.Client) -> None:
        consumer = await client.subscribe("evolving", "s", initial_position=EARLIEST)
        old = await client.create_producer("evolving", schema=schema.AvroSchema(Order))
        new = await client.create_producer("evolving", schema=schema.AvroSchema(later))
        await old.send(Order(1, "ann"))
        await new.send(later(2, "bob", True, ["pears"]))
        await old.send(Order(3, "cid"))
        again = await client.create_producer("evolving", schema=schema.AvroSchema(Order))
        await again.send(Order(4, "dan"))
        plain = [await consumer.receive(PATIENCE_MS) for _ in range(4)]
        assert [one.schema_version() for one in plain] == [number.to_bytes(8, "big") for number in (0, 1, 0, 0)]

        reader = await client.create_reader("evolving", aio.MessageId.earliest, schema=schema.AvroSchema(later))
        found = [(await reader.read_next(PATIENCE_MS)).value() for _ in range(4)]
        assert found == [later(1, "ann"), later(2, "bob", True, ["pears"]), later(3, "cid"), later(4, "dan")]
        older = await client.create_reader("evolving", aio.MessageId.earliest, schema=schema.AvroSchema(Order))
        assert [(await older.read_next(PATIENCE_MS)).value().customer for _ in range(4)] == ["ann", "bob", "cid", "dan"]

    run(broker, body)


def test_what_cannot_be_read_names_the_message_and_stays(broker: LiveBroker) -> None:
    """The error has topic, id, version and cause; the bytes are there, and the message comes again."""

    async def body(client: aio.Client) -> None:
        async with await client.create_producer("spoilt", schema=schema.AvroSchema(Order)) as producer:
            await producer.send(Order(1, "ann"))
        registered = schema.AvroSchema(Order).schema_info().registered()
        async with await client.create_producer("spoilt", schema=registered) as raw:
            await raw.send(b"\x02")
        consumer = await client.subscribe("spoilt", "s", schema=schema.AvroSchema(Order), initial_position=EARLIEST)
        good, bad = await consumer.receive(PATIENCE_MS), await consumer.receive(PATIENCE_MS)
        assert good.value() == Order(1, "ann")
        with pytest.raises(
            schema.SchemaError, match=r"spoilt: the value of message .* of schema version 0 .*ends"
        ) as told:
            bad.value()
        assert (told.value.topic, told.value.schema_version) == (bad.topic_name(), 0)
        assert told.value.message_id == bad.message_id()
        assert bad.data() == b"\x02"
        await consumer.acknowledge(good)
        consumer.redeliver(bad)
        assert (await consumer.receive(PATIENCE_MS)).data() == b"\x02"

    run(broker, body)


def test_pairs_inline_and_separated(broker: LiveBroker) -> None:
    """SEPARATED puts the key into the message's key (rule 10.13); a generic consumer reads both kinds (rule 10.8)."""
    Separated = schema.KeyValueEncodingType.SEPARATED

    async def body(client: aio.Client) -> None:
        inline = schema.KeyValueSchema(schema.StringSchema(), schema.AvroSchema(Order))
        apart = schema.KeyValueSchema(schema.StringSchema(), schema.JsonSchema(Order), Separated)
        for topic, pair in (("pairs-inline", inline), ("pairs-apart", apart)):
            async with await client.create_producer(topic, schema=pair) as producer:
                await producer.send(schema.KeyValue("k", Order(1, "ann")))
            consumer = await client.subscribe(topic, "s", schema=pair, initial_position=EARLIEST)
            message = await consumer.receive(PATIENCE_MS)
            assert message.value() == schema.KeyValue("k", Order(1, "ann"))
            assert message.key_bytes() == (b"" if pair is inline else b"k")
            auto = await client.subscribe(topic, "auto", schema=schema.AutoConsumeSchema(), initial_position=EARLIEST)
            pair_found = (await auto.receive(PATIENCE_MS)).value()
            assert pair_found.key == "k"
            assert dict(pair_found.value) == {"number": 1, "customer": "ann"}
        keyed = await client.create_producer("pairs-apart", schema=apart)
        with pytest.raises(InvalidValueError, match="give no partition_key"):
            await keyed.send(schema.KeyValue("k", Order(1, "ann")), partition_key="other")

    run(broker, body)


def test_auto_schemas_take_what_the_topic_has(broker: LiveBroker) -> None:
    """Bytes that are no value of the topic's schema are refused before they are sent; without a schema all pass."""

    async def body(client: aio.Client) -> None:
        avro = schema.AvroSchema(Order)
        async with await client.create_producer("auto", schema=avro) as producer:
            await producer.send(Order(1, "ann"))
        checked = await client.create_producer("auto", schema=schema.AutoProduceBytesSchema())
        await checked.send(avro.encode(Order(2, "bob")))
        with pytest.raises(schema.SchemaError, match="no value of the topic's AVRO"):
            await checked.send(b"\x02")
        consumer = await client.subscribe("auto", "s", schema=schema.AutoConsumeSchema(), initial_position=EARLIEST)
        messages = [await consumer.receive(PATIENCE_MS) for _ in range(2)]
        assert [message.value()["customer"] for message in messages] == ["ann", "bob"]
        assert messages[1].schema_version() == messages[0].schema_version()

        plain = await client.create_producer("no-schema", schema=schema.AutoProduceBytesSchema())
        await plain.send(b"\x02")
        bare = await client.subscribe("no-schema", "s", schema=schema.AutoConsumeSchema(), initial_position=EARLIEST)
        message = await bare.receive(PATIENCE_MS)
        assert (message.value(), message.schema_version()) == (b"\x02", None)

    run(broker, body)


def test_a_value_that_does_not_fit_is_refused_before_anything_is_queued(broker: LiveBroker) -> None:
    """The error names topic, class and field; another kind of schema is refused with what to give."""

    async def body(client: aio.Client) -> None:
        producer = await client.create_producer("strict", schema=schema.AvroSchema(Order))
        with pytest.raises(
            schema.SchemaError, match="strict: record Order: field customer: string is expected, not int"
        ):
            await producer.send(Order(1, 7))  # type: ignore[arg-type]  # on purpose
        with pytest.raises(schema.ValueTypeError, match="Order is expected, not bytes"):
            await producer.send_nowait(b"raw")  # type: ignore[arg-type]  # on purpose
        assert producer.last_sequence_id() == -1
        await producer.send(None)
        with pytest.raises(
            InvalidValueError, match=r"schema: an object of magnetar\.schema is expected.*pulsar\.schema"
        ):
            await client.create_producer("strict", schema=official.StringSchema())
        consumer = await client.subscribe("strict", "s", schema=schema.AvroSchema(Order), initial_position=EARLIEST)
        message = await consumer.receive(PATIENCE_MS)
        assert message.has_null_value()
        assert message.value() is None

    run(broker, body)


def declared(of: Any) -> tuple[Any, Any]:
    """Return the classes of a record and its item, declared with the official client or with ours."""

    class Item(of.Record):  # type: ignore[misc]  # of either
        sku = of.String(required=True)
        count = of.Integer(default=1, required=True, required_default=True)

    class Shirt(of.Record):  # type: ignore[misc]  # of either
        _avro_namespace = "shop"
        name = of.String(required=True)
        price = of.Double()
        item = Item()
        items = of.Array(Item())
        tags = of.Map(of.String())
        colour = Colour
        raw = of.Bytes()
        done = of.Boolean()

    return Shirt, Item


DECLARED = {of: declared(of) for of in (official, schema)}


def record(of: Any) -> Any:
    """Return one value of the declared record."""
    made, item = DECLARED[of]
    return made(
        name="shirt", price=2.5, item=item(sku="a", count=3), items=[item(sku="b")], tags={"size": "L"},
        colour=Colour.BLUE, raw=b"raw", done=True,
    )  # fmt: skip


def plain(value: Any) -> Any:
    """Return a record of either client as a dict."""
    fields = getattr(value, "_fields", None)
    if fields is None:
        return [plain(one) for one in value] if isinstance(value, list) else value
    return {name: plain(getattr(value, name)) for name in fields}


PAIRS: list[tuple[str, Any, Any, Any, Any]] = [
    ("string", official.StringSchema(), schema.StringSchema(), "grüß", "grüß"),
    ("bytes", official.BytesSchema(), schema.BytesSchema(), b"\x00\xff", b"\x00\xff"),
    (
        "protobuf", official.ProtobufNativeSchema(Timestamp), schema.ProtobufNativeSchema(Timestamp),
        Timestamp(seconds=7), Timestamp(seconds=7),
    ),
    *(
        (
            kind, getattr(official, name)(DECLARED[official][0]), getattr(schema, name)(DECLARED[schema][0]),
            None, None,
        )
        for kind, name in (("avro", "AvroSchema"), ("json", "JsonSchema"))
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "their_schema", "our_schema", "their_value", "our_value"), PAIRS, ids=lambda one: str(one)[:12]
)
def test_both_clients_read_each_other(
    broker: LiveBroker, theirs: Any, kind: str, their_schema: Any, our_schema: Any, their_value: Any, our_value: Any
) -> None:
    """The same definition is registered, once, and values pass both ways (rule 10.4)."""
    topic = f"interop-{kind}"
    if their_value is None:
        their_value, our_value = record(official), record(schema)
    their_consumer = theirs.subscribe(topic, "theirs", schema=their_schema)

    async def body(client: aio.Client) -> None:
        consumer = await client.subscribe(topic, "ours", schema=our_schema)
        producer = await client.create_producer(topic, schema=our_schema)
        their_producer = await asyncio.to_thread(theirs.create_producer, topic, schema=their_schema)
        await producer.send(our_value)
        await asyncio.to_thread(their_producer.send, their_value)
        messages = [await consumer.receive(PATIENCE_MS) for _ in range(2)]
        assert [plain(message.value()) for message in messages] == [plain(our_value)] * 2
        versions = {message.schema_version() for message in messages}
        assert versions == ({None} if kind == "bytes" else {bytes(8)})
        their_producer.close()

    run(broker, body)
    found = [their_consumer.receive(PATIENCE_MS) for _ in range(2)]
    assert [plain(message.value()) for message in found] == [plain(their_value)] * 2
    their_consumer.close()


def test_times_and_numbers(broker: LiveBroker) -> None:
    """A primitive type is registered by its name alone, and its values come back as they were."""
    moment = dt.datetime(2026, 5, 17, 12, 30, 15, 123000, tzinfo=dt.UTC)

    async def body(client: aio.Client) -> None:
        producer = await client.create_producer("instants", schema=schema.InstantSchema())
        assert_type(producer, aio.Producer[dt.datetime])
        await producer.send(moment)
        consumer = await client.subscribe("instants", "s", schema=schema.InstantSchema(), initial_position=EARLIEST)
        message = await consumer.receive(PATIENCE_MS)
        assert_type(message, aio.Message[dt.datetime])
        assert message.value() == moment
        generic = await client.create_reader("instants", aio.MessageId.earliest, schema=schema.AutoConsumeSchema())
        assert (await generic.read_next(PATIENCE_MS)).value() == moment

    run(broker, body)


def test_the_blocking_client_passes_schemas_on(broker: LiveBroker) -> None:
    """Values of every way to send are encoded, bytes that are none are refused, and messages give values."""
    with magnetar.Client(broker.url) as client:
        consumer = client.subscribe("threads", "s", schema=schema.AvroSchema(Order))
        producer = client.create_producer("threads", schema=schema.AvroSchema(Order))
        producer.send(Order(1, "ann"))
        producer.send_async(Order(2, "bob"), None)
        producer.flush()
        with pytest.raises(TypeError, match="Order is expected, not bytes"):
            producer.send_async(b"raw", None)  # type: ignore[arg-type]  # on purpose
        assert [consumer.receive(PATIENCE_MS).value() for _ in range(2)] == [Order(1, "ann"), Order(2, "bob")]
