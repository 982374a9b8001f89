"""Turns columns of other layouts into columns with 32-bit offsets, which everything else here reads.

Spark gives Python its rows with 64-bit offsets if spark.sql.execution.arrow.useLargeVarTypes is set; polars gives
views, and lists of one size for its Array; categories of pandas and polars are dictionaries.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types


def with_32_bit_offsets(batch: Any) -> Any:
    """Return the pa.RecordBatch itself, or a copy. Raises pa.ArrowInvalid if a column has more than 2 GiB."""
    fields = [field.with_type(_with_32_bits(field.type)) for field in batch.schema]
    if all(field.type == before.type for field, before in zip(fields, batch.schema, strict=True)):
        return batch
    return batch.cast(pa.schema(fields))


def _with_32_bits(kind: Any) -> Any:
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_dictionary(kind):
        return _with_32_bits(kind.value_type)
    if pa.types.is_map(kind):
        key, item = (field.with_type(_with_32_bits(field.type)) for field in (kind.key_field, kind.item_field))
        return pa.map_(key, item)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(_with_32_bits(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_with_32_bits(field.type)) for field in kind])
    return kind
