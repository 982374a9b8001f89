"""Many entries to columns: values, keys, times and the rest as plain lists, without an object per message.

The bulk counterpart of `entries`: what analytics reads is a column, not a message. Per entry there is one row in the
``entry_*`` lists, with the number of its messages that were kept; per message one element in each list that was asked
for. Kept is every message except those that compaction removed from a batch, and all messages before ``first`` or from
``stop`` on. Entries that are markers are no messages at all.

A chunk of a large message and an encrypted payload cannot be read on their own and are refused by name.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from magnetar.model.errors import NotAvailableError, ProtocolError
from magnetar.model.ids import signed
from magnetar.protocol.codec import parse
from magnetar.protocol.commands import KeyValues
from magnetar.protocol.compression import CompressionType, decompress
from magnetar.protocol.entries import payload_of
from magnetar.protocol.frames import ENTRY_HEADER_SIZE, read_size
from magnetar.protocol.generated import pulsar_pb2 as pb
from magnetar.protocol.message_keys import key_of_base64

MAX_UNCOMPRESSED: Final = 1 << 28
_ALL: Final = (1 << 31) - 1


class Row(NamedTuple):
    """What one entry's messages have in common."""

    ledger: int
    entry: int
    messages: int
    """How many of them were kept."""
    batch_size: int
    """0 for a single message that is no batch."""
    publish_time: int
    producer_name: str
    schema_version: bytes | None


class Columns:
    """Fill with `add`, read the lists, `clear`, go on. ``details`` false: values only, twice as fast."""

    __slots__ = (
        "byte_count",
        "details",
        "entries",
        "event_times",
        "indexes",
        "keys",
        "ordering_keys",
        "properties",
        "sequence_ids",
        "values",
    )

    def __init__(self, *, details: bool = True) -> None:
        self.details = details
        self.clear()

    def clear(self) -> None:
        """Fresh lists; those that were read stay as they are."""
        self.byte_count = 0
        self.entries: list[Row] = []
        self.values: list[bytes | None] = []
        """None is a message without a value, which deletes its key when a topic is compacted."""
        self.indexes: list[int] = []
        """Position in the batch, 0 for a single message."""
        self.keys: list[bytes | None] = []
        self.ordering_keys: list[bytes | None] = []
        self.event_times: list[int] = []
        """0 is "none"."""
        self.sequence_ids: list[int] = []
        self.properties: list[KeyValues] = []

    def __len__(self) -> int:
        return len(self.values)

    def add(self, ledger: int, entry: int, data: bytes, first: int = 0, stop: int = _ALL) -> int:
        """Append one stored entry's messages ``[first, stop)``; how many. ProtocolError if it cannot be read."""
        start = ENTRY_HEADER_SIZE + (read_size(data, 6)[0] if len(data) >= ENTRY_HEADER_SIZE else 0)
        metadata = parse(pb.MessageMetadata, data[ENTRY_HEADER_SIZE:start])
        if metadata.HasField("marker_type"):
            return 0
        payload = _plain_payload(metadata, data, f"entry {ledger}:{entry}")
        before = len(self.values)
        batch_size = 0
        if metadata.HasField("num_messages_in_batch"):
            batch_size = metadata.num_messages_in_batch
            if batch_size and not self.details:
                self._split_values(payload, batch_size, first, stop)
            elif batch_size:
                self._split(payload, metadata, first, stop)
        elif first <= 0 < stop:
            self._single(payload, metadata)
        kept = len(self.values) - before
        self.byte_count += len(payload)
        self.entries.append(
            Row(
                ledger,
                entry,
                kept,
                batch_size,
                signed(metadata.publish_time),
                _text(metadata.producer_name),
                metadata.schema_version if metadata.HasField("schema_version") else None,
            )
        )
        return kept

    def _single(self, payload: bytes, metadata: pb.MessageMetadata) -> None:
        self.values.append(None if metadata.null_value else payload)
        self.indexes.append(0)
        if self.details:
            self.keys.append(_key(metadata) if metadata.HasField("partition_key") else None)
            self.ordering_keys.append(metadata.ordering_key if metadata.HasField("ordering_key") else None)
            self.event_times.append(signed(metadata.event_time))
            self.sequence_ids.append(signed(metadata.sequence_id))
            self.properties.append(
                tuple((_text(p.key), _text(p.value)) for p in metadata.properties) if metadata.properties else ()
            )

    def _split_values(self, payload: bytes, count: int, first: int, stop: int) -> None:
        """Values and indexes only."""
        read, values, indexes = pb.SingleMessageMetadata.FromString, self.values, self.indexes
        position, end = 0, len(payload)
        try:
            for index in range(min(count, stop)):
                start = position + 4 + read_size(payload, position)[0]
                one = read(payload[position + 4 : start])
                position = start + one.payload_size
                if position > end or start > position:
                    raise ProtocolError(f"message {index} does not fit its batch")
                if index >= first and not one.compacted_out:
                    values.append(None if one.null_value else payload[start:position])
                    indexes.append(index)
        except ProtocolError:
            raise
        except Exception as error:
            raise ProtocolError(f"a batch of {count} that cannot be split: {error}") from None

    def _split(self, payload: bytes, metadata: pb.MessageMetadata, first: int, stop: int) -> None:
        read = pb.SingleMessageMetadata.FromString
        values, indexes, keys, times = self.values, self.indexes, self.keys, self.event_times
        ordering_keys, sequence_ids, properties = self.ordering_keys, self.sequence_ids, self.properties
        count = metadata.num_messages_in_batch
        base = signed(metadata.sequence_id)
        position, end = 0, len(payload)
        try:
            for index in range(min(count, stop)):
                start = position + 4 + read_size(payload, position)[0]
                one = read(payload[position + 4 : start])
                position = start + one.payload_size
                if position > end or start > position:
                    raise ProtocolError(f"message {index} does not fit its batch")
                if index < first or one.compacted_out:
                    continue
                values.append(None if one.null_value else payload[start:position])
                indexes.append(index)
                keys.append(_key(one) if one.HasField("partition_key") else None)
                times.append(signed(one.event_time))
                ordering_keys.append(one.ordering_key if one.HasField("ordering_key") else None)
                sequence_ids.append(signed(one.sequence_id) if one.HasField("sequence_id") else base + index)
                found = one.properties
                properties.append(tuple((_text(p.key), _text(p.value)) for p in found) if found else ())
        except ProtocolError:
            raise
        except Exception as error:
            raise ProtocolError(f"a batch of {count} that cannot be split: {error}") from None


def _plain_payload(metadata: pb.MessageMetadata, data: bytes, where: str) -> bytes:
    if metadata.encryption_keys:
        raise NotAvailableError(f"{where} is encrypted; decryption is not built here yet")
    if metadata.num_chunks_from_msg > 1 and metadata.HasField("uuid"):
        raise NotAvailableError(f"{where} is a chunk of a larger message; joining chunks is not built here yet")
    payload = payload_of(data)
    if not metadata.compression:
        return payload
    return decompress(CompressionType(metadata.compression), payload, metadata.uncompressed_size, MAX_UNCOMPRESSED)


def _text(text: str | bytes) -> str:
    """A proto2 string, which is bytes if it is not UTF-8."""
    return text if isinstance(text, str) else text.decode(errors="replace")


def _key(message: pb.MessageMetadata | pb.SingleMessageMetadata) -> bytes:
    key: str | bytes = message.partition_key
    raw = key.encode() if isinstance(key, str) else key
    return key_of_base64(raw) if message.partition_key_b64_encoded else raw
