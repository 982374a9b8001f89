"""Entries as the broker sends them to entries that can be taken: decrypted, decompressed, chunks joined, and without
the messages that are not to be delivered."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeGuard

from magnetar.client.encryption.crypto_failure_action import ConsumerCryptoFailureAction
from magnetar.client.errors import SealedMessageError, UnpackedTooLargeError
from magnetar.client.machines.acknowledgement import Place, bits_of
from magnetar.client.machines.chunk_buffer import ChunkBuffer
from magnetar.client.machines.consumption_limits import Unsealer
from magnetar.client.machines.message import Envelope, MessageOwner
from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.message_queue import QueuedEntry
from magnetar.client.values.written_schema import SchemaReading
from magnetar.model.errors import ProtocolError
from magnetar.protocol import commands as c
from magnetar.protocol.compression import CompressionType, decompress
from magnetar.protocol.entries import BATCH_MESSAGE_MIN, EntryMetadata, metadata_of, payload_of, payload_start

_UNPACKED_MAX: Final = 256 << 20
"""Bytes that one entry may be when it is unpacked; a bound against what lies about its size."""


class Intake(NamedTuple):
    """What came of one entry."""

    entry: QueuedEntry | None = None
    released: int = 0
    """Permits of messages that will not be taken from it."""
    rejected: c.ValidationError | None = None
    acknowledged: tuple[Place, ...] = ()
    """What is to be acknowledged, since it will never be a message."""
    again: tuple[Place, ...] = ()
    """What is to be asked for again, since what was before it was handed back."""


class ConsumeCounters:
    """The counters of one partition's consumer."""

    __slots__ = ("acks_sent", "bytes_received", "messages_received", "rejected")

    def __init__(self) -> None:
        self.messages_received = 0
        """With what comes again, and what compaction or acknowledgements have taken out of a batch."""
        self.bytes_received = 0
        self.rejected = 0
        """Messages that are damaged, and were acknowledged so that they do not come again."""
        self.acks_sent = 0
        """Ids in acknowledgements: entries, and messages of batches by their index."""


