"""What is inside an entry: message metadata and payload, and the messages of a batch.

    entry   [u16 0x0e01][u32 crc32c][u32 metadata size][MessageMetadata][payload]
    batch   payload, decrypted and decompressed = ([u32 size][SingleMessageMetadata][payload_size bytes])...

A message is a batch if the field num_messages_in_batch is present, even with 1 (rule 1.1.9), hence None here for
"not a batch". A broker looks at few fields of an entry and never rewrites one: `publish_time` and `measure` are made
for that, `metadata_of` and the rest for clients.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from google.protobuf.descriptor import FieldDescriptor

from magnetar.model.errors import ProtocolError
from magnetar.model.ids import signed
from magnetar.protocol.codec import MessageCodec, parse
from magnetar.protocol.commands import KeyValues, TxnId
from magnetar.protocol.compression import CompressionType
from magnetar.protocol.frames import CHECKSUM_MAGIC, ENTRY_HEADER_SIZE, read_size, with_checksum
from magnetar.protocol.generated import pulsar_pb2 as pb
from magnetar.protocol.message_keys import key_of_base64, key_text
from magnetar.protocol.varints import read_varint, varint

NONE_KEY: Final = b"NONE_KEY"


@dataclass(frozen=True, slots=True)
class EncryptionKey:
    key: str
    value: bytes
    metadata: KeyValues = ()


@dataclass(frozen=True, slots=True)
class EntryMetadata:
    """MessageMetadata; times are milliseconds since 1970, None is "absent"."""

    producer_name: str
    sequence_id: int
    publish_time: int
    properties: KeyValues = ()
    replicated_from: str | None = None
    partition_key: str | None = None
    replicate_to: tuple[str, ...] = ()
    compression: CompressionType = CompressionType.NONE
    uncompressed_size: int = 0
    num_messages_in_batch: int | None = None
    event_time: int = 0
    encryption_keys: tuple[EncryptionKey, ...] = ()
    encryption_algo: str | None = None
    encryption_param: bytes | None = None
    schema_version: bytes | None = None
    partition_key_b64_encoded: bool = False
    ordering_key: bytes | None = None
    deliver_at_time: int | None = None
    marker_type: int | None = None
    txn: TxnId | None = None
    highest_sequence_id: int | None = None
    null_value: bool = False
    uuid: str | None = None
    num_chunks_from_msg: int | None = None
    total_chunk_msg_size: int | None = None
    chunk_id: int | None = None
    null_partition_key: bool = False
    compacted_batch_indexes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SingleMessageMetadata:
    """What a message in a batch keeps for itself (rule 3.5.3); the payload's size is that of the payload."""

    properties: KeyValues = ()
    partition_key: str | None = None
    compacted_out: bool = False
    event_time: int = 0
    partition_key_b64_encoded: bool = False
    ordering_key: bytes | None = None
    sequence_id: int | None = None
    null_value: bool = False
    null_partition_key: bool = False


_METADATA = MessageCodec(EntryMetadata, pb.MessageMetadata.DESCRIPTOR)
_SINGLE = MessageCodec(SingleMessageMetadata, pb.SingleMessageMetadata.DESCRIPTOR)


def payload_start(entry: bytes) -> int:
    """Return where the payload begins; ProtocolError if it is no entry."""
    if len(entry) < ENTRY_HEADER_SIZE or int.from_bytes(entry[:2], "big") != CHECKSUM_MAGIC:
        raise ProtocolError(f"{len(entry)} bytes that are no entry")
    start: int = ENTRY_HEADER_SIZE + read_size(entry, 6)[0]
    if start > len(entry):
        raise ProtocolError(f"an entry of {len(entry)} bytes whose metadata ends at {start}")
    return start


def _raw_metadata(entry: bytes) -> pb.MessageMetadata:
    return parse(pb.MessageMetadata, entry[ENTRY_HEADER_SIZE : payload_start(entry)])


def metadata_of(entry: bytes) -> EntryMetadata:
    """Return all metadata; ProtocolError if it cannot be read."""
    metadata: EntryMetadata = _METADATA.read(_raw_metadata(entry))
    return metadata


