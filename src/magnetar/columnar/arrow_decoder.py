"""Entries to Arrow record batches, in the exact form Spark wants: types, order and nullability.

The columns of the value come first (`magnetar.columnar.values`), then the metadata columns that were asked for, in the
order of `METADATA`. There is
no column pruning in Spark's Python sources, so what is not needed is best not asked for: with ``metadata=none`` keys,
times and properties are not even taken apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.columnar.entries.block import ALL, NO_INDEX, EntryBlock, EntryBytes, block_of
from magnetar.columnar.sql_types import sql_columns
from magnetar.columnar.values import UndecodableError, ValueDecoder
from magnetar.model.errors import InvalidValueError, NotAvailableError, ProtocolError
from magnetar.model.names import TopicName
from magnetar.protocol.compression import DamagedPayloadError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from magnetar.columnar.entries.column_builder import ColumnBuilder

_TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
_MAP: Final = pa.map_(pa.string(), pa.string())
_MISSING_TIME: Final = 0
_MILLIS_MAX: Final = ((1 << 63) - 1) // 1000


class MetadataColumn(NamedTuple):
    """A metadata column: Spark's name of its type, Arrow's type, and how it is made for a topic."""

    sql: str
    arrow: Any
    make: Callable[[str, ColumnBuilder], Any]
    details: bool = False
    """Whether it needs what stands beside each message in a batch."""


def _times(milliseconds: NDArray[Any]) -> Any:
    # A producer may say any time; one that microseconds cannot hold would come out as a moment of long ago.
    missing = (milliseconds == _MISSING_TIME) | (milliseconds > _MILLIS_MAX) | (milliseconds < -_MILLIS_MAX)
    return pa.array(milliseconds * 1000, pa.int64(), mask=missing).view(_TIMESTAMP)


def _partition(topic: str) -> int:
    return TopicName.parse(topic).partition_index


METADATA: Final[dict[str, MetadataColumn]] = {
    "__key": MetadataColumn("binary", pa.binary(), lambda _, m: m.keys(), True),
    "__topic": MetadataColumn("string", pa.string(), lambda t, m: pa.repeat(pa.scalar(t, pa.string()), len(m))),
    "__messageId": MetadataColumn("binary", pa.binary(), lambda t, m: m.message_ids(_partition(t))),
    "__publishTime": MetadataColumn("timestamp", _TIMESTAMP, lambda _, m: _times(m.publish_times())),
    "__eventTime": MetadataColumn("timestamp", _TIMESTAMP, lambda _, m: _times(m.event_times()), True),
    "__messageProperties": MetadataColumn("map<string,string>", _MAP, lambda _, m: m.properties(), True),
    "__partition": MetadataColumn(
        "int", pa.int32(), lambda t, m: pa.repeat(pa.scalar(_partition(t), pa.int32()), len(m))
    ),
    "__ledgerId": MetadataColumn("bigint", pa.int64(), lambda _, m: pa.array(m.ledgers())),
    "__entryId": MetadataColumn("bigint", pa.int64(), lambda _, m: pa.array(m.entries())),
    "__batchIndex": MetadataColumn("int", pa.int32(), lambda _, m: pa.array(m.places())),
    "__batchSize": MetadataColumn("int", pa.int32(), lambda _, m: pa.array(m.batch_sizes(), pa.int32())),
    "__index": MetadataColumn("bigint", pa.int64(), lambda _, m: m.broker_indexes()),
    "__producerName": MetadataColumn("string", pa.string(), lambda _, m: m.producer_names()),
    "__sequenceId": MetadataColumn("bigint", pa.int64(), lambda _, m: pa.array(m.sequence_ids()), True),
    "__orderingKey": MetadataColumn("binary", pa.binary(), lambda _, m: m.ordering_keys(), True),
    "__schemaVersion": MetadataColumn("binary", pa.binary(), lambda _, m: m.schema_versions()),
}

STANDARD: Final = ("__key", "__topic", "__messageId", "__publishTime", "__eventTime", "__messageProperties")


def chosen_columns(text: str) -> tuple[str, ...]:
    """Return the columns of the option ``metadata``: empty (the standard six), all, none, or names with commas, in the
    table's order."""
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
    """Return the schema as Spark's DDL; ``values`` is the pa.Schema of what a value gives."""
    return ", ".join([sql_columns(values), *(f"`{name}` {METADATA[name].sql}" for name in metadata)])


def arrow_schema(values: Any, metadata: tuple[str, ...]) -> Any:
    """Return the schema as an Arrow schema."""
    return pa.schema([*values, *(pa.field(name, METADATA[name].arrow) for name in metadata)])


class ArrowDecoder:
    """Turns the entries of one topic or partition into record batches."""

    def __init__(self, topic: str, values: ValueDecoder, metadata: tuple[str, ...], **limits: int) -> None:
        """Take ``limits`` as `columnar.entries.column_builder.ColumnBuilder` has them."""
        # Kernels take a quarter of a second to load, and the driver needs only schemas.
        from magnetar.columnar.entries.column_builder import ColumnBuilder

        self._topic = topic
        self._decoder = values
        self._metadata = metadata
        self._schema = arrow_schema(values.schema, metadata)
        details = values.needs_keys or any(METADATA[name].details for name in metadata)
        self._messages = ColumnBuilder(details=details, **limits)

    def add(
        self, ledger: int, entry: int, data: bytes, first: int = 0, stop: int | None = None, index: int = NO_INDEX
    ) -> Iterator[Any]:
        """Add one entry's messages ``[first, stop)``; see `add_block`."""
        return self.add_block(block_of([EntryBytes(ledger, entry, data, index)], first, ALL if stop is None else stop))

    def add_block(self, block: EntryBlock) -> Iterator[Any]:
        """Add entries; yields a record batch whenever enough has come together."""
        try:
            for _ in self._messages.add(block):
                yield self._batch()
        except DamagedPayloadError as error:
            raise DamagedPayloadError(f"{self._topic}: {error}", error.reason) from None
        except (ProtocolError, NotAvailableError) as error:
            raise type(error)(f"{self._topic}: {error}") from None

    def flush(self) -> Iterator[Any]:
        """Yield what is left, if anything."""
        if len(self._messages):
            yield self._batch()
        self._messages.clear()

    def _batch(self) -> Any:
        messages = self._messages
        return pa.RecordBatch.from_arrays(
            [*self._values(messages), *(METADATA[name].make(self._topic, messages) for name in self._metadata)],
            schema=self._schema,
        )

    def _values(self, messages: ColumnBuilder) -> list[Any]:
        decoder = self._decoder
        try:
            return decoder.decode(messages.values(), messages.runs(), messages.keys() if decoder.needs_keys else None)
        except UndecodableError as error:
            ids = messages.ledgers(), messages.entries(), messages.places()
            where = ":".join(str(one[error.row]) for one in ids)
            raise InvalidValueError(f"{self._topic}, message {where}: {error.reason}") from None