class EntryIntake:
    """What one consumer does with entries before they wait."""

    def __init__(
        self,
        topic: str,
        partition: int,
        chunks: ChunkBuffer,
        *,
        skip_to: MessageId | None,
        unpacked_max: int | None,
        unsealer: Unsealer | None,
        reading: SchemaReading | None,
    ) -> None:
        """``unpacked_max``: at what would be more bytes than these when it is unpacked, `unpack` raises."""
        self._topic = topic
        self._partition = partition
        self.chunks = chunks
        self.skip_to = skip_to
        """What is before and at this place in its entry is left out."""
        self.skip_also: MessageId | None = None
        """The same, of what comes again without having been asked for."""
        self._unpacked_max = unpacked_max
        self.sealed_stay = True
        """Whether what no key opens may stay unacknowledged silently (rule 6.11.2); otherwise `unpack` raises."""
        self.sealed_left: Place | None = None
        """The first entry that stayed so."""
        self._unsealer = unsealer
        self._reading = reading
        self.owner: MessageOwner | None = None

    def end(self) -> None:
        """Let go of chunks, and of the owner: it is closed."""
        self.chunks.clear()
        self.owner = None

    def unpack(self, command: c.CommandMessage, place: Place, metadata: EntryMetadata) -> Intake:
        """Return what came of an entry. Raises DamagedPayloadError, ProtocolError, UnpackedTooLargeError,
        SealedMessageError."""
        stored: bytes | None = command.entry
        payload: bytes | None = None
        start = self.skip_to
        if _leaves_out(start, place, -1) and start.batch_index() < 0:
            # who begins after it need not be able to unpack it
            return Intake(None, metadata.num_messages_in_batch or 1)
        if metadata.encryption_keys:
            sealed = payload_of(command.entry)
            payload = self._unsealed(place, metadata, sealed)
            if payload is None:
                return self._undecryptable(command, place, metadata, sealed)
            stored = None
        if self._unpacked_max is not None:
            self._measure(place, metadata, self._unpacked_max)
        if metadata.uuid is not None and (metadata.num_chunks_from_msg or 0) > 1:
            joined = self.chunks.add(place, metadata, payload_of(command.entry) if payload is None else payload)
            if joined.whole is None:
                return Intake(None, 1, acknowledged=joined.acknowledged, again=joined.again)
            metadata = metadata_of(joined.whole.data)
            envelope = self._envelope(command, place, metadata, 0, joined.places)
            whole = QueuedEntry(envelope, None, payload_of(joined.whole.data), 1)
            return Intake(whole, acknowledged=joined.acknowledged)
        if metadata.compression is not CompressionType.NONE:
            packed = payload_of(command.entry) if payload is None else payload
            payload = decompress(metadata.compression, packed, metadata.uncompressed_size, _UNPACKED_MAX)
            stored = None
        if metadata.num_messages_in_batch is None:
            envelope = self._envelope(command, place, metadata, 0)
            if _leaves_out(self.skip_to, place, -1):
                return Intake(None, 1)
            return Intake(QueuedEntry(envelope, stored, payload, 1))
        return self._batch(command, place, metadata, stored, payload)

    def _unsealed(self, place: Place, metadata: EntryMetadata, payload: bytes) -> bytes | None:
        if self._unsealer is None or not (self.sealed_stay or self._unsealer.has_keys):
            return None  # the error that is raised says it
        return self._unsealer.open(f"{self._topic}: entry {place[0]}:{place[1]}", metadata, payload)

    def _undecryptable(
        self, command: c.CommandMessage, place: Place, metadata: EntryMetadata, payload: bytes
    ) -> Intake:
        """Do as was chosen with an entry that no key opens (rule 6.11.2); FAIL leaves it unacknowledged."""
        action = ConsumerCryptoFailureAction.FAIL if self._unsealer is None else self._unsealer.failure
        count = metadata.num_messages_in_batch or 1
        if action is ConsumerCryptoFailureAction.DISCARD:
            return Intake(None, count, c.ValidationError.DecryptionError)
        if _leaves_out(self.skip_to, place, -1):
            return Intake(None, count)
        if action is ConsumerCryptoFailureAction.FAIL:
            if not self.sealed_stay:
                raise SealedMessageError(*place, self._topic)
            self.sealed_left = self.sealed_left or place
            return Intake(None, count)
        envelope = self._envelope(command, place, metadata, 0)
        envelope.seal()
        return Intake(QueuedEntry(envelope, None, payload, 1), count - 1)

    def _measure(self, place: Place, metadata: EntryMetadata, most: int) -> None:
        packed = metadata.compression is not CompressionType.NONE
        size = max(metadata.uncompressed_size if packed else 0, metadata.total_chunk_msg_size or 0)
        if size > most:
            raise UnpackedTooLargeError(*place, size, most, self._topic)

    def _batch(
        self,
        command: c.CommandMessage,
        place: Place,
        metadata: EntryMetadata,
        stored: bytes | None,
        payload: bytes | None,
    ) -> Intake:
        count = metadata.num_messages_in_batch or 0
        size = len(command.entry) - payload_start(command.entry) if payload is None else len(payload)
        if not 0 < count * BATCH_MESSAGE_MIN <= size:
            raise ProtocolError(f"a batch of {count} messages in {size} bytes")
        envelope = self._envelope(command, place, metadata, count)
        starts: list[MessageId] = []
        if self.skip_to is not None or self.skip_also is not None:
            starts = [start for start in (self.skip_to, self.skip_also) if _leaves_out(start, place, 0)]
        if not command.ack_set and not starts:
            return Intake(QueuedEntry(envelope, stored, payload, count))
        bits = (1 << count) - 1
        if command.ack_set:
            bits &= bits_of(command.ack_set)
        for start in starts:
            bits &= 0 if start.batch_index() < 0 else ~((1 << (start.batch_index() + 1)) - 1)
        left = bits.bit_count()
        entry = QueuedEntry(envelope, stored, payload, left, bits) if left else None
        return Intake(entry, count - left)

    def _envelope(
        self, command: c.CommandMessage, at: Place, metadata: EntryMetadata, size: int, chunks: tuple[Place, ...] = ()
    ) -> Envelope:
        return Envelope(
            self._topic, self._partition, at, metadata, size, command.redelivery_count, command.broker_metadata,
            chunks, None if self._reading is None else self._reading.at(metadata.schema_version), self.owner,
        )  # fmt: skip


def _leaves_out(start: MessageId | None, place: Place, index: int) -> TypeGuard[MessageId]:
    """Whether a message is left out by one of the starts."""
    if start is None or place != (start.ledger_id(), start.entry_id()):
        return False
    return start.batch_index() < 0 or index <= start.batch_index()
