"""Entries to Arrow: the exact schema Spark demands, every column."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pytest

from magnetar.columnar.arrow_decoder import (
    METADATA,
    STANDARD,
    ArrowDecoder,
    arrow_schema,
    chosen_columns,
    sql_schema,
)
from magnetar.columnar.values import Binary, Text, ValueDecoder
from magnetar.model.errors import InvalidValueError
from magnetar.protocol.entries import EntryMetadata, build_entry
from tests.support.batch_writer import BatchWriter

TOPIC = "persistent://public/default/t-partition-3"
AT = 1_700_000_000_123
BINARY = ValueDecoder(Binary())
STRING = ValueDecoder(Text())


def batches(decoder: ArrowDecoder, *entries: bytes) -> list[Any]:
    found = []
    for number, data in enumerate(entries):
        found += list(decoder.add(7, number, data, index=100 + number))
    return [*found, *decoder.flush()]


def a_batch() -> bytes:
    writer = BatchWriter("producer")
    (batch,) = writer.pack(AT, [b"a", None], [40, 41], [b"k", None], [AT + 1, 0], [(("x", "1"), ("y", "2")), ()])
    return batch.entry


def test_every_column_of_a_batch_and_a_single_message() -> None:
    single = build_entry(EntryMetadata("other", 5, AT, ordering_key=b"o", schema_version=b"v1"), b"s")
    (found,) = batches(ArrowDecoder(TOPIC, STRING, tuple(METADATA)), a_batch(), single)
    assert found.schema.equals(arrow_schema(STRING.schema, tuple(METADATA)))
    utc = dt.UTC
    published = dt.datetime.fromtimestamp(AT // 1000, utc) + dt.timedelta(milliseconds=123)
    assert found.to_pydict() == {
        "value": ["a", None, "s"],
        "__key": [b"k", None, None],
        "__topic": [TOPIC] * 3,
        "__messageId": [
            bytes.fromhex("0807 1000 1803 2000 3002"),
            bytes.fromhex("0807 1000 1803 2001 3002"),
            bytes.fromhex("0807 1001 1803"),
        ],
        "__publishTime": [published] * 3,
        "__eventTime": [published + dt.timedelta(milliseconds=1), None, None],
        "__messageProperties": [[("x", "1"), ("y", "2")], [], []],
        "__partition": [3, 3, 3],
        "__ledgerId": [7, 7, 7],
        "__entryId": [0, 0, 1],
        "__batchIndex": [0, 1, 0],
        "__batchSize": [2, 2, 0],
        "__index": [99, 100, 101],
        "__producerName": ["producer", "producer", "other"],
        "__sequenceId": [40, 41, 5],
        "__orderingKey": [None, None, b"o"],
        "__schemaVersion": [None, None, b"v1"],
    }


def test_the_official_client_reads_our_message_ids() -> None:
    pulsar = pytest.importorskip("pulsar")
    (found,) = batches(ArrowDecoder(TOPIC, BINARY, ("__messageId",)), a_batch())
    read = pulsar.MessageId.deserialize(found["__messageId"][1].as_py())
    assert (read.ledger_id(), read.entry_id(), read.partition(), read.batch_index()) == (7, 0, 3, 1)


@pytest.mark.parametrize("metadata", [(), STANDARD, tuple(METADATA)])
@pytest.mark.parametrize("value", [BINARY, STRING], ids=["binary", "string"])
def test_the_schema_is_the_one_that_spark_derives(value: ValueDecoder, metadata: tuple[str, ...]) -> None:
    types = pytest.importorskip("pyspark.sql.types")
    from pyspark.sql.pandas.types import to_arrow_schema

    kinds = {
        "binary": types.BinaryType(),
        "string": types.StringType(),
        "timestamp": types.TimestampType(),
        "int": types.IntegerType(),
        "bigint": types.LongType(),
        "map<string,string>": types.MapType(types.StringType(), types.StringType()),
    }
    declared = [part.rsplit(" ", 1) for part in sql_schema(value.schema, metadata).split(", ")]
    struct = types.StructType([types.StructField(name.strip("`"), kinds[kind]) for name, kind in declared])
    assert arrow_schema(value.schema, metadata) == to_arrow_schema(struct, timezone="UTC")
    (found,) = batches(ArrowDecoder(TOPIC, value, metadata), a_batch())
    assert found.schema == arrow_schema(value.schema, metadata)


def test_batches_are_closed_by_rows_and_by_bytes() -> None:
    sizes = [one.num_rows for one in batches(ArrowDecoder(TOPIC, BINARY, (), max_rows=4), *[a_batch()] * 5)]
    assert sizes == [4, 4, 2]
    sizes = [one.num_rows for one in batches(ArrowDecoder(TOPIC, BINARY, (), max_bytes=1), *[a_batch()] * 2)]
    assert sizes == [2, 2]
    assert batches(ArrowDecoder(TOPIC, BINARY, STANDARD)) == []


def test_a_string_that_is_not_utf8_is_refused() -> None:
    entry = build_entry(EntryMetadata("p", 0, 1), b"\xff")
    with pytest.raises(InvalidValueError, match=r"message 7:0:0: no UTF-8 text .*value=binary"):
        batches(ArrowDecoder(TOPIC, STRING, ()), entry)


def test_the_option_metadata_chooses_columns() -> None:
    assert chosen_columns("") == STANDARD
    assert chosen_columns("none") == ()
    assert chosen_columns("ALL") == tuple(METADATA)
    assert chosen_columns("__eventTime, __key") == ("__key", "__eventTime")
    with pytest.raises(InvalidValueError, match="names __kye; it can be"):
        chosen_columns("__kye")
    assert isinstance(arrow_schema(BINARY.schema, ()), pa.Schema)


@pytest.mark.parametrize("far", [(1 << 63) - 1, ((1 << 63) - 1) // 1000 + 1])
def test_a_time_that_the_column_cannot_hold_is_none(far: int) -> None:
    """A producer may say any event time."""
    (batch,) = batches(
        ArrowDecoder("t", ValueDecoder(Binary()), ("__eventTime",)),
        build_entry(EntryMetadata("p", 0, 1, event_time=far), b"x"),
        build_entry(EntryMetadata("p", 1, 1, event_time=1500), b"x"),
    )
    second = dt.datetime(1970, 1, 1, 0, 0, 1, 500_000, dt.UTC)
    assert batch.column("__eventTime").to_pylist() == [None, second]