def mended_metadata_of(entry: bytes) -> EntryMetadata:
    """Return all metadata, also of an entry whose texts are no UTF-8, which C++ clients can send.

    A key keeps its bytes, as base64; in other texts replacement characters stand. ProtocolError if it is no protobuf.
    """
    raw = _raw_metadata(entry)
    _mend_texts(raw)
    metadata: EntryMetadata = _METADATA.read(raw)
    return metadata


def _mend_texts(message: Any) -> None:
    key: str | bytes = getattr(message, "partition_key", "")
    if isinstance(key, bytes):
        message.partition_key, message.partition_key_b64_encoded = key_text(key)
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for one in value:
                _mend_texts(one)
        elif field.type == FieldDescriptor.TYPE_STRING and isinstance(value, bytes):
            setattr(message, field.name, value.decode(errors="replace"))
        elif field.type == FieldDescriptor.TYPE_STRING and not isinstance(value, str):
            value[:] = [one if isinstance(one, str) else one.decode(errors="replace") for one in value]


def payload_of(entry: bytes) -> bytes:
    """Return the payload as it was sent: compressed, encrypted, batched."""
    return entry[payload_start(entry) :]


def publish_time(entry: bytes) -> int:
    """Return when the producer sent it, by its own clock."""
    return signed(_raw_metadata(entry).publish_time)


class Measure(NamedTuple):
    """What a limit has to know of an entry."""

    messages: int
    """How many readers find in it at most: 0 in a marker, and in a chunk other than the first of its message."""
    publish_time: int
    """Milliseconds."""
    size: int
    """Bytes as stored; of a message in chunks all of them, at its first one."""


def measure(entry: bytes) -> Measure:
    """Without unpacking it; ProtocolError if its metadata cannot be read."""
    raw = _raw_metadata(entry)
    count, size = max(raw.num_messages_in_batch, 1), len(entry)
    if raw.HasField("marker_type"):
        count = 0
    elif raw.HasField("chunk_id") and raw.num_chunks_from_msg > 1:
        count, size = (1, max(size, raw.total_chunk_msg_size)) if raw.chunk_id == 0 else (0, 0)
    return Measure(count, signed(raw.publish_time), size)


BATCH_MESSAGE_MIN: Final = 6
"""Bytes of a message in a batch at least: a length of four, and metadata that say the payload's size."""
_BATCH_MAX: Final = 1 << 20
"""Messages of a batch whose payload was not unpacked, at most."""


def messages_in(entry: bytes, claimed: int) -> int:
    """Return how many messages the entry holds, as far as it has room for them; 1 if unreadable, never fails.

    ``claimed`` is what SEND says beside the entry. Consumers pay for so many, so it counts only if the entry's metadata
    say the same, for which one search is enough where they are honest.
    """
    if claimed <= 1:
        return 1
    stop = ENTRY_HEADER_SIZE + int.from_bytes(entry[6:ENTRY_HEADER_SIZE], "big")
    if (
        claimed * BATCH_MESSAGE_MIN <= len(entry) - stop
        and entry.find(b"\x58" + varint(claimed), ENTRY_HEADER_SIZE, stop) >= 0  # field 11, num_messages_in_batch
    ):
        return claimed
    return batch_messages(entry)


