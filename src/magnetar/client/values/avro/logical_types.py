"""Avro's logical types: Python's own values for what travels as numbers, bytes and text.

| logicalType | of | Python |
| --- | --- | --- |
| date | int | date |
| time-millis, time-micros | int, long | time |
| timestamp-millis, timestamp-micros | long | datetime in UTC |
| local-timestamp-millis, local-timestamp-micros | long | datetime without a zone |
| decimal | bytes, fixed | Decimal |
| uuid | string | UUID |

A number, bytes or text may be given in place of each, and are sent as they are. What a type has no name for here is
left plain, as Avro's specification has it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any, Final, NamedTuple
from uuid import UUID

from magnetar.schema_definitions.avro_types import AvroFixed, AvroPrimitive, AvroSchema

_PRECISION_MAX: Final = 10_000
"""Digits of a decimal, and bytes of one that is read: turning more into a number takes minutes. A type with more is
left plain."""
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_LOCAL_EPOCH: Final = dt.datetime(1970, 1, 1)
_EPOCH_DAY: Final = dt.date(1970, 1, 1).toordinal()
_MIDNIGHT: Final = dt.timedelta(0)
_DAY: Final = dt.timedelta(days=1)
_MICRO: Final = dt.timedelta(microseconds=1)
_MILLI: Final = dt.timedelta(milliseconds=1)


class LogicalType(NamedTuple):
    """How values of one logical type become plain ones, and the reverse."""

    python: type
    plain: Callable[[Any], Any]
    """Raises ValueError for a value that cannot be said."""
    value: Callable[[Any], Any]
    """Raises ValueError or OverflowError for what is none."""


def logical_type(schema: AvroSchema) -> LogicalType | None:
    """Return the logical type of a schema, None if it has none that is known and valid."""
    if not isinstance(schema, AvroPrimitive | AvroFixed):
        return None
    name = schema.props.get("logicalType")
    if name == "decimal" and schema.kind in ("bytes", "fixed"):
        return _decimal(schema)
    return _LOGICAL.get((schema.kind, name)) if isinstance(name, str) else None


def _moment(unit: dt.timedelta) -> LogicalType:
    def plain(value: dt.datetime) -> int:
        if value.tzinfo is None:
            raise ValueError("it has no zone: add one, as in tzinfo=UTC")
        return (value - _EPOCH) // unit

    return LogicalType(dt.datetime, plain, lambda number: _EPOCH + number * unit)


def _local_moment(unit: dt.timedelta) -> LogicalType:
    def plain(value: dt.datetime) -> int:
        if value.tzinfo is not None:
            raise ValueError("it has a zone, and the type is of local times")
        return (value - _LOCAL_EPOCH) // unit

    return LogicalType(dt.datetime, plain, lambda number: _LOCAL_EPOCH + number * unit)


def _time(unit: dt.timedelta) -> LogicalType:
    def plain(value: dt.time) -> int:
        if value.tzinfo is not None:
            raise ValueError("it has a zone, and the type is of local times")
        return (dt.datetime.combine(_LOCAL_EPOCH, value) - _LOCAL_EPOCH) // unit

    def of(number: int) -> dt.time:
        since = number * unit
        if not _MIDNIGHT <= since < _DAY:
            raise ValueError(f"{number} is no time of a day")
        return (_LOCAL_EPOCH + since).time()

    return LogicalType(dt.time, plain, of)


def _day(value: dt.date) -> int:
    if isinstance(value, dt.datetime):
        raise ValueError("it has a time, and the type is of days: take its .date()")
    return value.toordinal() - _EPOCH_DAY


def _decimal(schema: AvroPrimitive | AvroFixed) -> LogicalType | None:
    precision, scale = schema.props.get("precision"), schema.props.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int) or not 0 <= scale <= precision:
        return None
    if precision > _PRECISION_MAX:
        return None
    size = schema.size if isinstance(schema, AvroFixed) else None
    context = Context(prec=precision, traps=[Inexact, InvalidOperation])
    step = Decimal(1).scaleb(-scale)

    def plain(value: Decimal) -> bytes:
        try:
            unscaled = int(value.quantize(step, context=context).scaleb(scale, context=Context(prec=precision + 1)))
        except (Inexact, InvalidOperation):
            raise ValueError(f"it does not fit decimal({precision}, {scale})") from None
        length = size if size is not None else unscaled.bit_length() // 8 + 1
        try:
            return unscaled.to_bytes(length, "big", signed=True)
        except OverflowError:
            raise ValueError(f"it does not fit {length} bytes") from None

    def of(raw: bytes) -> Decimal:
        if len(raw) > _PRECISION_MAX:
            raise ValueError(f"a decimal of {len(raw)} bytes; {_PRECISION_MAX} are read")
        return Decimal(int.from_bytes(raw, "big", signed=True)).scaleb(-scale, context=Context(prec=len(raw) * 3 + 1))

    return LogicalType(Decimal, plain, of)


_LOGICAL: Final[dict[tuple[str, str], LogicalType]] = {
    ("int", "date"): LogicalType(dt.date, _day, lambda days: dt.date.fromordinal(days + _EPOCH_DAY)),
    ("int", "time-millis"): _time(_MILLI),
    ("long", "time-micros"): _time(_MICRO),
    ("long", "timestamp-millis"): _moment(_MILLI),
    ("long", "timestamp-micros"): _moment(_MICRO),
    ("long", "local-timestamp-millis"): _local_moment(_MILLI),
    ("long", "local-timestamp-micros"): _local_moment(_MICRO),
    ("string", "uuid"): LogicalType(UUID, str, UUID),
}
