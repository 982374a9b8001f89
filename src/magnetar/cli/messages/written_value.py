"""Values by schema, as ``pulsar-client consume -st auto_consume`` prints them, or as JSON.

A record is ``{field=value, …}`` in the order of its schema, where Java's hash map has an order of its own; a value that
is no record says its class in Java, which scripts may look for.
"""

from __future__ import annotations

import base64
import datetime
import math
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from magnetar.cli.messages.printed_message import hex_dump
from magnetar.cli.output.java_json import double
from magnetar.client.values.auto_schemas import AutoConsumeSchema
from magnetar.client.values.key_value_schema import KeyValue
from magnetar.client.values.value_schema import ReceivedContent
from magnetar.model.schemas import SchemaDefinition, SchemaType
from magnetar.schema_definitions import key_value

_CLASSES: Final = {
    SchemaType.NONE: "java.lang.String",
    SchemaType.BYTES: "java.lang.String",
    SchemaType.STRING: "java.lang.String",
    SchemaType.BOOLEAN: "java.lang.Boolean",
    SchemaType.INT8: "java.lang.Byte",
    SchemaType.INT16: "java.lang.Short",
    SchemaType.INT32: "java.lang.Integer",
    SchemaType.INT64: "java.lang.Long",
    SchemaType.FLOAT: "java.lang.Float",
    SchemaType.DOUBLE: "java.lang.Double",
    SchemaType.DATE: "java.util.Date",
    SchemaType.TIME: "java.sql.Time",
    SchemaType.TIMESTAMP: "java.sql.Timestamp",
    SchemaType.INSTANT: "java.time.Instant",
    SchemaType.LOCAL_DATE: "java.time.LocalDate",
    SchemaType.LOCAL_TIME: "java.time.LocalTime",
    SchemaType.LOCAL_DATE_TIME: "java.time.LocalDateTime",
}


class WrittenValue(NamedTuple):
    """A value with the type that it was written as; of a pair, both are pairs."""

    kind: SchemaType
    value: Any

    def printed(self, *, as_hex: bool) -> str:
        """Return what follows ``content:``."""
        if isinstance(self.value, KeyValue):
            return f"{{key={self.value.key.printed(as_hex=as_hex)}, value={self.value.value.printed(as_hex=as_hex)}}}"
        if self.value is None:
            return "{value=NULL}"
        if isinstance(self.value, Mapping):
            return _record(self.value, as_hex)
        text = _text(self.value, as_hex)
        return f"{{value={text}, type=class {_CLASSES.get(self.kind, 'java.lang.String')}}}"

    def plain(self) -> Any:
        """Return what ``--json`` prints: bytes that are no text in base64, times as ISO 8601 has them."""
        if isinstance(self.value, KeyValue):
            return {"key": self.value.key.plain(), "value": self.value.value.plain()}
        return _plain(self.value)


class WrittenValueSchema(AutoConsumeSchema):
    """Values of whatever each message was written with, each beside the type of its schema."""

    def content_decoder(self, writer: SchemaDefinition | None) -> Callable[[ReceivedContent], Any]:
        decode = super().content_decoder(writer)
        if writer is None:
            return lambda content: WrittenValue(SchemaType.BYTES, decode(content))
        kind = writer.type
        if kind is not SchemaType.KEY_VALUE:
            return lambda content: WrittenValue(kind, decode(content))
        parts = key_value.split(writer)

        def pair(content: ReceivedContent) -> WrittenValue:
            found = decode(content)
            both = KeyValue(WrittenValue(parts.key.type, found.key), WrittenValue(parts.value.type, found.value))
            return WrittenValue(kind, both)

        return pair


def _record(fields: Mapping[str, Any], as_hex: bool) -> str:
    shown = [f"{name}={'NULL' if value is None else _text(value, as_hex)}" for name, value in fields.items()]
    return "{" + ", ".join(shown) + "}"


def _text(value: Any, as_hex: bool) -> str:
    """Return a value as Java's ``toString`` has it."""
    match value:
        case bytes():
            return hex_dump(value) if as_hex else value.decode(errors="replace")
        case bool() | None:
            return {True: "true", False: "false", None: "null"}[value]
        case float():
            return double(value).strip('"')
        case Mapping():
            return _record(value, as_hex)
        case list() | tuple():
            return "[" + ", ".join(_text(one, as_hex) for one in value) + "]"
        case datetime.datetime() | datetime.date() | datetime.time():
            return _moment(value)
        case _:
            return str(value)


def _moment(value: datetime.date | datetime.time) -> str:
    if isinstance(value, datetime.datetime | datetime.time):
        fraction = value.microsecond
        precision = "microseconds" if fraction % 1000 else "milliseconds" if fraction else "seconds"
        return value.isoformat(timespec=precision).replace("+00:00", "Z")
    return value.isoformat()


def _plain(value: Any) -> Any:
    match value:
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                return {"base64": base64.b64encode(value).decode()}
        case Mapping():
            return {str(name): _plain(one) for name, one in value.items()}
        case list() | tuple():
            return [_plain(one) for one in value]
        case float() if math.isnan(value) or math.isinf(value):
            return str(value)
        case bool() | int() | float() | str() | None:
            return value
        case datetime.datetime() | datetime.date() | datetime.time():
            return _moment(value)
        case _:
            return str(value)
