"""Statistics of a Parquet file in Delta's form (Delta protocol, "Per-file Statistics"), from its footer; pure.

Only what readers prune by, and never more than is true: of text the first 32 characters, and no maximum where that cuts
something off; of timestamps milliseconds, the maximum one up; nothing of binary, nested, floating and decimal columns.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # publishes no types

_TEXT: Final = 32
_COLUMNS: Final = 32


def statistics(metadata: pq.FileMetaData, schema: pa.Schema) -> dict[str, Any]:
    """Return the statistics of the first 32 plain columns of a file."""
    least: dict[str, Any] = {}
    most: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    positions = {metadata.schema.column(index).path: index for index in range(metadata.num_columns)}
    for field in list(schema)[:_COLUMNS]:
        index = positions.get(field.name)
        if index is None:
            continue
        groups = [metadata.row_group(group).column(index).statistics for group in range(metadata.num_row_groups)]
        if any(group is None or not group.has_null_count for group in groups):
            continue
        nulls[field.name] = sum(group.null_count for group in groups)
        if not _pruned(field.type) or not all(group.has_min_max for group in groups if group.num_values):
            continue
        ranges = [(group.min, group.max) for group in groups if group.num_values]
        if ranges:
            low, high = _low(min(low for low, _ in ranges)), _high(max(high for _, high in ranges))
            if low is not None:
                least[field.name] = low
            if high is not None:
                most[field.name] = high
    return {"numRecords": metadata.num_rows, "minValues": least, "maxValues": most, "nullCount": nulls}


def _pruned(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_date32(kind) or pa.types.is_timestamp(kind)
    )


def _low(value: Any) -> Any:
    if isinstance(value, str):
        return value[:_TEXT]
    if isinstance(value, dt.datetime):
        return _moment(value.replace(microsecond=value.microsecond // 1000 * 1000))
    return _plain(value)


def _high(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _TEXT else None
    if isinstance(value, dt.datetime):
        return _moment(value.replace(microsecond=value.microsecond // 1000 * 1000) + dt.timedelta(milliseconds=1))
    return _plain(value)


def _moment(value: dt.datetime) -> str:
    text = value.replace(tzinfo=None).isoformat("T", "milliseconds")
    return text if value.tzinfo is None else f"{text}Z"


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, dt.date) else value
