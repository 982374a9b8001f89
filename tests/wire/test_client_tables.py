"""Tables of the native client at a real broker: what is sent and received, acknowledged, cancelled and refused."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pandas as pd  # type: ignore[import-untyped]  # publishes no types
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]  # the same
import pytest

import magnetar
from magnetar import aio
from magnetar.client.errors import MessageTooLargeError
from magnetar.client.rest import Rest
from magnetar.model.errors import InvalidValueError
from magnetar.model.schemas import SchemaType
from magnetar.protocol import commands as c
from tests.support.live_broker import LiveBroker, free_port, live_broker

Body = Callable[[aio.Client], Awaitable[None]]
_WEB = free_port()
EARLIEST = aio.InitialPosition.Earliest
PERSON = {
    "type": "record",
    "name": "Person",
    "fields": [{"name": "name", "type": ["null", "string"]}, {"name": "age", "type": ["null", "int"]}],
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    with live_broker(tmp_path_factory.mktemp("tables"), maxMessageSize="200000", webServicePort=_WEB) as started:
        yield started


def run(broker: LiveBroker, body: Body) -> None:
    async def main() -> None:
        async with asyncio.timeout(120), aio.Client(broker.url) as client:
            await body(client)

    asyncio.run(main())


def table(first: int, stop: int, size: int = 0) -> pa.Table:
    return pa.table({"value": [b"%06d" % number + bytes(size) for number in range(first, stop)]})


def numbers(found: pa.Table) -> list[int]:
    return [int(value[:6]) for value in found["value"].to_pylist()]


async def subscribed(client: aio.Client, topic: str, **more: Any) -> aio.Consumer:
    return await client.subscribe(topic, "s", initial_position=EARLIEST, **more)


@pytest.mark.parametrize("kind", [aio.CompressionType.NONE, aio.CompressionType.ZSTD])
def test_every_column_goes_the_whole_way(broker: LiveBroker, kind: aio.CompressionType) -> None:
    """Tables are read as messages, and messages as tables."""
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    rows = pa.table(
        {
            "value": pa.array(["a", None, "c"]),
            "__key": pa.array([b"k", b"\xff", None]),
            "__eventTime": pa.array([moment, None, moment], pa.timestamp("ms", "UTC")),
            "__messageProperties": pa.array([[("n", "1")], [], None], pa.map_(pa.string(), pa.string())),
            "__orderingKey": pa.array([b"o", None, None]),
        }
    )

    async def body(client: aio.Client) -> None:
        topic = f"columns-{kind.name}"
        async with await client.create_producer(topic, compression_type=kind) as producer:
            where = await producer.send_table(rows)
            assert where["messages"].to_pylist() == [3] and where["__entryId"].to_pylist() == [0]
            await producer.send(b"alone", {"n": "2"}, "key", event_timestamp=7)
        consumer = await subscribed(client, topic)
        found = await consumer.receive_table(4, 10, metadata="all")
        assert found["value"].to_pylist() == [b"a", None, b"c", b"alone"]
        assert found["__key"].to_pylist() == [b"k", b"\xff", None, b"key"]
        assert found["__eventTime"].to_pylist()[0] == moment and found["__eventTime"].to_pylist()[1] is None
        assert found["__messageProperties"].to_pylist() == [[("n", "1")], [], [], [("n", "2")]]
        assert found["__orderingKey"].to_pylist() == [b"o", None, None, None]
        assert found["__sequenceId"].to_pylist() == [0, 1, 2, 3]
        assert found["__batchSize"].to_pylist() == [3, 3, 3, 0]
        other = await client.subscribe(topic, "messages", initial_position=EARLIEST)
        messages = [await other.receive(10_000) for _ in range(4)]
        assert [one.data() for one in messages] == [b"a", b"", b"c", b"alone"] and messages[1].has_null_value()
        assert [one.key_bytes() for one in messages] == [b"k", b"\xff", b"", b"key"]
        assert messages[0].properties() == {"n": "1"} and messages[0].event_timestamp() == moment.timestamp() * 1000

    run(broker, body)


def test_rows_are_exactly_as_many_as_wanted_and_in_order(broker: LiveBroker) -> None:
    """What of a batch is too much stays for the next call, also for one of another kind."""

    async def body(client: aio.Client) -> None:
        async with await client.create_producer("exact", batching_max_messages=40) as producer:
            await producer.send_table(table(0, 250))
        consumer = await subscribed(client, "exact", receiver_queue_size=50)
        assert numbers(await consumer.receive_table(30, 10)) == list(range(30))
        alone = [int((await consumer.receive(10_000)).data()) for _ in range(15)]
        assert alone == list(range(30, 45))
        assert numbers(await consumer.receive_table(7, 10)) == list(range(45, 52))
        assert int((await consumer.receive(10_000)).data()) == 52
        assert numbers(await consumer.receive_table(190, 10)) == list(range(53, 243))
        assert numbers(await consumer.receive_table(100, 0.05)) == list(range(243, 250))
        empty = await consumer.receive_table(100, 0)
        assert empty.num_rows == 0 and "__ledgerId" in empty.column_names

    run(broker, body)


def test_nothing_is_lost_that_was_not_acknowledged(broker: LiveBroker) -> None:
    """Of two tables one is acknowledged, of a third some rows; the next consumer has all others."""

    async def body(client: aio.Client) -> None:
        async with await client.create_producer("acknowledged", batching_max_messages=10) as producer:
            await producer.send_table(table(0, 65))
            await producer.send(b"000065")
        options: dict[str, Any] = {"consumer_type": aio.ConsumerType.Shared}
        async with await subscribed(client, "acknowledged", **options) as consumer:
            tables = [await consumer.receive_table(20, 10) for _ in range(3)]
            rest = await consumer.receive_table(6, 10)
            await consumer.acknowledge_table(tables[0])
            await consumer.acknowledge_table(tables[2].slice(0, 10))
            await consumer.acknowledge_table(pl.DataFrame(tables[2].slice(10, 4)))
            await consumer.acknowledge_table(rest.slice(5, 1))
            with pytest.raises(InvalidValueError, match=r"column __entryId of the table is gone"):
                await consumer.acknowledge_table(rest.drop_columns(["__entryId"]))
        async with await subscribed(client, "acknowledged", **options) as consumer:
            left = await consumer.receive_table(100, 1)
            # without batchIndexAck a batch comes again as a whole
            assert sorted(numbers(left)) == [*range(20, 40), *range(50, 60), *range(60, 65)]
            with pytest.raises(InvalidValueError, match="cannot be acknowledged cumulatively"):
                await consumer.acknowledge_table(left, cumulative=True)
        async with await client.subscribe("acknowledged", "all", initial_position=EARLIEST) as consumer:
            await consumer.acknowledge_table((await consumer.receive_table(60, 10)), cumulative=True)
        async with await client.subscribe("acknowledged", "all") as consumer:
            assert numbers(await consumer.receive_table(6, 10)) == list(range(60, 66))

    run(broker, body)


def test_a_cancelled_call_takes_nothing_along(broker: LiveBroker) -> None:
    async def body(client: aio.Client) -> None:
        async with await client.create_producer("cancelled", batching_max_messages=10) as producer:
            await producer.send_table(table(0, 35))
            consumer = await subscribed(client, "cancelled", receiver_queue_size=20)
            for turns in (1, 5, 20):
                waiting = asyncio.ensure_future(consumer.receive_table(1_000, 30))
                await asyncio.sleep(turns / 100)
                waiting.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await waiting
            assert int((await consumer.receive(10_000)).data()) == 0
            await producer.send_table(table(35, 40))
            assert numbers(await consumer.receive_table(39, 10)) == list(range(1, 40))

    run(broker, body)


def test_keys_go_where_messages_go(broker: LiveBroker) -> None:
    """Rows of a partitioned topic, its ids, and the order of each key while others send between."""

    rows = pa.table({"value": [b"%06d" % n for n in range(400)], "__key": [f"k{n % 17}" for n in range(400)]})

    async def spread(client: aio.Client) -> None:
        Rest(f"http://127.0.0.1:{_WEB}").ask("PUT", "/admin/v2/persistent/public/default/spread/partitions", 4)
        producer = await client.create_producer("spread", batching_max_messages=20)
        places = {}
        for number in range(17):
            places[f"k{number}".encode()] = (await producer.send(b"first", partition_key=f"k{number}")).topic
        where, *_ = await asyncio.gather(
            producer.send_table(rows), *(producer.send(b"between", partition_key="k1") for _ in range(20))
        )
        assert sum(where["messages"].to_pylist()) == 400 and len(set(where["__topic"].to_pylist())) == 4
        consumer = await subscribed(client, "spread")
        found = await consumer.receive_table(437, 10)
        by_key: dict[bytes, list[int]] = {}
        for row in found.to_pylist():
            assert places[row["__key"]] == row["__topic"]
            if row["value"] not in (b"first", b"between"):
                by_key.setdefault(row["__key"], []).append(int(row["value"]))
        assert all(values == sorted(values) for values in by_key.values()) and sum(map(len, by_key.values())) == 400
        await consumer.acknowledge_table(found)

    run(broker, spread)


def test_schemas_are_columns(broker: LiveBroker) -> None:
    """Values are written and read by the topic's schema; other clients read the same."""
    avro = c.Schema("", json.dumps(PERSON).encode(), SchemaType.AVRO)
    rows = pd.DataFrame({"name": ["Ann", "Bob"], "age": pd.array([41, None], "Int32")})

    async def body(client: aio.Client) -> None:
        async with await client.create_producer("people", schema=avro) as producer:
            await producer.send_table(rows)
            with pytest.raises(InvalidValueError, match="height"):
                await producer.send_table(pa.table({"height": [1.0]}))
        consumer = await subscribed(client, "people", schema=avro)
        found = await consumer.receive_table(2, 10, metadata="none")
        assert found.select(["name", "age"]).to_pylist() == [{"name": "Ann", "age": 41}, {"name": "Bob", "age": None}]

    run(broker, body)


