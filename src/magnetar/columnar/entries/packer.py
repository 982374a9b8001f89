"""Arrow columns to entries, as `protocol.batches` describes them, without an object per message.

`MessageColumns` are the columns of one record batch, made ready once; a `Packer` makes the entries of one producer from
some of their rows. The same messages give the same bytes, sequence ids and digests: a sender that starts over relies on
that (docs/decisions/009). `tests/support/batch_writer.py` is the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from crc32c import crc32c

from magnetar.columnar.entries.batch_kernel import NO_ROOM, pack_batch
from magnetar.columnar.entries.message_columns import BASE64_TEXT, MessageColumns
from magnetar.columnar.single_entries.chunk_splitter import split_into_chunks
from magnetar.protocol.batches import BATCH_BYTES_MAX, BATCH_MESSAGES_MAX, Batch, Seal
from magnetar.protocol.compression import CompressionType, compress
from magnetar.protocol.entries import EntryMetadata, build_entry

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Packer:
    """Makes the entries of one producer. Sequence ids must grow."""

    def __init__(
        self,
        producer_name: str,
        *,
        compression: CompressionType = CompressionType.NONE,
        max_messages: int = BATCH_MESSAGES_MAX,
        max_bytes: int = BATCH_BYTES_MAX,
        digest_bits: int = 0,
        schema_version: bytes | None = None,
        seal: Seal | None = None,
    ) -> None:
        """``schema_version``: what the values are written by; ``seal`` encrypts the payloads, compressed by then."""
        self.producer_name = producer_name
        self.digest_bits = digest_bits
        """May be changed between two calls of `pack`, as far as the sequence ids leave room."""
        self.digest = 0
        """The digest of everything packed so far; `digest_bits` wide."""
        self._checksum = 0
        self._compression = compression
        self._schema_version = schema_version
        self._seal = seal
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._target = np.empty(2 * max_bytes if max_bytes < 1 << 24 else max_bytes, np.uint8)
        self._last: tuple[EntryMetadata, memoryview] | None = None

    def pack(
        self, publish_time: int, rows: MessageColumns, picked: NDArray[np.int64], ids: NDArray[np.int64]
    ) -> Iterator[Batch]:
        """Pack the rows that ``picked`` names, in that order, as batches; ``ids`` are their sequence ids."""
        start = 0
        while start < len(picked):
            stop, size = self._next(rows, picked, ids, start)
            if size == NO_ROOM:
                self._target = np.empty(2 * self._target.size + 1024, np.uint8)
                continue
            yield self._batch(publish_time, rows, picked, ids, start, stop, self._target[:size].data)
            start = stop

    def chunks(self, limit: int) -> list[bytes]:
        """Return the single message that `pack` gave last as entries of at most ``limit`` bytes, or none."""
        assert self._last is not None, "pack first"
        metadata, plain = self._last
        return split_into_chunks(metadata, plain.tobytes(), limit, self._seal)

    def _next(
        self, rows: MessageColumns, picked: NDArray[np.int64], ids: NDArray[np.int64], start: int
    ) -> tuple[int, int]:
        found: tuple[int, int] = pack_batch(
            picked, ids, start, self._max_messages, self._max_bytes, self._target, *rows.arrays()
        )
        return found

    def _batch(
        self,
        publish_time: int,
        rows: MessageColumns,
        picked: NDArray[np.int64],
        ids: NDArray[np.int64],
        start: int,
        stop: int,
        plain: memoryview,
    ) -> Batch:
        row, first, last = int(picked[start]), int(ids[start]), int(ids[stop - 1])
        if self.digest_bits:
            self._checksum = crc32c(plain, self._checksum)
            self.digest = self._checksum & ((1 << self.digest_bits) - 1)
            last |= self.digest
            if stop - start == 1:
                # The SEND of a single message has one sequence id only.
                first = last
        key = rows.keys.of(row)
        metadata = EntryMetadata(
            self.producer_name,
            first,
            publish_time,
            # The first message's key stands for the batch (rule 3.5.2).
            partition_key=None if key is None else key.decode(),
            partition_key_b64_encoded=key is not None and bool(rows.keys.present[row] == BASE64_TEXT),
            ordering_key=rows.ordering_keys.of(row),
            deliver_at_time=(int(rows.deliver_at[row]) or None) if rows.deliver_at.size else None,
            compression=self._compression,
            uncompressed_size=len(plain),
            schema_version=self._schema_version,
            num_messages_in_batch=stop - start,
            highest_sequence_id=last,
        )
        self._last = metadata, plain
        payload: bytes | memoryview = plain
        if self._compression is not CompressionType.NONE or self._seal is not None:
            payload = compress(self._compression, plain.tobytes())
            if self._seal is not None:
                metadata, payload = self._seal(metadata, payload)
        return Batch(build_entry(metadata, payload), stop - start, first, last)
