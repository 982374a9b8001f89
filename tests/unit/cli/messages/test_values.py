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

ENDLESS = {"type": "record", "name": "A", "fields": [{"name": "a", "type": "A", "default": {}}]}
"""Its default holds itself."""


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
        ('"nothing"', "1", '"nothing" is not a type'),
        ('{"a": 1}', "1", "the definition is no schema"),
        ('{"type": "record", "name": "A"}', "{}", "record A has no fields"),
        ('{"type": "record", "name": "A", "fields": 5}', "{}", "record A has no fields"),
        ('{"type": "record", "name": "A", "fields": [{"type": "int"}]}', "{}", 'a field is an object with a "name"'),
        ('{"type": "array"}', "[1]", 'an? array needs "items"'),
        ('{"type": "enum", "name": "E"}', '"a"', "enum E has no list of symbols"),
        ('{"type": "enum", "name": "E", "symbols": ["A"]}', "[]", r"\[\] is none of A"),
        ('{"type": "fixed", "name": "F"}', '"a"', "fixed F has no size"),
        ('{"type": "fixed", "name": "F", "size": 2}', "12", "bytes are text"),
        ('"float"', "1e300", r"value: 1e\+300 is too large for a float"),
        ('"float"', "1" + 400 * "0", "is too large for a float"),
        ('"double"', "1" + 400 * "0", "is too large for a double"),
        ('"double"', "1" + 5000 * "0", "limit"),
        ('"string"', r'"\ud800"', "half of a character"),
        ('{"type": "map", "values": "int"}', r'{"\ud800": 1}', "half of a character"),
        ('{"type": "record", "name": "A", "fields": []}', r'{"\ud800": 1}', "the schema has no field"),
        ('"int"', 20_000 * "[" + 20_000 * "]", "too many levels"),
        (20_000 * "[" + 20_000 * "]", "1", "the definition is no schema"),
        (json.dumps(ENDLESS), "{}", "too many levels"),
    ],
)
def test_what_avro_cannot_hold(definition: str, text: str, said: str) -> None:
    with pytest.raises(InvalidValueError, match=said):
        avro_bytes(definition, text)


def test_types_of_a_namespace_are_named_with_it_or_without() -> None:
    inner = {"type": "record", "name": "B", "fields": [{"name": "i", "type": "int"}]}
    fields = [{"name": "b", "type": ["null", inner]}, {"name": "c", "type": ["null", "x.y.B"]}]
    outer = json.dumps({"type": "record", "name": "A", "namespace": "x.y", "fields": fields})
    assert avro_bytes(outer, '{"b": {"x.y.B": {"i": 1}}, "c": {"B": {"i": 2}}}') == b"\x02\x02\x02\x04"


def test_a_default_of_a_union_is_of_its_first_branch_that_has_it() -> None:
    fields = [{"name": "a", "type": ["int", "long"], "default": 1}]
    assert avro_bytes(json.dumps({"type": "record", "name": "A", "fields": fields}), "{}") == b"\x00\x02"


def test_json_that_its_reader_gives_up_on_is_refused() -> None:
    deep = 20_000 * "[" + 20_000 * "]"
    with pytest.raises(InvalidValueError, match="too many levels"):
        PayloadSchema.parse(f"json:{deep}")
    with pytest.raises(InvalidValueError, match="too many levels"):
        PayloadSchema.parse("json:{}").encode(deep.encode())


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


@pytest.mark.parametrize(
    ("ms", "moment"),
    [
        (1, "1970-01-01T00:00:00.001Z"),
        (1795884609031, "2026-11-28T16:50:09.031Z"),
        (253402300800000, "+10000-01-01T00:00:00Z"),
        ((1 << 63) - 1, "+292278994-08-17T07:12:55.807Z"),
    ],
)
def test_an_event_time_that_python_has_no_date_for_is_printed(ms: int, moment: str) -> None:
    """As Java prints it: any producer can set one, and it ended the command."""
    metadata = EntryMetadata("p", 0, 1, event_time=ms)
    line = printed(Message(Envelope("t", -1, (2, 0), metadata, 0, 0, None), b"", -1, None), as_hex=False, metadata=True)
    assert f", event-time:{moment}, " in line


def test_where_a_reader_begins() -> None:
    assert (start_id("latest"), start_id("earliest")) == (MessageId.latest, MessageId.earliest)
    assert start_id("12:0") == MessageId(-1, 12, 0)
    for text in ("", "12", "01:2", "a:b", "1:2:3", "-5:-7", "1:-2", f"{1 << 63}:0"):
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
