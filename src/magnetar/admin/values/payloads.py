"""Turns the text of a payload or key into the bytes that its schema's type means, as Apache Pulsar encodes them."""

from __future__ import annotations

import datetime
import json
import struct
from collections.abc import Callable
from typing import Final

from magnetar.admin.values import avro_json
from magnetar.admin.values.json_document import excerpt, read_document
from magnetar.model.errors import InvalidSchemaDataError, InvalidValueError
from magnetar.model.schemas import SchemaDefinition, SchemaType
from magnetar.schema_definitions import avro

_EPOCH: Final = datetime.date(1970, 1, 1)
_NUMBERS: Final = {SchemaType.INT8: ">b", SchemaType.INT16: ">h", SchemaType.INT32: ">i", SchemaType.INT64: ">q"}


def encoder(definition: SchemaDefinition) -> Callable[[str], bytes]:
    """What encodes texts for that schema. Raises InvalidSchemaDataError for a type that a text cannot be."""
    kind = definition.type
    if kind is SchemaType.AVRO:
        try:
            schema = avro.parse(definition.data)
        except avro.AvroSchemaError as error:
            raise InvalidSchemaDataError(str(error)) from None
        return lambda text: avro_json.to_binary(schema, read_document(text.encode()))
    found = _ENCODERS.get(kind)
    if found is None:
        raise InvalidSchemaDataError(f"messages of the type {kind.name} cannot be written as text")

    def encoded(text: str) -> bytes:
        try:
            return found(text)
        except (ValueError, OverflowError, struct.error):
            raise InvalidValueError(f"{excerpt(text)} is no {kind.name}") from None

    return encoded


def _packed(form: str) -> Callable[[str], bytes]:
    return lambda text: struct.pack(form, int(text))


def _date(text: str) -> bytes:
    """A day, written as ISO 8601 has it or as Java's default does: ``Jan 2, 2024``."""
    try:
        day = datetime.date.fromisoformat(text)
    except ValueError:
        day = datetime.datetime.strptime(text, "%b %d, %Y").date()
    return struct.pack(">q", (day - _EPOCH).days * 86_400_000)


def _instant(text: str) -> bytes:
    at = datetime.datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(text)
    since = at - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return struct.pack(">qi", since.days * 86_400 + since.seconds, since.microseconds * 1000)


def _nanos(at: datetime.time) -> int:
    if at.tzinfo is not None:
        raise ValueError(at)
    return (at.hour * 3600 + at.minute * 60 + at.second) * 10**9 + at.microsecond * 1000


def _local_time(text: str) -> bytes:
    return struct.pack(">q", _nanos(datetime.time.fromisoformat(text)))


def _local_date(text: str) -> bytes:
    return struct.pack(">q", (datetime.date.fromisoformat(text) - _EPOCH).days)


def _local_date_time(text: str) -> bytes:
    at = datetime.datetime.fromisoformat(text)
    return struct.pack(">qq", (at.date() - _EPOCH).days, _nanos(at.timetz()))


def _json(text: str) -> bytes:
    return json.dumps(read_document(text.encode()), ensure_ascii=False, separators=(",", ":")).encode()


_ENCODERS: Final[dict[SchemaType, Callable[[str], bytes]]] = {
    **{kind: _packed(form) for kind, form in _NUMBERS.items()},
    **dict.fromkeys((SchemaType.STRING, SchemaType.BYTES, SchemaType.NONE), str.encode),
    SchemaType.FLOAT: lambda text: struct.pack(">f", float(text)),
    SchemaType.DOUBLE: lambda text: struct.pack(">d", float(text)),
    SchemaType.BOOLEAN: lambda text: bytes([text.lower() == "true"]),
    SchemaType.DATE: _date,
    SchemaType.TIME: _packed(">q"),
    SchemaType.TIMESTAMP: _packed(">q"),
    SchemaType.INSTANT: _instant,
    SchemaType.LOCAL_DATE: _local_date,
    SchemaType.LOCAL_TIME: _local_time,
    SchemaType.LOCAL_DATE_TIME: _local_date_time,
    SchemaType.JSON: _json,
}
