"""Entries that were received to a table, by the kernels that Spark's source has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from magnetar.client.machines.message_queue import QueuedEntry
from magnetar.columnar.arrow_decoder import METADATA, ArrowDecoder, arrow_schema, chosen_columns
from magnetar.columnar.entries.block import NO_INDEX, EntryBlock, uint8_array
from magnetar.columnar.value_readers import values_of
from magnetar.columnar.values import Binary, ValueDecoder, Values
from magnetar.columnar.versions import version_text
from magnetar.model.errors import InvalidValueError, ProtocolError
from magnetar.model.schemas import SchemaDefinition, SchemaType

STANDARD: Final = "__key,__publishTime,__eventTime,__messageProperties"
_IDS: Final = ("__topic", "__ledgerId", "__entryId", "__batchIndex", "__batchSize")
_BLOCK_BYTES: Final = 8 << 20
"""Bytes of entries that are decoded without a pause."""
_ROWS: Final = 1 << 16

Versions = Mapping[bytes, SchemaDefinition]
"""The schemas that writers had, by their versions as entries name them."""


class DamagedEntryError(ProtocolError):
    """An entry that no row can be made of."""

    def __init__(self, entry: QueuedEntry, error: Exception) -> None:
        super().__init__(str(error))
        self.entry = entry


class TableReader:
    """Makes the tables of one consumer."""

    def __init__(self, definition: SchemaDefinition | None, metadata: str = "", *, several: bool = False) -> None:
        """``definition``: what values are read by, as bytes without it. ``metadata``: names with commas, "all", or
        "none"; what `acknowledge_table` needs is there in any case. ``several``: the rows are of several topics.

        Raises InvalidValueError.
        """
        names = {*chosen_columns(metadata or STANDARD), *_IDS}
        if not several and "__topic" not in metadata and metadata != "all":
            names.discard("__topic")
        self._metadata = tuple(name for name in METADATA if name in names)
        self._definition = definition
        self.wants_versions = definition is not None and definition.type in (
            SchemaType.AVRO, SchemaType.JSON, SchemaType.PROTOBUF_NATIVE, SchemaType.KEY_VALUE,
        )  # fmt: skip
        """Whether the schemas of the writers have to be known."""
        self.schema = arrow_schema(self._values({}).schema, self._metadata)
        """pa.Schema of the tables."""

    def _values(self, versions: Versions) -> ValueDecoder:
        def writers(version: bytes) -> SchemaDefinition:
            found = versions.get(version)
            if found is None:
                raise InvalidValueError(f"the registry has no version {version_text(version)} of the schema")
            return found

        values: Values = (
            Binary() if self._definition is None else values_of(self._definition, writers, "the consumer's")
        )
        return ValueDecoder(values)

    def decoder(self, topic: str, versions: Versions) -> ArrowDecoder:
        """Return what makes record batches of the entries of one topic."""
        return ArrowDecoder(topic, self._values(versions), self._metadata, max_rows=_ROWS)


def blocks(entries: Sequence[QueuedEntry]) -> Iterator[Sequence[QueuedEntry]]:
    """Yield entries that are decoded without a pause."""
    part: list[QueuedEntry] = []
    size = 0
    for one in entries:
        part.append(one)
        size += one.size
        if size >= _BLOCK_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


def rows_of(decoder: ArrowDecoder, entries: Sequence[QueuedEntry]) -> list[Any]:
    """Return the messages of entries as pa.RecordBatch. Raises DamagedEntryError, and InvalidValueError for a value
    that cannot be read."""
    try:
        return [*decoder.add_block(_block(entries)), *decoder.flush()]
    except ProtocolError:
        pass
    finally:
        for _ in decoder.flush():
            pass
    found: list[Any] = []
    for one in entries:
        try:
            found += [*decoder.add_block(_block([one])), *decoder.flush()]
        except ProtocolError as error:
            raise DamagedEntryError(one, error) from None
    return found


def _block(entries: Sequence[QueuedEntry]) -> EntryBlock:
    facts: list[tuple[int, ...]] = []
    parts: list[bytes] = []
    at = 0
    for one in entries:
        stored = one.stored
        end = at + len(stored)
        envelope = one.envelope
        index = NO_INDEX if envelope.broker is None or envelope.broker.index is None else envelope.broker.index
        # Each range is an entry of its own, over the same bytes.
        facts += [(envelope.ledger, envelope.entry, index, first, stop, at, end) for first, stop in one.ranges()]
        parts.append(stored)
        at = end
    data = parts[0] if len(parts) == 1 else b"".join(parts)
    return EntryBlock(uint8_array(data), np.array(facts, np.int64).T)
