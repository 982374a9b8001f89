"""Partitioning: parses the option ``partitionColumns``, and splits the rows of a batch by partition; pure.

    partitionColumns = "country, day(__publishTime), bucket(16, key)"

A plain name is the column's own value (Hive layout ``country=NL/``). The transforms are Iceberg's (its specification,
section "Partition Transforms") and for Iceberg tables only: year, month, day and hour of a date or timestamp, counted
from 1970; bucket(n, column), which is Murmur3 modulo n.

The value of a partition is kept as Iceberg keeps it: dates as days, timestamps as microseconds, both as whole numbers,
everything else as itself; None is a partition of its own.
"""

from __future__ import annotations

import datetime as dt
import re
import struct
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import mmh3
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # publishes no types

from magnetar.model.errors import InvalidValueError

_FIELD: Final = re.compile(
    r"(?:(year|month|day|hour)\(\s*([^(),]+?)\s*\)|bucket\(\s*(\d+)\s*,\s*([^(),]+?)\s*\)|([^(),]+))$"
)
_SPLIT: Final = re.compile(r",(?![^(]*\))")
_HIVE_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_EPOCH: Final = dt.date(1970, 1, 1)
_MICROS: Final = {"hour": 3_600_000_000, "day": 86_400_000_000}

Values = tuple[Any, ...]
"""The values of a partition, one for each column of the partitioning."""


class PartitionColumn(NamedTuple):
    """A column that a table is partitioned by, or a transform of one (Iceberg's partition field)."""

    column: str
    transform: str = "identity"
    """identity, year, month, day, hour or bucket."""
    buckets: int = 0

    @property
    def name(self) -> str:
        """Name of the partition field: the column's own for identity, otherwise as Iceberg names it."""
        return self.column if self.transform == "identity" else f"{self.column}_{self.transform}"

    def __str__(self) -> str:
        if self.transform == "identity":
            return self.column
        return f"{self.transform}({f'{self.buckets}, ' if self.buckets else ''}{self.column})"


def parse(text: str) -> tuple[PartitionColumn, ...]:
    """Parse the option. Raises InvalidValueError that names the wrong part."""
    fields = []
    for part in _SPLIT.split(text):
        found = _FIELD.match(part.strip())
        if found is None or (found[3] is not None and int(found[3]) < 1):
            raise InvalidValueError(
                f"option 'partitionColumns': {part.strip()!r} is no partition field; write a column, year(column), "
                "month(column), day(column), hour(column) or bucket(16, column)"
            )
        temporal, of, buckets, hashed, plain = found.groups()
        if plain is not None:
            fields.append(PartitionColumn(plain))
        elif temporal is not None:
            fields.append(PartitionColumn(of, temporal))
        else:
            fields.append(PartitionColumn(hashed, "bucket", int(buckets)))
    names = [field.name for field in fields]
    if len(set(names)) != len(names):
        raise InvalidValueError(f"option 'partitionColumns' names a field twice: {text}")
    return tuple(fields)


def check(fields: Sequence[PartitionColumn], schema: pa.Schema, *, transforms: bool) -> None:
    """Raise InvalidValueError if ``schema`` cannot be partitioned so."""
    for field in fields:
        if field.column not in schema.names:
            raise InvalidValueError(
                f"option 'partitionColumns' names {field.column!r}; the columns are {', '.join(schema.names)}"
            )
        if not transforms and field.transform != "identity":
            raise InvalidValueError(
                f"partition field {field}: transforms are Iceberg's; add a column with that value and name it"
            )
        kind = schema.field(field.column).type
        if field.transform in ("year", "month", "day", "hour"):
            fits = pa.types.is_timestamp(kind) or (pa.types.is_date32(kind) and field.transform != "hour")
        elif field.transform == "bucket":
            fits = _hashable(kind)
        else:
            fits = not (pa.types.is_nested(kind) or pa.types.is_floating(kind) or _binary(kind))
        if not fits:
            raise InvalidValueError(f"partition field {field}: a column of type {kind} cannot be partitioned so")
    if schema.names and len({field.column for field in fields if field.transform == "identity"}) == len(schema.names):
        raise InvalidValueError("option 'partitionColumns' names every column: no column would be left for the files")


def check_unchanged(fields: Sequence[PartitionColumn], there: Sequence[PartitionColumn], where: str) -> None:
    """Raise InvalidValueError if the table ``where`` is partitioned otherwise."""
    if list(fields) != list(there):
        raise InvalidValueError(
            f"{where} is partitioned by {', '.join(map(str, there)) or 'nothing'} and not by "
            f"{', '.join(map(str, fields)) or 'nothing'}; set partitionColumns as it is, or write another table"
        )


