"""Bytes, text, numbers and times, in the form that Java's client gives them: big-endian, of one size each.

| schema | Python | payload |
| --- | --- | --- |
| `BooleanSchema` | bool | 1 byte |
| `Int8Schema` … `Int64Schema` | int | 1, 2, 4, 8 bytes |
| `FloatSchema`, `DoubleSchema` | float | 4, 8 bytes |
| `DateSchema` | date | milliseconds of its midnight in UTC, 8 bytes |
| `TimeSchema` | time | milliseconds of the day, 8 bytes |
| `TimestampSchema` | datetime with a zone | milliseconds since 1970, 8 bytes |
| `InstantSchema` | datetime with a zone | seconds since 1970, 8 bytes, and nanoseconds, 4 |
| `LocalDateSchema` | date | days since 1970, 8 bytes |
| `LocalTimeSchema` | time | nanoseconds of the day, 8 bytes |
| `LocalDateTimeSchema` | datetime without a zone | days since 1970 and nanoseconds of the day, 8 bytes each |

Python's times have microseconds; what a payload has beyond them is cut off.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable
from typing import ClassVar, Final, Generic, TypeVar

from magnetar.client.errors import SchemaError, ValueTypeError
from magnetar.client.values.schema_info import ClientSchemaInfo
from magnetar.client.values.value_schema import ValueSchema, require_type, shown
from magnetar.model.schemas import SchemaType

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_LOCAL_EPOCH: Final = dt.datetime(1970, 1, 1)
_EPOCH_DAY: Final = dt.date(1970, 1, 1).toordinal()
_MICRO: Final = dt.timedelta(microseconds=1)
_MILLI: Final = dt.timedelta(milliseconds=1)
_DAY_MILLIS: Final = 86_400_000
_DAY_MICROS: Final = 86_400_000_000

P = TypeVar("P")


class BytesSchema(ValueSchema[bytes]):
    """Bytes as they are; a broker sees no schema (rule 10.1)."""

    def encode(self, obj: bytes) -> bytes:
        require_type(obj, bytes, "a value of BytesSchema")
        return obj

    def decode(self, data: bytes) -> bytes:
        return data

    def schema_info(self) -> ClientSchemaInfo:
        return ClientSchemaInfo(SchemaType.BYTES, "BYTES")

    def __str__(self) -> str:
        return "BytesSchema"


class StringSchema(ValueSchema[str]):
    """Text in UTF-8. Its definition is the ``null`` that the official Python client registers."""

    def encode(self, obj: str) -> bytes:
        require_type(obj, str, "a value of StringSchema")
        try:
            return obj.encode()
        except UnicodeEncodeError as error:
            raise SchemaError(f"a value of StringSchema: {error}") from None

    def decode(self, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise SchemaError(f"the payload is not UTF-8: {error}") from None

    def schema_info(self) -> ClientSchemaInfo:
        return ClientSchemaInfo(SchemaType.STRING, "STRING", b"null")

    def __str__(self) -> str:
        return "StringSchema"


class _FixedSize(ValueSchema[P], Generic[P]):
    """A schema whose payloads have one size."""

    kind: ClassVar[SchemaType]
    layout: ClassVar[struct.Struct]

    def schema_info(self) -> ClientSchemaInfo:
        return ClientSchemaInfo(self.kind, self.kind.name)

    def _pack(self, *numbers: float) -> bytes:
        try:
            return self.layout.pack(*numbers)
        except (struct.error, OverflowError) as error:
            raise SchemaError(f"a value of {type(self).__name__}: {numbers[0]} does not fit: {error}") from None

    def _unpack(self, data: bytes) -> tuple[int, ...]:
        if len(data) != self.layout.size:
            raise SchemaError(f"a payload of {self.kind.name} has {self.layout.size} bytes, not {len(data)}")
        return self.layout.unpack(data)

    def _made(self, make: Callable[[], P]) -> P:
        try:
            return make()
        except (OverflowError, ValueError) as error:
            raise SchemaError(f"a payload of {self.kind.name}: no time of Python's: {error}") from None


class BooleanSchema(_FixedSize[bool]):
    """True or false."""

    kind, layout = SchemaType.BOOLEAN, struct.Struct(">B")

    def encode(self, obj: bool) -> bytes:
        require_type(obj, bool, "a value of BooleanSchema")
        return b"\x01" if obj else b"\x00"

    def decode(self, data: bytes) -> bool:
        return bool(self._unpack(data)[0])


class _WholeNumber(_FixedSize[int]):
    def encode(self, obj: int) -> bytes:
        require_type(obj, int, f"a value of {type(self).__name__}")
        return self._pack(obj)

    def decode(self, data: bytes) -> int:
        return self._unpack(data)[0]


class Int8Schema(_WholeNumber):
    """Whole numbers from -128 to 127."""

    kind, layout = SchemaType.INT8, struct.Struct(">b")


class Int16Schema(_WholeNumber):
    """Whole numbers of 16 bits."""

    kind, layout = SchemaType.INT16, struct.Struct(">h")


class Int32Schema(_WholeNumber):
    """Whole numbers of 32 bits."""

    kind, layout = SchemaType.INT32, struct.Struct(">i")


class Int64Schema(_WholeNumber):
    """Whole numbers of 64 bits."""

    kind, layout = SchemaType.INT64, struct.Struct(">q")


class _RealNumber(_FixedSize[float]):
    def encode(self, obj: float) -> bytes:
        require_type(obj, (float, int), f"a value of {type(self).__name__}")
        return self._pack(obj)

    def decode(self, data: bytes) -> float:
        return self._unpack(data)[0]


class FloatSchema(_RealNumber):
    """Numbers of 32 bits."""

    kind, layout = SchemaType.FLOAT, struct.Struct(">f")


class DoubleSchema(_RealNumber):
    """Numbers of 64 bits."""

    kind, layout = SchemaType.DOUBLE, struct.Struct(">d")


class DateSchema(_FixedSize[dt.date]):
    """Days; the payload is the moment of midnight in UTC, as java.util.Date."""

    kind, layout = SchemaType.DATE, struct.Struct(">q")

    def encode(self, obj: dt.date) -> bytes:
        _require_day(obj, "DateSchema")
        return self._pack((obj.toordinal() - _EPOCH_DAY) * _DAY_MILLIS)

    def decode(self, data: bytes) -> dt.date:
        millis = self._unpack(data)[0]
        return self._made(lambda: dt.date.fromordinal(millis // _DAY_MILLIS + _EPOCH_DAY))


class TimeSchema(_FixedSize[dt.time]):
    """Times of the day in milliseconds, as java.sql.Time; of one that says a day, too, the day is left out."""

    kind, layout = SchemaType.TIME, struct.Struct(">q")

    def encode(self, obj: dt.time) -> bytes:
        return self._pack(_micros_of_day(obj, "TimeSchema") // 1_000)

    def decode(self, data: bytes) -> dt.time:
        return _time_of(self._unpack(data)[0] % _DAY_MILLIS * 1_000)


class TimestampSchema(_FixedSize[dt.datetime]):
    """Moments in milliseconds; decoded in UTC."""

    kind, layout = SchemaType.TIMESTAMP, struct.Struct(">q")

    def encode(self, obj: dt.datetime) -> bytes:
        _require_moment(obj, "TimestampSchema")
        return self._pack((obj - _EPOCH) // _MILLI)

    def decode(self, data: bytes) -> dt.datetime:
        millis = self._unpack(data)[0]
        return self._made(lambda: _EPOCH + millis * _MILLI)


class InstantSchema(_FixedSize[dt.datetime]):
    """Moments, kept to the nanosecond by others and to the microsecond here; decoded in UTC."""

    kind, layout = SchemaType.INSTANT, struct.Struct(">qi")

    def encode(self, obj: dt.datetime) -> bytes:
        _require_moment(obj, "InstantSchema")
        seconds, micros = divmod((obj - _EPOCH) // _MICRO, 1_000_000)
        return self._pack(seconds, micros * 1_000)

    def decode(self, data: bytes) -> dt.datetime:
        seconds, nanos = self._unpack(data)
        return self._made(lambda: _EPOCH + dt.timedelta(seconds=seconds, microseconds=nanos // 1_000))


class LocalDateSchema(_FixedSize[dt.date]):
    """Days without a zone."""

    kind, layout = SchemaType.LOCAL_DATE, struct.Struct(">q")

    def encode(self, obj: dt.date) -> bytes:
        _require_day(obj, "LocalDateSchema")
        return self._pack(obj.toordinal() - _EPOCH_DAY)

    def decode(self, data: bytes) -> dt.date:
        days = self._unpack(data)[0]
        return self._made(lambda: dt.date.fromordinal(days + _EPOCH_DAY))


class LocalTimeSchema(_FixedSize[dt.time]):
    """Times of the day without a zone."""

    kind, layout = SchemaType.LOCAL_TIME, struct.Struct(">q")

    def encode(self, obj: dt.time) -> bytes:
        return self._pack(_micros_of_day(obj, "LocalTimeSchema") * 1_000)

    def decode(self, data: bytes) -> dt.time:
        nanos = self._unpack(data)[0]
        return self._made(lambda: _time_of(nanos // 1_000))


class LocalDateTimeSchema(_FixedSize[dt.datetime]):
    """Day and time without a zone."""

    kind, layout = SchemaType.LOCAL_DATE_TIME, struct.Struct(">qq")

    def encode(self, obj: dt.datetime) -> bytes:
        require_type(obj, dt.datetime, "a value of LocalDateTimeSchema")
        if obj.tzinfo is not None:
            raise ValueTypeError(f"a value of LocalDateTimeSchema has no zone; {shown(obj)} has one")
        days, micros = divmod((obj - _LOCAL_EPOCH) // _MICRO, _DAY_MICROS)
        return self._pack(days, micros * 1_000)

    def decode(self, data: bytes) -> dt.datetime:
        days, nanos = self._unpack(data)
        return self._made(lambda: _LOCAL_EPOCH + dt.timedelta(days=days, microseconds=nanos // 1_000))


def _require_day(value: object, what: str) -> None:
    require_type(value, dt.date, f"a value of {what}")
    if isinstance(value, dt.datetime):
        raise ValueTypeError(f"a value of {what} is a day; {shown(value)} has a time, too: take its .date()")


def _require_moment(value: dt.datetime, what: str) -> None:
    require_type(value, dt.datetime, f"a value of {what}")
    if value.tzinfo is None:
        raise ValueTypeError(f"a value of {what} has a zone; {shown(value)} has none: add one, as in tzinfo=UTC")


def _micros_of_day(value: dt.time, what: str) -> int:
    require_type(value, dt.time, f"a value of {what}")
    if value.tzinfo is not None:
        raise ValueTypeError(f"a value of {what} has no zone; {shown(value)} has one")
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def _time_of(micros: int) -> dt.time:
    if not 0 <= micros < _DAY_MICROS:
        raise ValueError(f"{micros} microseconds are no time of a day")
    return (_LOCAL_EPOCH + micros * _MICRO).time()
