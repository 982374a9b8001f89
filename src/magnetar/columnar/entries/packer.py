"""Arrow columns to entries, as `protocol.batches` describes them, without an object per message.

`MessageColumns` are the columns of one record batch, made ready once; a `Packer` makes the entries of one producer from
some of their rows. The same messages give the same bytes, sequence ids and digests: a sender that starts over relies on
that (docs/decisions/009). `tests/support/batch_writer.py` is the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
from crc32c import crc32c

from magnetar.columnar.entries.batch_kernel import NO_ROOM, pack_batch
from magnetar.columnar.entries.chunk_splitter import split_into_chunks
from magnetar.model.errors import InvalidValueError
from magnetar.protocol.batches import BATCH_BYTES_MAX, BATCH_MESSAGES_MAX, Batch, Seal, key_text
from magnetar.protocol.compression import CompressionType, compress
from magnetar.protocol.entries import EntryMetadata, build_entry

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PRESENT: Final = 1
_BASE64: Final = 2


class ByteSpans(NamedTuple):
    """A column of bytes as a kernel reads it."""

    data: NDArray[np.uint8]
    ends: NDArray[np.int32]
    """One more than rows; row n is ``data[ends[n]:ends[n + 1]]``."""
    present: NDArray[np.uint8]
    """0: null. Empty: there is no such column."""

    def of(self, row: int) -> bytes | None:
        """The bytes of a row, None if it is null or there is no column."""
        if not self.present.size or not self.present[row]:
            return None
        return self.data[self.ends[row] : self.ends[row + 1]].tobytes()


def _array(buffer: Any, kind: str) -> NDArray[Any]:
    """Read-only, like everything that kernels only read."""
    return np.frombuffer(memoryview(buffer if buffer is not None else b"").toreadonly(), kind)


_NO_BYTES: Final = _array(b"", "uint8")
_NO_ENDS: Final = _array(bytes(4), "int32")
_NO_NUMBERS: Final = _array(b"", "int64")
_NO_SPANS: Final = ByteSpans(_NO_BYTES, _NO_ENDS, _NO_BYTES)


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


def _ends(array: Any, offsets: Any) -> NDArray[np.int32]:
    if offsets is None or not offsets.size:
        return _NO_ENDS
    return _array(offsets, "int32")[array.offset : array.offset + len(array) + 1]


def _present(array: Any) -> NDArray[np.uint8]:
    if not array.null_count:
        return _frozen(np.full(len(array), _PRESENT, np.uint8))
    return _frozen(array.is_valid().to_numpy(zero_copy_only=False).astype(np.uint8))


def spans_of(array: Any) -> ByteSpans:
    """Of an Arrow array of binary or string; None is a column that is not there."""
    if array is None:
        return _NO_SPANS
    if not (pa.types.is_binary(array.type) or pa.types.is_string(array.type)):
        raise InvalidValueError(f"a column of type {array.type} cannot be packed; see columnar.offset_width")
    _, ends, data = array.buffers()
    return ByteSpans(_array(data, "uint8"), _ends(array, ends), _present(array))


def keys_of(array: Any, *, base64: bool = False) -> ByteSpans:
    """The same for keys, as they travel: those that are no UTF-8 as base64 (rules of 3.8), or all."""
    if array is None or (pa.types.is_string(array.type) and not base64):
        return spans_of(array)
    if not base64:
        try:
            array.cast(pa.string())
            return spans_of(array)
        except pa.ArrowInvalid:
            pass
    texts = [None if one is None else key_text(one, base64_always=base64) for one in array.to_pylist()]
    found = spans_of(pa.array([None if one is None else one[0] for one in texts], pa.string()))
    marks = [0 if one is None else _BASE64 if one[1] else _PRESENT for one in texts]
    return found._replace(present=_frozen(np.array(marks, np.uint8)))


class MessageColumns(NamedTuple):
    """Rows that can be packed; each column as long as the others, or empty."""

    values: ByteSpans
    keys: ByteSpans = _NO_SPANS
    ordering_keys: ByteSpans = _NO_SPANS
    event_times: NDArray[np.int64] = _NO_NUMBERS
    """Milliseconds; 0 is none."""
    deliver_at: NDArray[np.int64] = _NO_NUMBERS
    """Milliseconds; 0 is at once."""
    pair_ends: NDArray[np.int32] = _NO_ENDS
    pair_present: NDArray[np.uint8] = _NO_BYTES
    names: ByteSpans = _NO_SPANS
    texts: ByteSpans = _NO_SPANS


def message_columns(
    values: Any,
    keys: Any = None,
    event_times: NDArray[np.int64] | None = None,
    properties: Any = None,
    ordering_keys: Any = None,
    deliver_at: NDArray[np.int64] | None = None,
    *,
    base64_keys: bool = False,
) -> MessageColumns:
    """Arrow arrays (binary or string; properties map<string, string>), times as milliseconds."""
    found = MessageColumns(
        spans_of(values),
        keys_of(keys, base64=base64_keys),
        spans_of(ordering_keys),
        _NO_NUMBERS if event_times is None else _frozen(np.ascontiguousarray(event_times)),
        _NO_NUMBERS if deliver_at is None else _frozen(np.ascontiguousarray(deliver_at)),
    )
    if properties is None:
        return found
    return found._replace(
        pair_ends=_ends(properties, properties.buffers()[1]),
        pair_present=_present(properties),
        names=spans_of(properties.keys),
        texts=spans_of(properties.items),
    )


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
        """Of everything packed so far; `digest_bits` wide."""
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
        """The rows that ``picked`` names, in that order, as batches; ``ids`` are their sequence ids."""
        start = 0
        while start < len(picked):
            stop, size = self._next(rows, picked, ids, start)
            if size == NO_ROOM:
                self._target = np.empty(2 * self._target.size + 1024, np.uint8)
                continue
            yield self._batch(publish_time, rows, picked, ids, start, stop, self._target[:size].data)
            start = stop

    def chunks(self, limit: int) -> list[bytes]:
        """What `pack` gave last, a single message, as entries of ``limit`` bytes at most; none if that cannot be."""
        assert self._last is not None, "pack first"
        metadata, plain = self._last
        return split_into_chunks(metadata, plain.tobytes(), limit, self._seal)

    def _next(
        self, rows: MessageColumns, picked: NDArray[np.int64], ids: NDArray[np.int64], start: int
    ) -> tuple[int, int]:
        found: tuple[int, int] = pack_batch(
            picked, ids, start, self._max_messages, self._max_bytes, *rows.values, *rows.keys, *rows.ordering_keys,
            rows.event_times, rows.deliver_at, rows.pair_ends, rows.pair_present,
            rows.names.data, rows.names.ends, *rows.texts, self._target,
        )  # fmt: skip
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
            partition_key_b64_encoded=key is not None and bool(rows.keys.present[row] == _BASE64),
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