def test_what_cannot_be_sent_is_said(broker: LiveBroker) -> None:
    """The column, what it is and what it can be, or the rows; nothing is sent of a table whose columns are wrong."""

    async def body(client: aio.Client) -> None:
        producer = await client.create_producer("refused")
        wrong: list[tuple[Any, str]] = [
            (pa.table({"text": ["a"]}), r"one column for the value, 'value'; this one has 'text'"),
            (pa.table({"value": [1]}), r"column 'value' is int64; it can be binary or string"),
            (pa.table({"value": ["a"], "__sequence": [1]}), r"column '__sequence' is none that can be sent"),
            (pa.table({"value": ["a"], "__eventTime": ["now"]}), r"'__eventTime' is string; it can be timestamp or"),
            ([1, 2], r"this is list"),
            (pa.Table.from_arrays([pa.array(["a"])] * 2, ["value", "value"]), r"column 'value' more than once"),
            (pa.Table.from_arrays([pa.array(["a"])] * 3, ["value", "__key", "__key"]), r"'__key' more than once"),
        ]
        for given, said in wrong:
            with pytest.raises(InvalidValueError, match=said):
                await producer.send_table(given)
        with pytest.raises(MessageTooLargeError) as caught:
            await producer.send_table(pa.table({"value": [b"000000", b"x" * 300_000]}))
        assert caught.value.__notes__ == ["this was about rows 1 to 1 of the table; those before are sent"]
        await producer.send_table(pl.DataFrame({"value": ["000001", "000002"]}))
        await producer.send_table(pd.DataFrame({"value": ["000003"]}))
        consumer = await subscribed(client, "refused")
        assert numbers(await consumer.receive_table(4, 10)) == [0, 1, 2, 3]
        none = await client.subscribe("refused", "none", receiver_queue_size=0)
        with pytest.raises(InvalidValueError, match="receiver queue"):
            await none.receive_table()
        await producer.close()
        with pytest.raises(aio.AlreadyClosedError):
            await producer.send_table(table(0, 1))

    run(broker, body)