def batch_messages(entry: bytes) -> int:
    """Return how many messages the metadata say, as far as the entry has room for them; 1 if it is no batch or
    unreadable, never fails."""
    stop = ENTRY_HEADER_SIZE + int.from_bytes(entry[6:ENTRY_HEADER_SIZE], "big")
    try:
        raw = parse(pb.MessageMetadata, entry[ENTRY_HEADER_SIZE:stop])
    except ProtocolError:
        return 1
    count: int = raw.num_messages_in_batch
    if count * BATCH_MESSAGE_MIN > len(entry) - stop:
        packed = raw.compression or raw.encryption_keys
        count = min(count, _BATCH_MAX if packed else (len(entry) - stop) // BATCH_MESSAGE_MIN)
    return count if count > 1 else 1


DELIVER_AT: Final = b"\x98\x01"
"""How field 19, deliver_at_time, begins on the wire. It may stand in a text as well; the hot path looks for it."""


def deliver_at(entry: bytes) -> int:
    """Return when it wants to be delivered (rule 7.1), 0 if at once; never fails. Cheap for most entries."""
    if entry.find(DELIVER_AT, 10, 10 + (entry[7] << 16 | entry[8] << 8 | entry[9])) < 0:
        return 0
    try:
        return max(signed(_raw_metadata(entry).deliver_at_time), 0)
    except ProtocolError:
        return 0


_UUID: Final = b"\xd2\x01"
"""How field 26, uuid, begins on the wire: every chunk has it (rule 3.6.2)."""


def chunk_of(entry: bytes) -> tuple[str, bool] | None:
    """Return which message a chunk belongs to and whether it is its last; never fails."""
    if entry.find(_UUID, 10, 10 + (entry[7] << 16 | entry[8] << 8 | entry[9])) < 0:
        return None
    try:
        raw = _raw_metadata(entry)
    except ProtocolError:
        return None
    if not raw.HasField("uuid") or raw.num_chunks_from_msg < 2:
        return None
    return str(raw.uuid), raw.chunk_id >= raw.num_chunks_from_msg - 1


def may_be_chunk(entry: bytes) -> bool:
    """Return False for what is no chunk for sure; cheap, and never fails."""
    return len(entry) >= 10 and entry.find(_UUID, 10, 10 + (entry[7] << 16 | entry[8] << 8 | entry[9])) >= 0


def is_encrypted(entry: bytes) -> bool:
    """Whether its payload can be read with a key only; ProtocolError if its metadata cannot be read."""
    return bool(_raw_metadata(entry).encryption_keys)


def sticky_key_by_protobuf(entry: bytes) -> bytes:
    """Return what Key_Shared hashes (rule 5.6.1); never fails, an unreadable entry has NONE_KEY."""
    try:
        raw = _raw_metadata(entry)
    except ProtocolError:
        return NONE_KEY
    if raw.HasField("ordering_key"):
        return raw.ordering_key
    if not raw.HasField("partition_key"):
        return _utf8(raw.producer_name) + b"-%d" % signed(raw.sequence_id)
    key = _utf8(raw.partition_key)
    return key_of_base64(key) if raw.partition_key_b64_encoded else key


def _utf8(text: str | bytes) -> bytes:
    """Return UTF-8 of a proto2 string, which is bytes already if it is no text."""
    return text.encode() if isinstance(text, str) else text


def build_entry(metadata: EntryMetadata, payload: bytes | memoryview) -> bytes:
    """Return the whole entry with its checksum."""
    raw = pb.MessageMetadata()
    _METADATA.write(raw, metadata)
    data = raw.SerializeToString()
    return with_checksum(len(data).to_bytes(4, "big") + data, payload)


def build_plain_batch(
    producer_name: str, ids: tuple[int, int | None], now_ms: int, count: int, compression: int, plain_size: int,
    payload: bytes,
) -> bytes:  # fmt: skip
    """Do the same for a batch whose metadata says nothing but this; ``ids`` are the first and, if said, the highest."""
    raw = pb.MessageMetadata(
        producer_name=producer_name, sequence_id=ids[0], publish_time=now_ms, num_messages_in_batch=count
    )
    if plain_size:
        raw.uncompressed_size = plain_size
    if compression:
        raw.compression = compression  # type: ignore[assignment]  # an enum of protobuf is an int at run time
    if ids[1] is not None:
        raw.highest_sequence_id = ids[1]
    data = raw.SerializeToString()
    return with_checksum(len(data).to_bytes(4, "big") + data, payload)


def join_batch(messages: Iterable[tuple[SingleMessageMetadata, bytes]]) -> bytes:
    """Return the payload of a batch, before compression."""
    parts: list[bytes] = []
    for metadata, payload in messages:
        raw = pb.SingleMessageMetadata(payload_size=len(payload))
        _SINGLE.write(raw, metadata)
        data = raw.SerializeToString()
        parts += len(data).to_bytes(4, "big"), data, payload
    return b"".join(parts)


def split_batch(payload: bytes, count: int) -> list[tuple[SingleMessageMetadata, bytes]]:
    """Return the ``count`` messages of a batch; ProtocolError if there are fewer."""
    return [(_SINGLE.read(raw), payload[body:stop]) for raw, _, body, stop in walk_batch(payload, count)]


def walk_batch(payload: bytes, count: int) -> Iterator[tuple[pb.SingleMessageMetadata, int, int, int]]:
    """Each of ``count`` messages: its metadata, and where it, its own payload, and the next one begin.

    Raises ProtocolError when it comes to one that is missing or does not fit.
    """
    at = 0
    for index in range(count):
        if at + 4 > len(payload):
            raise ProtocolError(f"a batch of {count} ends after {index} messages")
        body = at + 4 + read_size(payload, at)[0]
        if body > len(payload):
            raise ProtocolError(f"metadata of message {index} is longer than its batch")
        raw = parse(pb.SingleMessageMetadata, payload[at + 4 : body])
        stop = body + raw.payload_size
        if raw.payload_size < 0 or stop > len(payload):
            raise ProtocolError(f"message {index} of {raw.payload_size} bytes does not fit its batch")
        yield raw, at, body, stop
        at = stop


_read_head = struct.Struct(">IBBBB").unpack_from
_SIZE, _COMPACTED_OUT, _SEQUENCE_ID = 0x18, 0x20, 0x40
"""How fields 3, 4 and 8 of SingleMessageMetadata begin on the wire."""


def cut_batch(payload: bytes, count: int) -> list[tuple[int, bytes, bytes]]:
    """Return index, metadata and own payload of each of ``count`` messages that compaction has left in a batch.

    Of the metadata no more is read than is needed for it; `single_metadata_of` reads the rest. Raises ProtocolError if
    a message is missing or does not fit.
    """
    found: list[tuple[int, bytes, bytes]] = []
    append = found.append
    at, end = 0, len(payload)
    for index in range(count):
        if at + 8 <= end:
            length, tag, low, high, more = _read_head(payload, at)
        elif at + 4 <= end:
            length, tag, low, high, more = int.from_bytes(payload[at : at + 4], "big"), 0, 0, 0, 0
        else:
            raise ProtocolError(f"a batch of {count} ends after {index} messages")
        head = at + 4
        body = head + length
        # Most have a size of one byte or two and then a sequence id, or nothing.
        if tag == _SIZE and low < 128 and (high == _SEQUENCE_ID or length == 2):
            size = low
        elif tag == _SIZE and low > 127 and high < 128 and (more == _SEQUENCE_ID or length == 3):
            size = low - 128 + (high << 7)
        elif body > end:
            raise ProtocolError(f"metadata of message {index} is longer than its batch")
        else:
            size = _payload_size(payload, head, body)
        at = body + (size if size >= 0 else -1 - size)
        if at > end:
            raise ProtocolError(f"message {index} of {at - body} bytes does not fit its batch")
        if size >= 0:
            append((index, payload[head:body], payload[body:at]))
    return found


def _payload_size(data: bytes, at: int, stop: int) -> int:
    """Read field 3 of SingleMessageMetadata; of a message that compaction has taken out it is -1 - the size."""
    i = at
    while i + 1 < stop:
        tag, value = data[i], data[i + 1]
        i += 2
        if value > 127:
            value, i = read_varint(data, i - 1)
        if tag == _SIZE:
            if i > stop or (i < stop and data[i] == _COMPACTED_OUT):
                break
            return value
        if tag not in (0x0A, 0x12):  # properties and key stand before the size
            break
        i += value
    raw = parse(pb.SingleMessageMetadata, data[at:stop])
    if raw.payload_size < 0:
        raise ProtocolError(f"a message of {raw.payload_size} bytes")
    return -1 - raw.payload_size if raw.compacted_out else int(raw.payload_size)


def single_metadata_of(data: bytes) -> Any:
    """Return the metadata of a message in a batch, with the names of SingleMessageMetadata. Raises ProtocolError."""
    return parse(pb.SingleMessageMetadata, data)
