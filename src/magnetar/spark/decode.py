"""Entries to Arrow record batches, in the exact form Spark wants: types, order and nullability (PIPELINES 1.4).

The columns of the value come first (`magnetar.columnar.values`), then the metadata columns that were asked for, in the
order of `METADATA`. There is
no column pruning in Spark's Python sources, so what is not needed is best not asked for: with ``metadata=none`` keys,
times and properties are not even taken apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # the same

from magnetar.columnar.sql_types import sql_columns
from magnetar.columnar.values import UndecodableError, ValueDecoder
from magnetar.model.errors import InvalidValueError
from magnetar.model.names import TopicName
from magnetar.protocol.columns import Columns
from magnetar.protocol.varints import varint

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_ROWS: Final = 10_000
MAX_BYTES: Final = 32 << 20
"""A batch is closed when it has this much; one entry may go beyond, far below Arrow's 2 GiB for a column."""

_TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
_MAP: Final = pa.map_(pa.string(), pa.string())
_MISSING_TIME: Final = 0


class Column(NamedTuple):
    """A metadata column: Spark's name of its type, Arrow's type, and how it is made."""

    sql: str
    arrow: Any
    make: Callable[[str, Columns], Any]
    details: bool
    """Whether it needs what stands beside each message in a batch."""


def _repeat(columns: Columns, numbers: list[int], kind: str = "int64") -> NDArray[Any]:
    """A number of each entry, once for each of its messages."""
    return np.repeat(np.array(numbers, kind), [row.messages for row in columns.entries])


def _repeat_texts(columns: Columns, texts: list[str]) -> Any:
    counts = [row.messages for row in columns.entries]
    ends = np.cumsum(np.array(counts, "int32"), dtype="int32")
    if not counts or not ends[-1]:
        return pa.array([], pa.string())
    kept = [index for index, count in enumerate(counts) if count]
    runs = pa.RunEndEncodedArray.from_arrays(
        pa.array(ends[kept], pa.int32()), pa.array([texts[index] for index in kept], pa.string())
    )
    return pc.run_end_decode(runs)


def _times(milliseconds: NDArray[Any]) -> Any:
    return pa.array(milliseconds * 1000, pa.int64(), mask=milliseconds == _MISSING_TIME).cast(_TIMESTAMP)


def _message_ids(topic: str, columns: Columns) -> Any:
    """Serialised MessageIdData (01 ledger 02 entry 03 partition 04 batch index 06 batch size), as clients parse it."""
    index = TopicName.parse(topic).partition_index
    partition = b"" if index < 0 else b"\x18" + varint(index)
    ids: list[bytes] = []
    at = 0
    for row in columns.entries:
        head = b"\x08" + varint(row.ledger) + b"\x10" + varint(row.entry) + partition
        if row.batch_size:
            tail = b"\x30" + varint(row.batch_size)
            ids += [head + b"\x20" + varint(batch) + tail for batch in columns.indexes[at : at + row.messages]]
        elif row.messages:
            ids.append(head)
        at += row.messages
    return pa.array(ids, pa.binary())


METADATA: Final[dict[str, Column]] = {
    "__key": Column("binary", pa.binary(), lambda _, c: pa.array(c.keys, pa.binary()), True),
    "__topic": Column("string", pa.string(), lambda t, c: pa.repeat(pa.scalar(t, pa.string()), len(c)), False),
    "__messageId": Column("binary", pa.binary(), _message_ids, False),
    "__publishTime": Column(
        "timestamp",
        _TIMESTAMP,
        lambda _, c: _times(_repeat(c, [row.publish_time for row in c.entries])),
        False,
    ),
    "__eventTime": Column("timestamp", _TIMESTAMP, lambda _, c: _times(np.array(c.event_times, "int64")), True),
    "__messageProperties": Column("map<string,string>", _MAP, lambda _, c: pa.array(c.properties, _MAP), True),
    "__partition": Column(
        "int",
        pa.int32(),
        lambda t, c: pa.repeat(pa.scalar(TopicName.parse(t).partition_index, pa.int32()), len(c)),
        False,
    ),
    "__ledgerId": Column(
        "bigint", pa.int64(), lambda _, c: pa.array(_repeat(c, [row.ledger for row in c.entries])), False
    ),
    "__entryId": Column(
        "bigint", pa.int64(), lambda _, c: pa.array(_repeat(c, [row.entry for row in c.entries])), False
    ),
    "__batchIndex": Column("int", pa.int32(), lambda _, c: pa.array(c.indexes, pa.int32()), False),
    "__producerName": Column(
        "string", pa.string(), lambda _, c: _repeat_texts(c, [row.producer_name for row in c.entries]), False
    ),
    "__sequenceId": Column("bigint", pa.int64(), lambda _, c: pa.array(c.sequence_ids, pa.int64()), True),
    "__orderingKey": Column("binary", pa.binary(), lambda _, c: pa.array(c.ordering_keys, pa.binary()), True),
}

