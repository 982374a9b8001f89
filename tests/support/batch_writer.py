"""Messages to batches without kernels: the model of `columnar.entries.packer.Packer`, and what tests produce with.

What repeats (keys, event times) is encoded once and looked up afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from crc32c import crc32c

from magnetar.protocol.batches import BATCH_BYTES_MAX, BATCH_MESSAGES_MAX, Batch, Seal
from magnetar.protocol.commands import KeyValues
from magnetar.protocol.compression import CompressionType, compress
from magnetar.protocol.entries import EntryMetadata, build_entry
from magnetar.protocol.message_keys import key_text
from magnetar.protocol.varints import varint

_CACHED: Final = 1 << 16


class Extras(NamedTuple):
    """What few messages have."""

    ordering_keys: Sequence[bytes | None] | None = None
    deliver_at: Sequence[int] | None = None
    """Milliseconds; 0 is at once."""


class BatchWriter:
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
        """``seal`` encrypts each entry's payload, which is compressed then."""
        self.producer_name = producer_name
        self._schema_version = schema_version
        self.digest_bits = digest_bits
        """May be changed between two calls of `pack`, as far as the sequence ids leave room."""
        self.digest = 0
        """The digest of everything packed so far, `digest_bits` wide."""
        self._checksum = 0
        self._compression = compression
        self._seal = seal
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._key_fields: dict[bytes | None, bytes] = {None: b""}
        self._time_fields: dict[int, bytes] = {0: b""}

    def pack(
        self,
        publish_time: int,
        values: Sequence[bytes | None],
        sequence_ids: Sequence[int],
        keys: Sequence[bytes | None] | None = None,
        event_times: Sequence[int] | None = None,
        properties: Sequence[KeyValues] | None = None,
        extras: Extras | None = None,
    ) -> Iterator[Batch]:
        """All messages, in order, as batches. Times in milliseconds, an event time of 0 is none."""
        count = len(values)
        keys = keys if keys is not None else (None,) * count
        event_times = event_times if event_times is not None else (0,) * count
        ordering, deliver_at = extras if extras is not None else (None, None)
        parts: list[bytes] = []
        start = size = 0
        for index, (value, key, time, sequence) in enumerate(zip(values, keys, event_times, sequence_ids, strict=True)):
            payload = b"" if value is None else value
            alone = deliver_at is not None and (deliver_at[index] or (index > start and deliver_at[index - 1]))
            full = index - start >= self._max_messages or size + len(payload) > self._max_bytes
            if index > start and (full or alone):
                yield self._batch(parts, publish_time, keys, sequence_ids, start, index, extras)
                parts, start, size = [], index, 0
            field = self._key_fields.get(key)
            if field is None:
                field = self._remember_key(key)
            moment = self._time_fields.get(time)
            if moment is None:
                moment = self._remember_time(time)
            head = field + b"\x18" + varint(len(payload)) + moment + b"\x40" + varint(sequence)
            if value is None:
                head += b"\x48\x01"
            if properties is not None and properties[index]:
                head = _properties(properties[index]) + head
            if ordering is not None and (order := ordering[index]) is not None:
                head += b"\x3a" + varint(len(order)) + order
            parts += len(head).to_bytes(4, "big"), head, payload
            size += len(head) + 4 + len(payload)
        if count > start:
            yield self._batch(parts, publish_time, keys, sequence_ids, start, count, extras)

    def _batch(
        self,
        parts: list[bytes],
        publish_time: int,
        keys: Sequence[bytes | None],
        sequence_ids: Sequence[int],
        start: int,
        stop: int,
        extras: Extras | None,
    ) -> Batch:
        plain = b"".join(parts)
        key, first, last = keys[start], sequence_ids[start], sequence_ids[stop - 1]
        text, encoded = (None, False) if key is None else key_text(key)
        ordering, deliver_at = extras if extras is not None else (None, None)
        if self.digest_bits:
            self._checksum = crc32c(plain, self._checksum)
            self.digest = self._checksum & ((1 << self.digest_bits) - 1)
            last |= self.digest
            if stop - start == 1:
                # The SEND of a single message has one sequence id only.
                first = last
        metadata = EntryMetadata(
            self.producer_name,
            first,
            publish_time,
            # The first message's key stands for the batch (rule 3.5.2).
            partition_key=text,
            partition_key_b64_encoded=encoded,
            ordering_key=None if ordering is None else ordering[start],
            deliver_at_time=(deliver_at[start] or None) if deliver_at is not None else None,
            compression=self._compression,
            uncompressed_size=len(plain),
            num_messages_in_batch=stop - start,
            schema_version=self._schema_version,
            highest_sequence_id=last,
        )
        payload = compress(self._compression, plain)
        if self._seal is not None:
            metadata, payload = self._seal(metadata, payload)
        return Batch(build_entry(metadata, payload), stop - start, first, last)

    def _remember_key(self, key: bytes | None) -> bytes:
        assert key is not None, "no key is there from the start"
        if len(self._key_fields) >= _CACHED:
            self._key_fields = {None: b""}
        text, encoded = key_text(key)
        raw = text.encode()
        # Field 6 after 2 and before 3: readers of protobuf take any order.
        field = b"\x12" + varint(len(raw)) + raw + (b"\x30\x01" if encoded else b"")
        self._key_fields[key] = field
        return field

    def _remember_time(self, time: int) -> bytes:
        if len(self._time_fields) >= _CACHED:
            self._time_fields = {0: b""}
        field = self._time_fields[time] = b"\x28" + varint(time)
        return field


def _properties(pairs: KeyValues) -> bytes:
    out = b""
    for name, value in pairs:
        key, text = name.encode(), value.encode()
        pair = b"\x0a" + varint(len(key)) + key + b"\x12" + varint(len(text)) + text
        out += b"\x0a" + varint(len(pair)) + pair
    return out
