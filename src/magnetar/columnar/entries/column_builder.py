"""Builds Arrow arrays of the messages in entries, without an object per message.

The caller gives blocks of entries to `ColumnBuilder.add` and takes the columns whenever it stops. Kept is every message
except those that compaction removed from a batch, and those outside of what is wanted of an entry. Entries that are
markers are no messages. What this module promises of damaged bytes: a ProtocolError that names the entry, never a wrong
row.

    block -> heads (table of numbers per entry) -> payloads in plain sight -> rows (buffers of columns) -> Arrow

Payloads that are compressed are unpacked one by one by a library. A chunk of a large message and an encrypted payload
cannot be read on their own and are refused by name: `opener` joins and decrypts them before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # the same

from magnetar.columnar.byte_columns import binary_array, grown
from magnetar.columnar.entries import block as block_rows
from magnetar.columnar.entries import metadata, rows
from magnetar.columnar.entries.block import COLUMN_BYTES_MAX, EntryBlock, uint8_array
from magnetar.columnar.entries.distinct_texts import DistinctTexts
from magnetar.columnar.entries.message_ids import MESSAGE_ID_BYTES_MAX, write_message_ids
from magnetar.columnar.entries.message_metadata import FACT_COUNT
from magnetar.model.errors import NotAvailableError, ProtocolError
from magnetar.protocol.compression import CompressionType, DamagedPayloadError, decompress

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_UNCOMPRESSED: Final = 1 << 28
COLUMN_ROWS_MAX: Final = 10_000

_FIRST_ROWS: Final = 12 << 10
_FIRST_BYTES: Final = 1 << 16
_KEPT_BYTES: Final = 64 << 20
"""A larger column is an exception, after which smaller ones are made again."""


class ColumnBuilder:
    """Collects messages for one thread. Without ``details`` keys, times, sequence ids and properties are not read."""

    def __init__(
        self,
        *,
        details: bool = True,
        max_rows: int = COLUMN_ROWS_MAX,
        max_bytes: int = COLUMN_BYTES_MAX,
    ) -> None:
        self._limits = (max_rows, max_bytes, int(details))
        self._table = np.zeros((metadata.METADATA_ROWS, 64), np.int64)
        self._entry_count = 0
        self._sizes = {"values": _FIRST_BYTES, "keys": _FIRST_BYTES, "orderings": 16, "names": 16, "texts": 16}
        self._row_room = _FIRST_ROWS
        self._pair_room = 16
        self._fresh()
        self._producers, self._schemas = DistinctTexts(), DistinctTexts()
        self._scratch = np.empty((2, max(rows.STATE_SIZE, FACT_COUNT)), np.int64)

    def _fresh(self) -> None:
        """Make new buffers: those before are Arrow's now."""
        room = self._row_room
        state = np.zeros(rows.STATE_SIZE, np.int64)
        state[rows.STATE_ROWS_MAX], state[rows.STATE_BYTES_MAX], state[rows.STATE_DETAILS] = self._limits
        offsets = np.empty((4, room + 1), np.int32)
        offsets[:, 0] = 0
        self._buffers = rows.RowBuffers(
            state,
            offsets,
            np.empty((3, room), np.uint8),
            np.empty((2, room), np.int64),
            np.empty((1, room), np.int32),
            np.zeros((2, self._pair_room), np.int32),
            **{name: np.empty(size, np.uint8) for name, size in self._sizes.items()},
        )

    def __len__(self) -> int:
        return int(self._buffers.state[rows.STATE_ROWS])

    def clear(self) -> None:
        """Go on empty; arrays that were taken stay as they are."""
        self._entry_count = 0
        self._producers, self._schemas = DistinctTexts(), DistinctTexts()
        self._fresh()

    def _forget(self, data: NDArray[np.uint8], entries: int) -> None:
        """Go on with what is left of a block, over ``data``."""
        left = self._entry_count - entries
        self._table[:, :left] = self._table[:, entries : self._entry_count]
        self.clear()
        self._entry_count = left
        # Texts of entries that are gone would be copied into every column that follows.
        self._number(data, 0, left)

    def _number(self, data: NDArray[np.uint8], first: int, last: int) -> None:
        table = self._table
        self._producers.number(data, table, metadata.PRODUCER, metadata.PRODUCER_ID, first, last)
        self._schemas.number(data, table, metadata.SCHEMA, metadata.SCHEMA_ID, first, last)

    def add(self, block: EntryBlock) -> Iterator[None]:
        """Append all entries; stops whenever the limit is reached, for the caller to take the columns.

        Goes on without the rows that were there. Raises ProtocolError (damaged), DamagedPayloadError (compression),
        NotAvailableError (a chunk, encrypted); the rows before that entry are whole.
        """
        first, last = self._entry_count, self._entry_count + len(block)
        if last > self._table.shape[1]:
            wider = np.zeros((metadata.METADATA_ROWS, 2 * last), np.int64)
            wider[:, :first] = self._table[:, :first]
            self._table = wider
        table = self._table
        table[: block.table.shape[0], first:last] = block.table
        good = metadata.read_metadata(block.data, table, first, last)
        self._entry_count = good
        self._number(block.data, first, good)
        gone = 0
        for index, stop, apart in self._runs(first, good):
            done = index - gone
            plain, start, end = block.data, 0, -1
            if apart:
                payload = self._unpacked(block.data, done)
                plain, start, end = uint8_array(payload), 0, len(payload)
            while done < stop - gone:
                status, done = self._append(block.data, plain, start, end, done, stop - gone)
                if status == rows.FULL:
                    yield
                    self._forget(block.data, done)
                    gone, done = gone + done, 0
                elif status != rows.DONE:
                    self._make_room(status, done)
        if good < last:
            ledger, entry = block.table[:2, good - first].tolist()
            raise ProtocolError(f"entry {ledger}:{entry} is damaged: its metadata cannot be read")

    def _runs(self, first: int, last: int) -> list[tuple[int, int, bool]]:
        """Split entries into neighbours whose payloads can be read where they lie, and others (True) one by one."""
        flags = self._table[metadata.FLAGS, first:last]
        apart = (self._table[metadata.COMPRESSION, first:last] != 0) | (
            flags & (metadata.ENCRYPTED | metadata.CHUNK) != 0
        )
        apart &= flags & metadata.MARKER == 0
        found: list[tuple[int, int, bool]] = []
        for index in (np.flatnonzero(apart) + first).tolist():
            if first < index:
                found.append((first, index, False))
            found.append((index, index + 1, True))
            first = index + 1
        if first < last:
            found.append((first, last, False))
        return found

    def _unpacked(self, data: NDArray[np.uint8], index: int) -> bytes:
        fact = self._table[:, index].tolist()
        where = f"entry {fact[block_rows.LEDGER]}:{fact[block_rows.ENTRY]}"
        if fact[metadata.FLAGS] & metadata.ENCRYPTED:
            raise NotAvailableError(f"{where} is encrypted, and nothing here has its key")
        if fact[metadata.FLAGS] & metadata.CHUNK:
            raise NotAvailableError(f"{where} is a chunk of a larger message and cannot be read on its own")
        packed = data[fact[metadata.PAYLOAD] : fact[block_rows.ENTRY_END]].tobytes()
        kind = CompressionType(fact[metadata.COMPRESSION])
        try:
            return decompress(kind, packed, fact[metadata.PLAIN_SIZE], MAX_UNCOMPRESSED)
        except DamagedPayloadError as error:
            raise DamagedPayloadError(f"{where} is damaged: {error}", error.reason) from None

    def _append(
        self, stored: NDArray[Any], plain: NDArray[Any], start: int, end: int, index: int, last: int
    ) -> tuple[int, int]:
        found: tuple[int, int] = rows.append_rows(
            stored, plain, start, end, self._table, index, last, self._scratch, *self._buffers
        )
        return found

    def _make_room(self, status: int, index: int) -> None:
        """Make the room that ``status`` says is missing for entry ``index``."""
        if status == rows.DAMAGED:
            ledger, entry, batch = self._table[[block_rows.LEDGER, block_rows.ENTRY, metadata.BATCH], index].tolist()
            raise ProtocolError(f"entry {ledger}:{entry} is damaged: a batch of {batch} messages that cannot be split")
        if status == rows.NO_ROWS:
            self._row_room = 2 * self._row_room
            self._grow("offsets", "present", "numbers", "places")
        elif status == rows.NO_PAIRS:
            self._pair_room = 2 * self._pair_room
            self._grow("pairs")
        else:
            self._grow(*_SHORT[status])
            for name in _SHORT[status]:
                self._sizes[name] = min(getattr(self._buffers, name).size, _KEPT_BYTES)

    def _grow(self, *names: str) -> None:
        self._buffers = self._buffers._replace(**{name: grown(getattr(self._buffers, name)) for name in names})

    # What was kept of the entries, one element per message.

    def _each(self, row: int) -> NDArray[np.int64]:
        """Repeat a number of each entry for each of its messages."""
        table = self._table[:, : self._entry_count]
        return np.repeat(table[row], table[metadata.KEPT])

    def values(self) -> Any:
        """Binary; null is a message without a value, which deletes its key when a topic is compacted."""
        return self._column(rows.COLUMN_VALUE, "values")

    def keys(self) -> Any:
        """Binary or null; those that travel as base64 are decoded."""
        return self._column(rows.COLUMN_KEY, "keys")

    def ordering_keys(self) -> Any:
        """Binary or null."""
        return self._column(rows.COLUMN_ORDERING_KEY, "orderings")

    def event_times(self) -> NDArray[np.int64]:
        """Event times in milliseconds; 0 is "none"."""
        found: NDArray[np.int64] = self._buffers.numbers[rows.NUMBER_EVENT_TIME, : len(self)]
        return found

    def sequence_ids(self) -> NDArray[np.int64]:
        """Sequence id of each message."""
        found: NDArray[np.int64] = self._buffers.numbers[rows.NUMBER_SEQUENCE_ID, : len(self)]
        return found

    def places(self) -> NDArray[np.int32]:
        """Position in the batch; 0 for a message on its own."""
        found: NDArray[np.int32] = self._buffers.places[0, : len(self)]
        return found

    def batch_sizes(self) -> NDArray[np.int64]:
        """How many messages each message's batch has, those that compaction removed among them; 0: it is in none."""
        return np.maximum(self._each(metadata.BATCH), 0)

    def properties(self) -> Any:
        """map<string, string>, never null."""
        count, names_end, texts_end = self._buffers.state[
            [rows.STATE_PAIR_COUNT, rows.STATE_PAIR_KEY_END, rows.STATE_PAIR_VALUE_END]
        ].tolist()
        names = binary_array(self._buffers.names[:names_end], self._buffers.pairs[0, : count + 1])
        texts = binary_array(self._buffers.texts[:texts_end], self._buffers.pairs[1, : count + 1])
        offsets = pa.array(self._buffers.offsets[rows.COLUMN_PROPERTIES, : len(self) + 1], pa.int32())
        return pa.MapArray.from_arrays(offsets, text_of(names), text_of(texts))

    def ledgers(self) -> NDArray[np.int64]:
        """Ledger of each message's entry."""
        return self._each(block_rows.LEDGER)

    def entries(self) -> NDArray[np.int64]:
        """Entry number in the ledger, of each message's entry."""
        return self._each(block_rows.ENTRY)

    def publish_times(self) -> NDArray[np.int64]:
        """Publish time of each message's entry, in milliseconds."""
        return self._each(metadata.PUBLISH_TIME)

    def producer_names(self) -> Any:
        """Producer name of each message's entry, as strings."""
        return text_of(self._producers.array()).take(pa.array(self._each(metadata.PRODUCER_ID)))

    def schema_versions(self) -> Any:
        """Binary; null without schema."""
        return self._schemas.array().take(self._numbers_of(metadata.SCHEMA_ID))

    def broker_indexes(self) -> Any:
        """int64: the number that the broker gave the message in its topic; null if the broker gave none."""
        last = self._each(block_rows.INDEX)
        inside = np.maximum(self._each(metadata.BATCH), 1) - 1 - self.places()
        return pa.array(last - inside, pa.int64(), mask=last < 0)

    def runs(self) -> list[tuple[int, bytes | None]]:
        """Number of messages and schema version; neighbours with the same version are together."""
        encoded = pc.run_end_encode(self._numbers_of(metadata.SCHEMA_ID))
        ends = np.diff(encoded.run_ends.to_numpy(), prepend=0).tolist()
        known = self._schemas.array().to_pylist()
        return [
            (count, None if number is None else known[number])
            for count, number in zip(ends, encoded.values.to_pylist(), strict=True)
        ]

    def message_ids(self, partition: int) -> Any:
        """Serialised MessageIdData, as clients parse it; partition -1 is left out."""
        table = self._table[:, : self._entry_count]
        data = np.empty(len(self) * MESSAGE_ID_BYTES_MAX, np.uint8)
        offsets = np.empty(len(self) + 1, np.int32)
        write_message_ids(
            table[block_rows.LEDGER],
            table[block_rows.ENTRY],
            table[metadata.BATCH],
            table[metadata.KEPT],
            self.places(),
            partition,
            data,
            offsets,
        )
        return binary_array(data, offsets)

    def _numbers_of(self, row: int) -> Any:
        numbers = self._each(row)
        return pa.array(numbers, pa.int64(), mask=numbers < 0)

    def _column(self, row: int, name: str) -> Any:
        offsets = self._buffers.offsets[row, : len(self) + 1]
        return binary_array(
            getattr(self._buffers, name)[: offsets[-1]], offsets, self._buffers.present[row, : len(self)]
        )


_SHORT: Final = {
    rows.NO_VALUES: ("values",),
    rows.NO_KEYS: ("keys",),
    rows.NO_ORDERINGS: ("orderings",),
    rows.NO_PAIR_BYTES: ("names", "texts"),
}


def text_of(array: Any) -> Any:
    """Return strings; what is no UTF-8 is replaced as Python does, as clients see it."""
    try:
        return array.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array(
            [None if one is None else one.decode(errors="replace") for one in array.to_pylist()], pa.string()
        )
