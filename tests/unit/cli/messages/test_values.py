"""What is sent: Avro from JSON, schemas, properties, separators; and what is printed."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from magnetar.cli.messages.avro_value import avro_bytes
from magnetar.cli.messages.cadence import Cadence
from magnetar.cli.messages.payload_schema import PayloadSchema, inline_value, key_value_schema
from magnetar.cli.messages.printed_message import as_json, hex_dump, printed
from magnetar.cli.messages.produce.sender import Sender, pairs
from magnetar.cli.messages.read.start_id import start_id
from magnetar.client.machines.message import Envelope, Message
from magnetar.client.machines.message_id import MessageId
from magnetar.model.errors import InvalidValueError
from magnetar.protocol.commands import SchemaType
from magnetar.protocol.entries import EntryMetadata

RECORD = {
    "type": "record", "name": "R", "namespace": "n",
    "fields": [
        {"name": "i", "type": "int"}, {"name": "l", "type": "long", "default": -3}, {"name": "d", "type": "double"},
        {"name": "f", "type": "float"}, {"name": "b", "type": "boolean"}, {"name": "s", "type": ["null", "string"]},
        {"name": "x", "type": "bytes"}, {"name": "a", "type": {"type": "array", "items": "int"}},
        {"name": "m", "type": {"type": "map", "values": "string"}},
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
        {"name": "h", "type": {"type": "fixed", "name": "H", "size": 2}},
        {"name": "r", "type": ["null", "R"]},
    ],
}  # fmt: skip
VALUE: dict[str, Any] = {
    "i": 1, "d": 1.5, "f": -2.0, "b": True, "s": {"string": "ü"}, "x": "\u00ff\u0000", "a": [1, -64, 64],
    "m": {"k": "v"}, "e": "B", "h": "ab", "r": None,
}  # fmt: skip


def test_avro_as_another_reader_sees_it() -> None:
    """Our own reader of Avro for columns reads what was written."""
    fastavro = pytest.importorskip("fastavro")
    data = avro_bytes(json.dumps(RECORD), json.dumps(VALUE | {"r": {"R": VALUE}}))
    found = fastavro.schemaless_reader(io.BytesIO(data), RECORD)
    inner = VALUE | {"l": -3, "s": "ü", "x": b"\xff\x00", "h": b"ab"}
    assert found == inner | {"r": inner}


def test_avro_byte_for_byte() -> None:
    assert avro_bytes('"long"', "-1") == b"\x01"
    assert avro_bytes('"long"', "-9223372036854775808") == b"\xff" * 9 + b"\x01"
    assert avro_bytes('["null", "string"]', '"a"') == b"\x02\x02a"
    assert avro_bytes('{"type": "array", "items": "int"}', "[1, -64]") == b"\x04\x02\x7f\x00"
    assert avro_bytes('{"type": "map", "values": "string"}', '{"k": "v"}') == b"\x02\x02k\x02v\x00"


@pytest.mark.parametrize(
    ("definition", "text", "said"),
    [
        ('"int"', "2147483648", "value: 2147483648 is no int"),
        ('"int"', "true", "is no int"),
        ('["int", "long"]', "1", 'write {"TYPE"'),
        (json.dumps(RECORD), "{}", r"value.i is missing and has no default"),
        (json.dumps(RECORD), '{"zz": 1}', "the schema has no field zz"),
        ('{"type": "fixed", "name": "F", "size": 2}', '"a"', "1 bytes where 2 are fixed"),
        ('"int"', "{", "JSON"),
        ('"nothing"', "1", "there is no type 'nothing'"),
    ],
)
def test_what_avro_cannot_hold(definition: str, text: str, said: str) -> None:
    with pytest.raises(InvalidValueError, match=said):
        avro_bytes(definition, text)


def test_schemas() -> None:
    """Rule 10.13."""
    assert PayloadSchema.parse("bytes").registered is None
    made = PayloadSchema.parse('json:{"type": "string"}').registered
    assert made is not None and (made.type, made.schema_data) == (SchemaType.JSON, b'{"type": "string"}')
    pair = key_value_schema(PayloadSchema.parse("string"), PayloadSchema.parse("bytes"), "separated")
    assert pair.schema_data == bytes(8) and dict(pair.properties)["kv.encoding.type"] == "SEPARATED"
    assert dict(pair.properties)["key.schema.type"] == "STRING"
    assert inline_value(b"k", b"vv") == b"\0\0\0\1k\0\0\0\2vv"
    for text in ("xml", "json:{", "avro:"):
        with pytest.raises(InvalidValueError):
            PayloadSchema.parse(text)


def test_what_is_sent(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"\x00,\xff")
    options: dict[str, Any] = {
        "chunking": False, "separator": ",", "properties": ["a=b,c=d=e"], "disable_replication": False,
        "as_json": False,
    }  # fmt: skip
    sender = Sender("t", ["a,b"], [str(file)], 1, 0.0, **options)
    assert sender._bodies == [b"a", b"b", b"\x00,\xff"]
    assert sender._properties == {"a": "b", "c": "d=e"}
    for messages, times, rate in (([], 1, 0.0), (["a"], 0, 0.0), (["a"], 1, -1.0)):
        with pytest.raises(InvalidValueError):
            Sender("t", messages, [], times, rate, **options)
    with pytest.raises(InvalidValueError, match="'x' is no name=value"):
        pairs(["x"])


def test_what_is_printed() -> None:
    """As pulsar-client 4.0.8 printed it, character for character."""
    metadata = EntryMetadata("standalone-0-0", 0, 1795388492239, (("a", "b"), ("c", "d")), partition_key="kk")
    message = Message(Envelope("t", -1, (2, 0), metadata, 0, 0, None), b"hello", -1, None)
    line = "publishTime:[1795388492239], eventTime:[0], key:[kk], properties:[a=b, c=d], content:hello"
    assert printed(message, as_hex=False, metadata=False) == line
    assert printed(message, as_hex=False, metadata=True) == (
        f"{line}, event-time:1970-01-01T00:00:00Z, message-id:2:0:-1, producer-name:standalone-0-0, sequence-id:0, "
        "replicated-from:null, redelivery-count:0, ordering-key:, schema-version:"
    )
    bare = Message(Envelope("t", -1, (2, 0), EntryMetadata("p", 0, 1), 0, 0, None), b"\xff", -1, None)
    assert printed(bare, as_hex=False, metadata=False).startswith(
        "publishTime:[1], eventTime:[0], key:[null], properties:[]"
    )
    assert json.loads(as_json(bare))["contentBase64"] == "/w=="
    assert hex_dump(b"hello" * 4).splitlines() == [
        "00000000 68 65 6C 6C 6F 68 65 6C 6C 6F 68 65 6C 6C 6F 68 hellohellohelloh",
        "00000010 65 6C 6C 6F                                     ello",
    ]


def test_where_a_reader_begins() -> None:
    assert (start_id("latest"), start_id("earliest")) == (MessageId.latest, MessageId.earliest)
    assert start_id("12:0") == MessageId(-1, 12, 0)
    for text in ("", "12", "01:2", "a:b", "1:2:3"):
        with pytest.raises(InvalidValueError, match="must be 'latest'"):
            start_id(text)


def test_a_pace_makes_up_for_late_wake_ups() -> None:
    """But for no more than a second."""
    pace = Cadence(10.0, 0.0)
    assert pace.due(0.0) == 1
    pace.take()
    assert pace.due(0.05) == 0 and pace.due(0.1) == 1 and pace.due(0.5) == 5
    pace.take(5)
    assert pace.due(100.0) in (10, 11)