def split(batch: pa.RecordBatch, fields: Sequence[PartitionColumn]) -> Iterator[tuple[Values, pa.RecordBatch]]:
    """Yield the rows of each partition, in their order; partitions in the order of their first rows."""
    if not fields:
        yield (), batch
        return
    if not batch.num_rows:
        return
    columns = [_values(batch.column(field.column), field) for field in fields]
    codes = pa.repeat(pa.scalar(0, pa.int64()), batch.num_rows)
    for column in columns:
        encoded = column.dictionary_encode("encode")
        codes = pc.add(pc.multiply(codes, len(encoded.dictionary)), encoded.indices.cast(pa.int64()))
    groups = codes.dictionary_encode()
    if len(groups.dictionary) == 1:
        yield tuple(column[0].as_py() for column in columns), batch
        return
    order = pc.sort_indices(groups.indices)
    counts = pc.value_counts(groups.indices).field("counts").to_pylist()
    ordered = batch.take(order)
    start = 0
    # Codes are given by first appearance, so value_counts has them in the order of the sort.
    for count in counts:
        first = order[start].as_py()
        yield tuple(column[first].as_py() for column in columns), ordered.slice(start, count)
        start += count


def directory(fields: Sequence[PartitionColumn], values: Values, schema: pa.Schema) -> str:
    """Return ``a=1/b=x/``, Hive's layout, empty without partitions; names and values are percent-encoded."""
    parts = []
    for field, value in zip(fields, values, strict=True):
        written = text_of(value, schema.field(field.column).type, field)
        parts.append(f"{quote(field.name, safe='')}={_HIVE_NULL if written is None else quote(written, safe=' ')}/")
    return "".join(parts)


def text_of(value: Any, kind: pa.DataType, field: PartitionColumn) -> str | None:
    """Return a partition value as Hive and Delta write it (Delta protocol, "Partition Value Serialization")."""
    if value is None:
        return None
    if field.transform != "identity":
        return _period(value, field.transform)
    if pa.types.is_date32(kind):
        return str(_EPOCH + dt.timedelta(days=value))
    if pa.types.is_timestamp(kind):
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=value)
        return moment.isoformat(" ", "microseconds")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _period(value: int, transform: str) -> str:
    match transform:
        case "year":
            return str(1970 + value)
        case "month":
            return f"{1970 + value // 12:04}-{value % 12 + 1:02}"
        case "day":
            return str(_EPOCH + dt.timedelta(days=value))
        case "hour":
            return f"{_EPOCH + dt.timedelta(days=value // 24)}-{value % 24:02}"
        case _:
            return str(value)


def _values(column: pa.Array, field: PartitionColumn) -> pa.Array:
    """Return the partition value of every row, in the form that the module describes."""
    kind = column.type
    if pa.types.is_date32(kind):
        numbers = column.cast(pa.int32())
    elif pa.types.is_timestamp(kind):
        numbers = column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
    else:
        numbers = column
    match field.transform:
        case "identity":
            return numbers
        case "bucket":
            return _bucketed(numbers, field.buckets)
        case "year":
            return pc.subtract(pc.year(column), 1970).cast(pa.int32())
        case "month":
            months = pc.multiply(pc.subtract(pc.year(column), 1970), 12)
            return pc.subtract(pc.add(months, pc.month(column)), 1).cast(pa.int32())
        case _:
            return numbers if pa.types.is_date32(kind) else _floor_divide(numbers, _MICROS[field.transform])


def _floor_divide(numbers: pa.Array, by: int) -> pa.Array:
    """Divide towards minus infinity; Arrow's own division rounds towards zero."""
    quotient = pc.divide(numbers, by)
    negative = pc.less(pc.subtract(numbers, pc.multiply(quotient, by)), 0)
    return pc.subtract(quotient, negative.cast(pa.int64())).cast(pa.int32())


def _bucketed(column: pa.Array, buckets: int) -> pa.Array:
    encoded = column.dictionary_encode("encode")
    hashed = [None if value is None else _bucket(value, buckets) for value in encoded.dictionary.to_pylist()]
    return pc.take(pa.array(hashed, pa.int32()), encoded.indices)


def _bucket(value: object, buckets: int) -> int:
    """Hash a value (Iceberg's specification, appendix B): integers as 64 bits little-endian, text as UTF-8."""
    if isinstance(value, int):
        data = struct.pack("<q", value)
    else:
        data = value.encode() if isinstance(value, str) else bytes(value)  # type: ignore[call-overload]  # see _hashable
    return (mmh3.hash(data) & 0x7FFFFFFF) % buckets


def _hashable(kind: pa.DataType) -> bool:
    return (
        pa.types.is_signed_integer(kind)
        or pa.types.is_date32(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_string(kind)
        or _binary(kind)
    )


def _binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind))
