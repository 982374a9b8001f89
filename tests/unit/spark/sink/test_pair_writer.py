"""KEY_VALUE out of two columns, and back by the source's own reading."""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import json
from typing import Any, cast

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pytest

from magnetar.client.lookup import Lookup
from magnetar.columnar.row_router import Router
from magnetar.model.errors import InvalidValueError
from magnetar.model.hashing import java_string_hash
from magnetar.model.schemas import SchemaDefinition, SchemaType
from magnetar.schema_definitions import key_value
from magnetar.schema_definitions.validation import require_valid
from magnetar.spark.options.sink_options import sink_options
from magnetar.spark.options.source_options import source_options
from magnetar.spark.options.value_options import ValueOptions
from magnetar.spark.sink.value_writer import ValueWriter
from magnetar.spark.source.reading.value_schemas import value_decoder

BASE = {"service.url": "pulsar://localhost:6650", "topic": "t", "schema": "keyvalue"}
RECORD = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])
RECORDS = [{"a": 1, "b": ["x", "y"]}, {"a": None, "b": None}, None]


def written(keys: Any, values: Any, **options: str) -> tuple[ValueWriter, Any]:
    """The writer, and the batch as it is sent. No registry is asked."""
    writer = ValueWriter(sink_options({**BASE, **options}), cast("Lookup", None))
    return writer, writer.encoded(pa.RecordBatch.from_pydict({"key": keys, "value": values}))


def read(definition: SchemaDefinition, batch: Any) -> list[tuple[Any, Any]]:
    """Read as the source does."""
    base = source_options({"service.url": BASE["service.url"], "topic": "t"})
    found = ValueOptions(kind="auto", definition=definition, label="version 0")
    decoder = value_decoder(dataclasses.replace(base, value=found))
    keys = batch.column("__key") if "__key" in batch.schema.names else None
    key, value = decoder.decode(batch.column("value"), [(batch.num_rows, None)], keys)
    return list(zip(key.to_pylist(), value.to_pylist(), strict=True))


@pytest.mark.parametrize("encoding", ["INLINE", "SEPARATED"])
@pytest.mark.parametrize("records", ["avro", "json"])
def test_pairs_are_read_as_they_were_written(encoding: str, records: str) -> None:
    columns: dict[str, tuple[Any, list[Any]]] = {
        "records": (pa.array(RECORDS, RECORD), RECORDS),
        "texts": (pa.array(["k", "", None]), ["k", "", None]),
        "bytes": (pa.array([b"\xff", b"", None]), [b"\xff", b"", None]),
        "numbers": (pa.array([1, -2, None], pa.int64()), [1, -2, None]),
        "truth": (pa.array([True, False, None]), [True, False, None]),
        "days": (
            pa.array([dt.date(2013, 1, 1), dt.date(1969, 1, 1), None]),
            [dt.date(2013, 1, 1), dt.date(1969, 1, 1), None],
        ),
    }
    for key, (keys, key_values) in columns.items():
        for value, (values, value_values) in columns.items():
            chosen = {f"keyvalue.{half}": records for half, one in (("key", key), ("value", value)) if one == "records"}
            writer, batch = written(keys, values, **{"keyvalue.encoding": encoding}, **chosen)
            assert writer.definition is not None
            assert writer.definition.type is SchemaType.KEY_VALUE
            require_valid(writer.definition)
            assert read(writer.definition, batch) == list(zip(key_values, value_values, strict=True))
            assert batch.column("value")[2].as_py() is None
            assert ("__key" in batch.schema.names) is writer.separated is (encoding == "SEPARATED")


def test_the_broker_gets_the_schema_of_both_halves() -> None:
    writer, batch = written(pa.array([7], pa.int32()), pa.array(RECORDS[:1], RECORD))
    assert writer.definition is not None
    assert dict(writer.definition.properties) == {
        "kv.encoding.type": "INLINE",
        "key.schema.name": "",
        "key.schema.type": "INT32",
        "key.schema.properties": "{}",
        "value.schema.name": "",
        "value.schema.type": "AVRO",
        "value.schema.properties": "{}",
    }
    key, value = key_value.split(writer.definition)
    assert key.data == b""
    assert [one["name"] for one in json.loads(value.data)["fields"]] == ["a", "b"]
    # [4][0 0 0 7][size][the record]
    raw = batch.column("value")[0].as_py()
    assert raw[:8] == b"\0\0\0\4\0\0\0\7" and int.from_bytes(raw[8:12], "big") == len(raw) - 12


def test_given_schemas_are_used_for_both_halves() -> None:
    wide = {
        "type": "record",
        "name": "K",
        "fields": [{"name": "a", "type": ["null", "long"]}, {"name": "b", "type": "int"}],
    }
    record = pa.struct([("a", pa.int64()), ("b", pa.int32())])
    keys = pa.array([{"a": 5, "b": 6}], record)
    writer, batch = written(keys, pa.array([1]), keySchema=json.dumps(wide))
    assert writer.definition is not None
    assert read(writer.definition, batch) == [({"a": 5, "b": 6}, 1)]
    with pytest.raises(InvalidValueError, match=r"column 'key': row 1: field b is null, and its type has no null"):
        written(pa.array([{"a": 5, "b": 6}, {"a": 5, "b": None}], record), pa.array([1, 2]), keySchema=json.dumps(wide))
    for keys, options, text in (
        (pa.array([1]), {"keySchema": json.dumps(wide)}, "'keySchema' has no meaning with keyvalue.key=int64"),
        (pa.array([{"a": 5}]), {"keySchema": "/no/file"}, "option 'keySchema' is '/no/file', which is neither JSON"),
        (pa.array([1]), {"keyvalue.key": "avro"}, "column 'key' is int64, and avro takes a struct"),
        (pa.array([1]), {"keyvalue.key": "string"}, "column 'key' is int64, which is no STRING; cast it"),
        (pa.array([1]), {"keyvalue.key": "time"}, "values of type TIME are not written"),
        (pa.array([300]), {"keyvalue.key": "int8"}, "column 'key'.* is no INT8"),
        (pa.array([[1]]), {}, r"column 'key' is list<.*>, for which KEY_VALUE has no schema; make it a struct"),
    ):
        with pytest.raises(InvalidValueError, match=text):
            written(keys, pa.array([1]), **options)


def test_keys_apart_travel_as_java_writes_them() -> None:
    """Separated keys travel as base64 even if they are text, and that text chooses the partition."""
    _, batch = written(pa.array(["k", None]), pa.array([1, 2]), **{"keyvalue.encoding": "SEPARATED"})
    router = Router("persistent://public/default/t", lambda _: 97)
    router.base64_keys = True
    by_partition = {rows.partition: rows for rows in router.split(batch)}
    text = base64.b64encode(b"k").decode()
    rows = by_partition[java_string_hash(text) % 97]
    assert rows.messages.keys.of(int(rows.picked[0])) == text.encode()
    assert rows.messages.keys.present.tolist() == [2, 0]
    assert int(np.sum([len(one.picked) for one in by_partition.values()])) == 2
