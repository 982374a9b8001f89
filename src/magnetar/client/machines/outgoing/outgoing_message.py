"""One message on its way out, and what is written for it into an entry (rules of 3.5 and 3.8).

    single metadata   01 properties.. 02 key 06 base64 03 size 05 event time 08 sequence 09 null 07 ordering key

It is written by hand: most messages have nothing but a size and a sequence id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from magnetar.protocol.batches import Seal
from magnetar.protocol.commands import KeyValues, TxnId
from magnetar.protocol.compression import CompressionType, compress
from magnetar.protocol.entries import EntryMetadata, build_entry, build_plain_batch
from magnetar.protocol.varints import varint, varints

_NUMBERS: Final = 48
"""Bytes that sizes and numbers of one message take at most."""
PLAIN_NUMBERS: Final = 24
"""The same for a message that is nothing but bytes."""
_HEADS_MAX: Final = 4_096
"""Lengths of messages of which the bytes before them are remembered."""


@dataclass(slots=True)
class OutgoingMessage:
    """What an application sends, not changed once it is made; times are milliseconds since 1970, 0 is "none"."""

    payload: bytes
    properties: KeyValues = ()
    key: str | None = None
    key_is_base64: bool = False
    ordering_key: bytes | None = None
    event_time: int = 0
    deliver_at: int = 0
    sequence_id: int | None = None
    null_value: bool = False
    replicate_to: tuple[str, ...] = ()
    txn: TxnId | None = None

    @property
    def alone(self) -> bool:
        """Whether it may not be in a batch (rule 3.5.4)."""
        return self.deliver_at > 0 or bool(self.replicate_to)

    @property
    def weight(self) -> int:
        """How many bytes it adds to a batch at most; its keys may stand in the batch's metadata, too."""
        weight = len(self.payload) + _NUMBERS
        if self.key is not None:
            weight += 8 * len(self.key)
        if self.ordering_key is not None:
            weight += 2 * len(self.ordering_key)
        for name, value in self.properties:
            weight += 4 * (len(name) + len(value)) + _NUMBERS
        return weight


@dataclass(frozen=True, slots=True)
class EntryMaker:
    """What all entries of one producer have in common."""

    producer_name: str
    compression: CompressionType = CompressionType.NONE
    schema_version: bytes | None = None
    seal: Seal | None = None
    """Encrypts an entry."""

    def metadata(self, message: OutgoingMessage, sequence_id: int, now_ms: int) -> EntryMetadata:
        """Return the metadata of a message that is an entry of its own, not compressed yet."""
        return EntryMetadata(
            self.producer_name,
            sequence_id,
            now_ms,
            properties=message.properties,
            partition_key=message.key,
            partition_key_b64_encoded=message.key_is_base64,
            ordering_key=message.ordering_key,
            event_time=message.event_time,
            deliver_at_time=message.deliver_at or None,
            null_value=message.null_value,
            replicate_to=message.replicate_to,
            schema_version=self.schema_version,
            # of nothing ZLIB makes eight bytes, which the official C++ and Python clients cannot unpack
            compression=self.compression if message.payload else CompressionType.NONE,
            uncompressed_size=len(message.payload),
            txn=message.txn,
        )

    def single(self, message: OutgoingMessage, sequence_id: int, now_ms: int) -> bytes:
        """Return the entry of one message that is in no batch."""
        metadata = self.metadata(message, sequence_id, now_ms)
        return self._entry(metadata, message.payload)

    def _entry(self, metadata: EntryMetadata, plain: bytes) -> bytes:
        payload = compress(metadata.compression, plain)
        if self.seal is not None:
            metadata, payload = self.seal(metadata, payload)
        return build_entry(metadata, payload)

    def batch(
        self, first: OutgoingMessage, ids: tuple[int, int | None], count: int, payload: bytes, now_ms: int
    ) -> bytes:
        """Return the entry of a batch; ``ids`` are the first sequence id and, where it is to be said, the highest."""
        plain = first.key is None and first.ordering_key is None and first.txn is None
        if plain and self.schema_version is None and self.seal is None:
            packed = compress(self.compression, payload)
            return build_plain_batch(self.producer_name, ids, now_ms, count, self.compression, len(payload), packed)
        metadata = EntryMetadata(
            self.producer_name,
            ids[0],
            now_ms,
            partition_key=first.key,
            partition_key_b64_encoded=first.key_is_base64,
            ordering_key=first.ordering_key,
            compression=self.compression,
            uncompressed_size=len(payload),
            num_messages_in_batch=count,
            schema_version=self.schema_version,
            highest_sequence_id=ids[1],
            txn=first.txn,
        )
        return self._entry(metadata, payload)


class _Heads(dict[int, bytes]):
    """What stands before the sequence id of a message that is bytes alone, by the length of those bytes."""

    def __init__(self, number_size: int) -> None:
        super().__init__()
        self._number_size = number_size

    def __missing__(self, length: int) -> bytes:
        if len(self) >= _HEADS_MAX:
            self.clear()
        size = b"\x18" + varint(length) + b"\x40"
        head = self[length] = (len(size) + self._number_size).to_bytes(4, "big") + size
        return head


_HEADS: Final = tuple(_Heads(size) for size in range(11))
"""By the bytes that the sequence id takes."""


def join_plain(contents: Sequence[bytes], sequence_id: int) -> bytes:
    """Return messages that are bytes alone as they stand in a batch, with sequence ids in a row from the given one."""
    numbers = varints(sequence_id, sequence_id + len(contents))
    first, last = len(numbers[0]), len(numbers[-1])
    if first != last:
        half = next(at for at, number in enumerate(numbers) if len(number) != first)
        return join_plain(contents[:half], sequence_id) + join_plain(contents[half:], sequence_id + half)
    heads = map(_HEADS[first].__getitem__, map(len, contents))
    return b"".join(chain.from_iterable(zip(heads, numbers, contents, strict=True)))


def single_metadata(message: OutgoingMessage, sequence_id: int) -> bytes:
    """Return SingleMessageMetadata of a message in a batch (rule 3.5.3)."""
    size = b"\x18" + varint(len(message.payload))
    number = b"\x40" + varint(sequence_id)
    plain = message.key is None and not message.properties and message.ordering_key is None
    if plain and not message.event_time and not message.null_value:
        return size + number
    parts: list[bytes] = []
    for name, value in message.properties:
        pair = _text(b"\x0a", name.encode()) + _text(b"\x12", value.encode())
        parts += b"\x0a", varint(len(pair)), pair
    if message.key is not None:
        parts.append(_text(b"\x12", message.key.encode()))
    parts.append(size)
    if message.event_time:
        parts.append(b"\x28" + varint(message.event_time))
    if message.key_is_base64:
        parts.append(b"\x30\x01")
    if message.ordering_key is not None:
        parts.append(_text(b"\x3a", message.ordering_key))
    parts.append(number)
    if message.null_value:
        parts.append(b"\x48\x01")
    return b"".join(parts)


def _text(tag: bytes, data: bytes) -> bytes:
    return tag + varint(len(data)) + data
