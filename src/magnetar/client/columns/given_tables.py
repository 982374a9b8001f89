"""What an application hands in: a table with an Arrow interface as record batches of moderate size, and its schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.columnar.offset_width import with_32_bit_offsets
from magnetar.model.errors import InvalidValueError
from magnetar.model.schemas import SchemaDefinition
from magnetar.protocol import commands as c

BATCH_ROWS: Final = 1 << 16
"""Rows that are made ready at once."""


def definition_of(schema: c.Schema | None) -> SchemaDefinition | None:
    """Return what a producer or consumer was opened with, as what writes and reads columns takes it."""
    return None if schema is None else SchemaDefinition(schema.type, schema.schema_data, dict(schema.properties))


def batches_of(table: Any) -> Iterator[Any]:
    """Yield a table's rows as pa.RecordBatch: of pyarrow (Table, RecordBatch, RecordBatchReader), polars, pandas, and
    whatever else has ``__arrow_c_stream__`` or ``__arrow_c_array__``. Raises InvalidValueError."""
    if isinstance(table, pa.RecordBatch):
        found: Any = [table]
    elif isinstance(table, pa.Table):
        found = table.to_batches(max_chunksize=BATCH_ROWS)
    elif isinstance(table, pa.RecordBatchReader):
        found = table
    elif hasattr(table, "__arrow_c_stream__"):
        found = pa.RecordBatchReader.from_stream(table)
    elif hasattr(table, "__arrow_c_array__"):
        found = [pa.record_batch(table)]
    else:
        raise InvalidValueError(
            f"a table is of pyarrow, polars or pandas, or has an Arrow interface; this is {type(table).__name__}"
        )
    for batch in found:
        for at in range(0, batch.num_rows, BATCH_ROWS):
            yield with_32_bit_offsets(batch.slice(at, BATCH_ROWS))
