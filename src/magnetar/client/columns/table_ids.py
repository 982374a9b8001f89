"""Which messages the rows of a table are, as ranges of their batches, for acknowledgements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.model.errors import InvalidValueError

_NEEDED: Final = ("__ledgerId", "__entryId", "__batchIndex", "__batchSize")


class RowRange(NamedTuple):
    """Neighbouring messages of one entry."""

    topic: str | None
    """None: the table does not say."""
    ledger: int
    entry: int
    first: int
    stop: int
    batch_size: int
    """0 for a message that is in no batch."""


def row_ranges(table: Any) -> Iterator[RowRange]:
    """Yield the messages of a pa.Table (or what has an Arrow interface), in order. Raises InvalidValueError."""
    if not isinstance(table, pa.Table):
        if isinstance(table, pa.RecordBatch):
            table = pa.Table.from_batches([table])
        elif hasattr(table, "__arrow_c_stream__"):
            table = pa.table(table)
        else:
            raise InvalidValueError(f"a table is of pyarrow, polars or pandas; this is {type(table).__name__}")
    twice = [name for name in (*_NEEDED, "__topic") if table.column_names.count(name) > 1]
    if twice:
        raise InvalidValueError(f"the table has column {', '.join(twice)} more than once")
    missing = [name for name in _NEEDED if name not in table.column_names]
    if missing:
        raise InvalidValueError(
            f"column {', '.join(missing)} of the table is gone, so it is not known which messages the rows are; keep "
            "these columns of what receive_table has given"
        )
    ledgers, entries, places, sizes = (_numbers(table, name) for name in _NEEDED)
    topics, names = None, list[str]()
    broken = np.ones(len(ledgers), bool)
    # Compared, since the difference of absurd numbers may overflow.
    broken[1:] = (ledgers[1:] != ledgers[:-1]) | (entries[1:] != entries[:-1]) | (sizes[1:] != sizes[:-1])
    broken[1:] |= (places[1:] != places[:-1] + 1) | (places[1:] <= places[:-1])
    if "__topic" in table.column_names:
        kind = table.schema.field("__topic").type
        if table.column("__topic").null_count or pa.types.is_nested(kind):
            raise InvalidValueError("column '__topic' is not as receive_table has given it")
        encoded = table.column("__topic").combine_chunks().dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        topics, names = encoded.indices.to_numpy(zero_copy_only=False), encoded.dictionary.to_pylist()
        if not all(isinstance(name, str) for name in names):
            raise InvalidValueError("column '__topic' is not as receive_table has given it")
        broken[1:] |= topics[1:] != topics[:-1]
    starts = np.flatnonzero(broken)
    lasts = np.append(starts[1:], len(ledgers)) - 1
    firsts, stops = places[starts].tolist(), (places[lasts] + 1).tolist() if len(starts) else []
    for number, start in enumerate(starts.tolist()):
        topic = None if topics is None else names[int(topics[start])]
        yield RowRange(
            topic, int(ledgers[start]), int(entries[start]), firsts[number], stops[number], int(sizes[start])
        )


def _numbers(table: Any, name: str) -> Any:
    column = table.column(name)
    if column.null_count or not pa.types.is_integer(column.type):
        raise InvalidValueError(f"column {name!r} is not as receive_table has given it")
    return column.to_numpy().astype(np.int64, copy=False)
