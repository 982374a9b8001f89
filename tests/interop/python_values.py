"""Schemas of the two Python libraries by the names of `tests.interop.encodings`, and their values as JSON."""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import enum
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from google.protobuf.api_pb2 import Api
from google.protobuf.message import Message as ProtobufMessage

from magnetar.schema import Int32
from tests.interop.encodings import b64

EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
LOCAL_EPOCH: Final = dt.datetime(1970, 1, 1)
EPOCH_DAY: Final = dt.date(1970, 1, 1).toordinal()
MICRO: Final = dt.timedelta(microseconds=1)
PRIMITIVES: Final = {
    "bytes": "BytesSchema", "string": "StringSchema", "boolean": "BooleanSchema", "int8": "Int8Schema",
    "int16": "Int16Schema", "int32": "Int32Schema", "int64": "Int64Schema", "float": "FloatSchema",
    "double": "DoubleSchema", "date": "DateSchema", "time": "TimeSchema", "timestamp": "TimestampSchema",
    "instant": "InstantSchema", "local_date": "LocalDateSchema", "local_time": "LocalTimeSchema",
    "local_date_time": "LocalDateTimeSchema",
}  # fmt: skip


class Colour(enum.Enum):
    """An enumeration."""

    RED = 1
    BLUE = 2


@dataclass
class Item:
    """A record within a record."""

    _avro_namespace: ClassVar[str] = "interop"
    _sorted_fields: ClassVar[bool] = True
    sku: str | None
    count: Int32


@dataclass
class Order:
    """The record of the matrix."""

    _avro_namespace: ClassVar[str] = "interop"
    _sorted_fields: ClassVar[bool] = True
    number: Int32
    customer: str | None
    price: float
    paid: bool
    placed: int
    lines: list[str] | None
    stock: dict[str, int] | None
    item: Item | None
    colour: Colour | None


class PythonValues:
    """``library``: "pulsar" or "magnetar". ``with_dataclasses``: the record is a dataclass, which only ours has."""

    def __init__(self, library: str, *, with_dataclasses: bool = False) -> None:
        self._library = library
        self._of = importlib.import_module(f"{library}.schema")
        declared: tuple[Any, Any] = (Order, Item) if with_dataclasses else _records(self._of)
        self._order, self._item = declared

    def schema(self, kind: str | None, *, producing: bool) -> Any:
        """Return a schema object, of bytes without a name."""
        of = self._of
        if kind is None:
            return of.BytesSchema()
        if kind in PRIMITIVES:
            return getattr(of, PRIMITIVES[kind])()
        if kind == "auto":
            return of.AutoProduceBytesSchema() if producing else of.AutoConsumeSchema()
        if kind.startswith("pair_"):
            way = getattr(of.KeyValueEncodingType, kind.removeprefix("pair_").upper())
            value = self.schema("avro" if kind == "pair_inline" else "json", producing=producing)
            return of.KeyValueSchema(of.StringSchema(), value, way)
        if kind.startswith("protobuf"):
            return getattr(of, "ProtobufSchema" if kind == "protobuf" else "ProtobufNativeSchema")(Api)
        return getattr(of, "AvroSchema" if kind == "avro" else "JsonSchema")(self._order)

    def value(self, kind: str | None, message: Mapping[str, Any]) -> Any:
        """Return what a producer with that schema sends."""
        if message.get("null"):
            return None
        if kind is None or kind == "auto":
            return base64.b64decode(message["data"])
        return self._value(kind, message["value"])

    def _value(self, kind: str, plain: Any) -> Any:
        match kind:
            case "bytes":
                return base64.b64decode(plain)
            case "date":
                return (EPOCH + plain * 1_000 * MICRO).date()
            case "time":
                return (LOCAL_EPOCH + plain * 1_000 * MICRO).time()
            case "timestamp":
                return EPOCH + plain * 1_000 * MICRO
            case "instant":
                return EPOCH + dt.timedelta(seconds=plain[0]) + plain[1] // 1_000 * MICRO
            case "local_date":
                return dt.date.fromordinal(EPOCH_DAY + plain)
            case "local_time":
                return (LOCAL_EPOCH + plain // 1_000 * MICRO).time()
            case "local_date_time":
                return LOCAL_EPOCH + dt.timedelta(days=plain[0]) + plain[1] // 1_000 * MICRO
            case "protobuf" | "protobuf_native":
                return Api.FromString(base64.b64decode(plain))
            case "pair_inline" | "pair_separated":
                return self._of.KeyValue(plain["key"], self._value("json", plain["value"]))
            case "json" | "avro":
                item, colour = plain["item"], plain["colour"]
                nested = {"item": None if item is None else self._item(**item),
                          "colour": None if colour is None else Colour[colour]}  # fmt: skip
                return self._order(**{**plain, **nested})
            case _:
                return plain

    def plain(self, kind: str | None, value: Any) -> Any:
        """Return a value that was read as JSON."""
        match kind, value:
            case "date", dt.date():
                return (value.toordinal() - EPOCH_DAY) * 86_400_000
            case "time", dt.time():
                return _micros(value) // 1_000
            case "timestamp", dt.datetime():
                return (value - EPOCH) // MICRO // 1_000
            case "instant", dt.datetime():
                seconds, micros = divmod((value - EPOCH) // MICRO, 1_000_000)
                return [seconds, micros * 1_000]
            case "local_date", dt.date():
                return value.toordinal() - EPOCH_DAY
            case "local_time", dt.time():
                return _micros(value) * 1_000
            case "local_date_time", dt.datetime():
                days, micros = divmod((value - LOCAL_EPOCH) // MICRO, 86_400_000_000)
                return [days, micros * 1_000]
            case _:
                return self._any(value)

    def _any(self, value: Any) -> Any:
        match value:
            case bytes():
                return b64(value)
            case enum.Enum():
                return value.name
            case ProtobufMessage():
                return b64(value.SerializeToString(deterministic=True))
            case tuple():
                key, content = value
                return {"key": self._any(key), "value": self._any(content)}
            case Mapping():
                return {name: self._any(one) for name, one in value.items()}
            case list():
                return [self._any(one) for one in value]
            case _:
                return self._fields(value)

    def _fields(self, value: Any) -> Any:
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {one.name: self._any(getattr(value, one.name)) for one in dataclasses.fields(value)}
        fields = getattr(value, "_fields", None)
        if fields is not None:
            return {name: self._any(getattr(value, name)) for name in fields}
        return value


def _micros(time: dt.time) -> int:
    return ((time.hour * 60 + time.minute) * 60 + time.second) * 1_000_000 + time.microsecond


def _records(of: Any) -> tuple[Any, Any]:
    """Return the record and the one within it, declared as the official client does."""

    class Item(of.Record):  # type: ignore[misc]  # of either library
        _avro_namespace = "interop"
        _sorted_fields = True
        sku = of.String()
        count = of.Integer(required=True)

    class Order(of.Record):  # type: ignore[misc]  # of either library
        _avro_namespace = "interop"
        _sorted_fields = True
        number = of.Integer(required=True)
        customer = of.String()
        price = of.Double(required=True)
        paid = of.Boolean(required=True)
        placed = of.Long(required=True)
        lines = of.Array(of.String())
        stock = of.Map(of.Long())
        item = Item()
        colour = of.CustomEnum(Colour)

    return Order, Item