def test_large_values_go_in_chunks(broker: LiveBroker) -> None:
    async def body(client: aio.Client) -> None:
        async with await client.create_producer("chunks", chunking_enabled=True) as producer:
            await producer.send_table(table(0, 3, 500_000))
        consumer = await subscribed(client, "chunks")
        found = await consumer.receive_table(3, 10)
        assert numbers(found) == [0, 1, 2] and {len(value) for value in found["value"].to_pylist()} == {500_006}

    run(broker, body)


def changed(found: pa.Table, column: str, values: Any, kind: pa.DataType | None = None) -> pa.Table:
    """A table with other values in one column."""
    given = values if isinstance(values, list) else [values] * found.num_rows
    return found.set_column(found.column_names.index(column), column, pa.array(given, kind))


def test_a_table_of_messages_that_were_not_given_acknowledges_nothing(broker: LiveBroker) -> None:
    """Whatever the columns of the ids say: an error, and not one of the table's rows is acknowledged."""

    async def body(client: aio.Client) -> None:
        for topic in ("given", "given-2"):
            async with await client.create_producer(topic, batching_max_messages=10) as producer:
                await producer.send_table(table(0, 40))
                await producer.send(b"000040")
        options: dict[str, Any] = {"consumer_type": aio.ConsumerType.Failover}
        consumer = await client.subscribe(["given", "given-2"], "s", initial_position=EARLIEST, **options)
        both = await consumer.receive_table(82, 10)
        await consumer.close()
        consumer, other = await subscribed(client, "given", **options), await subscribed(client, "given-2", **options)
        found, foreign = await consumer.receive_table(25, 10), await other.receive_table(41, 10)
        ledger, entries = found["__ledgerId"][0].as_py(), found["__entryId"].to_pylist()
        others = [row for row in both.to_pylist() if row["__topic"] == other.topics[0]]
        beyond = pa.table({name: [5] if name == "__batchIndex" else found[name][-1:] for name in found.column_names})
        wrong: list[Any] = [
            foreign, pa.Table.from_pylist(others), beyond, pa.concat_tables([found, foreign.slice(0, 1)]),
            changed(found, "__ledgerId", -1), changed(found, "__ledgerId", 2**63 - 1),
            changed(found, "__ledgerId", 2**64 - 1, pa.uint64()), changed(found, "__ledgerId", [ledger] * 24 + [None]),
            changed(found, "__entryId", -1), changed(found, "__entryId", [*entries[:-1], 3]),
            changed(found, "__entryId", [*entries[:-1], 2 ** 62]), changed(found, "__entryId", [1.0] * 25),
            changed(found, "__batchIndex", -1), changed(found, "__batchIndex", 10),
            changed(found, "__batchIndex", 2**62),
            changed(found, "__batchIndex", [2**63 - 1, -(2**63)] + [0] * 23),
            changed(found, "__batchSize", 0), changed(found, "__batchSize", 1), changed(found, "__batchSize", -10),
            changed(found, "__batchSize", 2**62), changed(found, "__batchSize", 1000),
            found.append_column("__ledgerId", found["__ledgerId"]),
            found.append_column("__topic", pa.array(["given"] * 24 + [None])),
            found.append_column("__topic", pa.array([7] * 25)),
            found.append_column("__topic", pa.array(["persistent://public/default/other"] * 25)),
        ]  # fmt: skip
        for number, given in enumerate(wrong):
            for cumulative in (False, True):
                with pytest.raises(InvalidValueError, match=r"receive_table|among the topics|more than once"):
                    await consumer.acknowledge_table(given, cumulative=cumulative)
                    raise AssertionError(f"table {number} was taken")
        await consumer.close()
        consumer = await subscribed(client, "given", **options)
        again = await consumer.receive_table(41, 10)
        assert numbers(again) == list(range(41))
        await consumer.acknowledge_table(again.slice(8, 12))
        await consumer.acknowledge_table(again.take(pa.array([40, 39, 3])))
        await consumer.acknowledge_table(again.slice(0, 0))
        await consumer.close()
        consumer = await subscribed(client, "given", **options)
        # without batchIndexAck a batch comes again as a whole
        assert numbers(await consumer.receive_table(30, 10)) == [*range(10), *range(20, 40)]

    run(broker, body)


def test_a_message_in_chunks_is_acknowledged_as_a_whole(broker: LiveBroker) -> None:
    async def body(client: aio.Client) -> None:
        async with await client.create_producer("chunks-done", chunking_enabled=True) as producer:
            await producer.send_table(table(0, 2, 500_000))
        async with await subscribed(client, "chunks-done") as consumer:
            await consumer.acknowledge_table(await consumer.receive_table(2, 10))
        rest = Rest(f"http://127.0.0.1:{_WEB}")
        stats = rest.ask("GET", "/admin/v2/persistent/public/default/chunks-done/stats")
        assert stats["subscriptions"]["s"]["msgBacklog"] == 0

    run(broker, body)


def test_threads_have_tables_too(broker: LiveBroker) -> None:
    with magnetar.Client(broker.url) as client:
        producer, consumer = client.create_producer("threads"), client.subscribe("threads", "s")
        producer.send_table(table(0, 100))
        assert consumer.receive(10_000).data() == b"000000"
        found = consumer.receive_table(50, 10)
        assert numbers(found) == list(range(1, 51))
        consumer.acknowledge_table(found)
        assert consumer.receive(10_000).data() == b"000051"
