"""What compaction needs to know of an entry, and batches of which only some messages stay (rules 4.7.4, 14.13).

Observed on Apache Pulsar 4.0.8: in a batch a message that goes is replaced by an empty one with ``compacted_out``, the
others keep their index; the batch is compressed as it was and its ``uncompressed_size`` set. An unbatched message is
empty only if its metadata has ``uncompressed_size`` and that is 0; here, as the official clients' tests want it, also
if it says ``null_value``, which C++ and Python send without a size. An encrypted batch cannot be looked into: it is one
message with the key that its metadata shows.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final, NamedTuple

from magnetar.model.errors import ProtocolError
from magnetar.protocol.codec import parse
from magnetar.protocol.compression import CompressionType, DamagedPayloadError, compress, decompress
from magnetar.protocol.entries import payload_of, walk_batch
from magnetar.protocol.frames import ENTRY_HEADER_SIZE, read_size, with_checksum
from magnetar.protocol.generated import pulsar_pb2 as pb

PLAIN_BYTES_MAX: Final = 128 << 20
"""A batch that claims to be larger when unpacked is not unpacked."""

Key = str | bytes
"""Bytes if the producer sent something that is not UTF-8."""


class KeyedMessage(NamedTuple):
    """One message, as far as compaction looks at it."""

    key: Key | None
    empty: bool
    """Deletes its key."""


class EntryChunk(NamedTuple):
    """A part of a large message."""

    uuid: str | bytes
    last: bool


class SingleEntry(NamedTuple):
    """An entry that goes or stays as a whole."""

    message: KeyedMessage
    chunk: EntryChunk | None


class BatchEntry(NamedTuple):
    """An entry whose messages count one by one; None was compacted out before."""

    messages: list[KeyedMessage | None]


class UnreadableEntry(NamedTuple):
    """An entry that cannot be taken apart: it stays."""


class MarkerEntry(NamedTuple):
    """Not a message but a broker's own note."""


InspectedEntry = SingleEntry | BatchEntry | UnreadableEntry | MarkerEntry


def inspect_entry(entry: bytes) -> InspectedEntry:
    """Never fails."""
    try:
        metadata = _metadata(entry)
        if metadata.HasField("marker_type"):
            return MarkerEntry()
        if _is_readable_batch(metadata):
            return BatchEntry(
                [_keyed(single) for single, *_ in walk_batch(_plain(metadata, entry), metadata.num_messages_in_batch)]
            )
    except (ProtocolError, DamagedPayloadError):
        return UnreadableEntry()
    key = metadata.partition_key if metadata.HasField("partition_key") else None
    empty = metadata.null_value or (metadata.HasField("uncompressed_size") and metadata.uncompressed_size == 0)
    chunk = None
    if metadata.num_chunks_from_msg > 1 and metadata.HasField("uuid"):
        chunk = EntryChunk(metadata.uuid, metadata.chunk_id >= metadata.num_chunks_from_msg - 1)
    return SingleEntry(KeyedMessage(key, empty), chunk)


def rebatch(entry: bytes, keep: Container[int]) -> bytes:
    """The batch with only the messages at these indexes. Raises ProtocolError, DamagedPayloadError."""
    metadata = _metadata(entry)
    plain = _plain(metadata, entry)
    parts = []
    for index, (_, start, _, stop) in enumerate(walk_batch(plain, metadata.num_messages_in_batch)):
        parts.append(plain[start:stop] if index in keep else COMPACTED_OUT)
    return _packed(metadata, b"".join(parts))


def repacked(entry: bytes, plain: bytes) -> bytes:
    """The batch with other messages, as they stand between each other before compression. Raises ProtocolError."""
    return _packed(_metadata(entry), plain)


def _packed(metadata: pb.MessageMetadata, rest: bytes) -> bytes:
    metadata.uncompressed_size = len(rest)
    head = metadata.SerializeToString()
    payload = compress(CompressionType(metadata.compression), rest)
    return with_checksum(len(head).to_bytes(4, "big") + head + payload)


def last_index(entry: bytes) -> int:
    """Batch index of the last message that is still there.

    -1 for what is none of several, or unreadable (rule 5.9.12).
    """
    try:
        metadata = _metadata(entry)
    except ProtocolError:
        return -1
    count: int = metadata.num_messages_in_batch if metadata.HasField("num_messages_in_batch") else 1
    if count <= 1:
        return -1
    found = inspect_entry(entry)
    if not isinstance(found, BatchEntry):
        return count - 1
    return max((index for index, message in enumerate(found.messages) if message is not None), default=-1)


def messages_in(entry: bytes) -> int:
    """How many messages a client counts for this entry, those that are compacted out included (rule 5.2.1)."""
    try:
        metadata = _metadata(entry)
    except ProtocolError:
        return 1
    return metadata.num_messages_in_batch if metadata.HasField("num_messages_in_batch") else 1


def _metadata(entry: bytes) -> pb.MessageMetadata:
    start: int = ENTRY_HEADER_SIZE + read_size(entry, 6)[0] if len(entry) >= ENTRY_HEADER_SIZE else len(entry) + 1
    if start > len(entry):
        raise ProtocolError(f"an entry of {len(entry)} bytes that ends within its metadata")
    return parse(pb.MessageMetadata, entry[ENTRY_HEADER_SIZE:start])


def _is_readable_batch(metadata: pb.MessageMetadata) -> bool:
    return metadata.HasField("num_messages_in_batch") and not metadata.encryption_keys


def _plain(metadata: pb.MessageMetadata, entry: bytes) -> bytes:
    try:
        kind = CompressionType(metadata.compression)
    except ValueError:
        raise ProtocolError(f"compression {metadata.compression} is not known") from None
    return decompress(kind, payload_of(entry), metadata.uncompressed_size, PLAIN_BYTES_MAX)


def _keyed(single: pb.SingleMessageMetadata) -> KeyedMessage | None:
    if single.compacted_out:
        return None
    return KeyedMessage(single.partition_key if single.HasField("partition_key") else None, single.payload_size == 0)


def _gone() -> bytes:
    head = pb.SingleMessageMetadata(payload_size=0, compacted_out=True).SerializeToString()
    return len(head).to_bytes(4, "big") + head


COMPACTED_OUT: Final = _gone()
