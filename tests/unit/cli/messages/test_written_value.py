"""Values by schema: what ``-st auto_consume`` prints of each type, and what ``--json`` does."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from typing import Any

import pytest

from magnetar.cli.messages.written_value import WrittenValue, WrittenValueSchema
from magnetar.client.values import primitives
from magnetar.client.values.avro_schema import AvroSchema
from magnetar.client.values.json_schema import JsonSchema
from magnetar.client.values.key_value_schema import KeyValue, KeyValueEncodingType, KeyValueSchema
from magnetar.client.values.value_schema import ValueSchema
from magnetar.model.schemas import SchemaDefinition

MOMENT = dt.datetime(2024, 2, 3, 4, 5, 6, 789000, tzinfo=dt.UTC)
RECORD: dict[str, Any] = {
    "type": "record", "name": "R", "fields": [
        {"name": "zebra", "type": "string"}, {"name": "apple", "type": "int"}, {"name": "price", "type": "double"},
        {"name": "ok", "type": "boolean"}, {"name": "none", "type": ["null", "string"], "default": None},
        {"name": "blob", "type": "bytes"}, {"name": "list", "type": {"type": "array", "items": "string"}},
        {"name": "inner", "type": {"type": "record", "name": "I", "fields": [{"name": "b", "type": "string"}]}},
    ],
}  # fmt: skip
VALUE: dict[str, Any] = {
    "zebra": "stripes", "apple": 3, "price": 1e10, "ok": True, "none": None, "blob": b"ab", "list": ["a", "b"],
    "inner": {"b": "x"},
}  # fmt: skip
SHOWN = "{zebra=stripes, apple=3, price=1.0E10, ok=true, none=NULL, blob=ab, list=[a, b], inner={b=x}}"


class Content:
    """A message that came: its payload and its key."""

    def __init__(self, payload: bytes, key: bytes = b"") -> None:
        self._payload, self._key = payload, key

    def data(self) -> bytes:
        return self._payload

    def has_null_value(self) -> bool:
        return False

    def has_key(self) -> bool:
        return bool(self._key)

    def key_bytes(self) -> bytes:
        return self._key


def written(schema: ValueSchema[Any], value: Any) -> WrittenValue:
    """What is read of a value that a producer with a schema wrote."""
    info = schema.schema_info()
    definition = SchemaDefinition(info.type, info.data, dict(info.properties))
    read: Callable[[Any], Any] = WrittenValueSchema().content_decoder(definition)
    found = read(Content(schema.encode(value), schema.key_of(value) or b""))
    assert isinstance(found, WrittenValue)
    return found


@pytest.mark.parametrize(
    ("schema", "value", "text", "plain"),
    [
        (primitives.StringSchema(), "text", "{value=text, type=class java.lang.String}", "text"),
        (primitives.Int8Schema(), -3, "{value=-3, type=class java.lang.Byte}", -3),
        (primitives.Int32Schema(), 70_000, "{value=70000, type=class java.lang.Integer}", 70_000),
        (primitives.Int64Schema(), 1 << 40, "{value=1099511627776, type=class java.lang.Long}", 1 << 40),
        (primitives.DoubleSchema(), 1e10, "{value=1.0E10, type=class java.lang.Double}", 1e10),
        (primitives.DoubleSchema(), float("-inf"), "{value=-Infinity, type=class java.lang.Double}", "-inf"),
        (primitives.BooleanSchema(), True, "{value=true, type=class java.lang.Boolean}", True),
        (primitives.InstantSchema(), MOMENT, "{value=2024-02-03T04:05:06.789Z, type=class java.time.Instant}",
         "2024-02-03T04:05:06.789Z"),
        (primitives.LocalDateSchema(), dt.date(2024, 2, 3), "{value=2024-02-03, type=class java.time.LocalDate}",
         "2024-02-03"),
        (AvroSchema(None, RECORD), VALUE, SHOWN, VALUE | {"blob": "ab"}),
        (JsonSchema(None, RECORD), VALUE, SHOWN, VALUE | {"blob": "ab"}),
    ],
    ids=lambda given: type(given).__name__,
)  # fmt: skip
def test_a_value_says_what_it_is(schema: ValueSchema[Any], value: Any, text: str, plain: Any) -> None:
    found = written(schema, value)
    assert found.printed(as_hex=False) == text
    assert found.plain() == plain and json.dumps(found.plain())


@pytest.mark.parametrize("encoding", KeyValueEncodingType)
def test_a_pair(encoding: KeyValueEncodingType) -> None:
    """Both sides say what they are, wherever the key travels."""
    schema = KeyValueSchema(primitives.StringSchema(), AvroSchema(None, RECORD), encoding)
    found = written(schema, KeyValue("k", VALUE))
    assert found.printed(as_hex=False) == "{key={value=k, type=class java.lang.String}, value=" + SHOWN + "}"
    assert found.plain() == {"key": "k", "value": VALUE | {"blob": "ab"}}


def test_bytes_without_a_schema() -> None:
    read = WrittenValueSchema().content_decoder(None)
    found = read(Content(b"a\xff"))
    assert found.printed(as_hex=False) == "{value=a\ufffd, type=class java.lang.String}"
    assert "61 FF" in found.printed(as_hex=True)
    assert found.plain() == {"base64": "Yf8="}