STANDARD: Final = ("__key", "__topic", "__messageId", "__publishTime", "__eventTime", "__messageProperties")


def chosen_columns(text: str) -> tuple[str, ...]:
    """The option ``metadata``: empty (the standard six), all, none, or names with commas, in the table's order."""
    if not text:
        return STANDARD
    if text.lower() in ("all", "none"):
        return tuple(METADATA) if text.lower() == "all" else ()
    names = {part.strip() for part in text.split(",")}
    if unknown := names - METADATA.keys():
        raise InvalidValueError(
            f"option 'metadata' names {', '.join(sorted(unknown))}; "
            f"it can be all, none, or some of {', '.join(METADATA)}"
        )
    return tuple(name for name in METADATA if name in names)


def sql_schema(values: Any, metadata: tuple[str, ...]) -> str:
    """The schema as Spark's DDL; ``values`` is the pa.Schema of what a value gives."""
    return ", ".join([sql_columns(values), *(f"`{name}` {METADATA[name].sql}" for name in metadata)])


def arrow_schema(values: Any, metadata: tuple[str, ...]) -> Any:
    """The same as an Arrow schema."""
    return pa.schema([*values, *(pa.field(name, METADATA[name].arrow) for name in metadata)])


class ArrowDecoder:
    """Turns the entries of one topic or partition into record batches."""

    def __init__(self, topic: str, values: ValueDecoder, metadata: tuple[str, ...]) -> None:
        self._topic = topic
        self._decoder = values
        self._metadata = metadata
        self._schema = arrow_schema(values.schema, metadata)
        self._columns = Columns(details=values.needs_keys or any(METADATA[name].details for name in metadata))

    def add(self, ledger: int, entry: int, data: bytes, first: int = 0, stop: int | None = None) -> Iterator[Any]:
        """One entry's messages ``[first, stop)``; gives a record batch when enough has come together."""
        columns = self._columns
        if stop is None:
            columns.add(ledger, entry, data, first)
        else:
            columns.add(ledger, entry, data, first, stop)
        if len(columns) >= MAX_ROWS or columns.byte_count >= MAX_BYTES:
            yield from self.flush()

    def flush(self) -> Iterator[Any]:
        """What is left, if anything."""
        columns = self._columns
        if len(columns):
            yield pa.RecordBatch.from_arrays(
                [
                    *self._values(columns),
                    *(METADATA[name].make(self._topic, columns) for name in self._metadata),
                ],
                schema=self._schema,
            )
        columns.clear()

    def _values(self, columns: Columns) -> list[Any]:
        decoder = self._decoder
        try:
            return decoder.decode(
                pa.array(columns.values, pa.binary()),
                [(row.messages, row.schema_version) for row in columns.entries],
                pa.array(columns.keys, pa.binary()) if decoder.needs_keys else None,
            )
        except UndecodableError as error:
            at = error.row
            for row in columns.entries:
                if at < row.messages:
                    where = f"{row.ledger}:{row.entry}:{columns.indexes[error.row]}"
                    raise InvalidValueError(f"{self._topic}, message {where}: {error.reason}") from None
                at -= row.messages
            raise
