"""The queue of one consumer on one topic or partition (rules of 5.3, 5.7, 5.8, 6.1, 6.2, 6.6).

    entry -> messages -> queue -> application -> acknowledged, refused, or neither
                           |
                     permits: as many as the queue takes, given back when half of them were taken

When the connection is lost, the broker delivers everything again that is not acknowledged, so the queue is emptied; a
reader, of which the broker remembers nothing, says where it goes on. AckTracker that were not written yet are
written first on the next connection. Whatever is to be written is collected here, and `commands` gives it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from magnetar.client.errors import UnpackedTooLargeError
from magnetar.client.machines.acknowledgement import AckTracker, ack_set_of, bits_of
from magnetar.client.machines.chunk_buffer import ChunkBuffer, Place
from magnetar.client.machines.message import Envelope, Message
from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.redelivery import NegativeAcknowledgements
from magnetar.model.errors import ProtocolError
from magnetar.protocol import commands as c
from magnetar.protocol.compression import CompressionType, DamagedPayloadError, decompress
from magnetar.protocol.entries import EntryMetadata, metadata_of, payload_of, walk_batch

IDS_MAX: Final = 1_000
"""Message ids of one command at most (rule 6.3.4)."""
_UNPACKED_MAX: Final = 256 << 20
"""Bytes that one entry may be when it is unpacked; a bound against what lies about its size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumptionLimits:
    """How much waits, and how acknowledgements are sent."""

    queue_size: int = 1_000
    """Messages; 0: the broker sends one when the application asks for one."""
    batch_index_ack: bool = False
    negative_ack_delay: float = 60.0
    """Seconds."""
    pending_chunked_messages: int = 10
    acknowledge_oldest_chunked: bool = False


class Consumption:
    """One consumer's queue; the caller owns time and the wire."""

    def __init__(
        self,
        topic: str,
        partition: int,
        limits: ConsumptionLimits,
        *,
        ordered: bool,
        skip_to: MessageId | None = None,
        unpacked_max: int | None = None,
    ) -> None:
        """``ordered``: Exclusive and Failover get everything again when one message is asked for again (rule 6.2.1).

        ``skip_to``: a reader begins after this message; messages of its entry up to its index are left out.
        ``unpacked_max``: at what would be more bytes than these when it is unpacked, `received` raises.
        """
        self.topic = topic
        self.queue: deque[Message] = deque()
        self.last_taken: Message | None = None
        self.epoch = 0
        """Raised when everything is asked for again; messages with an older one are left out (rule 5.8.5)."""
        self.negative = NegativeAcknowledgements(limits.negative_ack_delay)
        self.acknowledgements = AckTracker(by_index=limits.batch_index_ack)
        self._partition = partition
        self._limits = limits
        self._ordered = ordered
        self._skip_to = skip_to
        self._unpacked_max = unpacked_max
        self._chunks = ChunkBuffer(
            limits.pending_chunked_messages, acknowledge_oldest=limits.acknowledge_oldest_chunked
        )
        self._consumer_id: int | None = None
        self._granted = 0
        """Permits that the broker has and has not used yet, as far as is known."""
        self._freed = 0
        """Permits to give back."""
        self._damaged: list[tuple[Place, c.ValidationError]] = []
        self._again: list[Place] | None = None
        """Entries to ask for; empty for everything."""

    def opened(self, consumer_id: int) -> None:
        """Begin on a new connection."""
        self._consumer_id = consumer_id
        self._freed = self._limits.queue_size
        self._granted = 0

    def lost(self) -> None:
        """End with the connection: what was not acknowledged comes again."""
        self._consumer_id = None
        self._again = None
        self._granted = self._freed = 0
        self._forget()

    def _forget(self) -> None:
        self.queue.clear()
        self._chunks.clear()
        self.acknowledgements.come_again()
        self.negative.clear()

    def received(self, command: c.CommandMessage) -> None:
        """Take what the broker has sent; messages are in `queue` then. Raises UnpackedTooLargeError."""
        place = command.message_id.ledger, command.message_id.entry
        try:
            metadata = metadata_of(command.entry)
        except ProtocolError:
            self._granted -= 1
            self._reject(place, c.ValidationError.BatchDeSerializeError, 1)
            return
        count = metadata.num_messages_in_batch or 1
        self._granted -= count
        if not command.checksum_ok:
            self._reject(place, c.ValidationError.ChecksumMismatch, count)
            return
        if command.consumer_epoch is not None and command.consumer_epoch < self.epoch:
            self._release(count)
            return
        try:
            self._unpack(command, place, metadata)
        except DamagedPayloadError as error:
            self._reject(place, error.reason, count)
        except ProtocolError:
            self._reject(place, c.ValidationError.BatchDeSerializeError, count)

    def _unpack(self, command: c.CommandMessage, place: Place, metadata: EntryMetadata) -> None:
        if metadata.encryption_keys:
            # It cannot be read here; it stays unacknowledged (rule 6.11.2, FAIL).
            self._release(metadata.num_messages_in_batch or 1)
            return
        if self._unpacked_max is not None:
            self._measure(place, metadata, self._unpacked_max)
        payload = payload_of(command.entry)
        if metadata.uuid is not None and (metadata.num_chunks_from_msg or 0) > 1:
            joined = self._chunks.add(place, metadata, payload)
            for one in joined.acknowledged:
                self.acknowledgements.individual(one, -1, 0)
            if joined.whole is None:
                self._release(1)
                return
            metadata, payload = metadata_of(joined.whole.data), payload_of(joined.whole.data)
            envelope = self._envelope(command, place, metadata, 0, joined.places)
            self.queue.append(Message(envelope, payload, -1, None))
            return
        plain = decompress(metadata.compression, payload, metadata.uncompressed_size, _UNPACKED_MAX)
        if metadata.num_messages_in_batch is None:
            envelope = self._envelope(command, place, metadata, 0)
            if self._is_before_start(place, -1):
                self._release(1)
            else:
                self.queue.append(Message(envelope, plain, -1, None))
            return
        self._unpack_batch(command, place, metadata, plain, metadata.num_messages_in_batch)

    def _measure(self, place: Place, metadata: EntryMetadata, most: int) -> None:
        packed = metadata.compression is not CompressionType.NONE
        size = max(metadata.uncompressed_size if packed else 0, metadata.total_chunk_msg_size or 0)
        if size > most:
            raise UnpackedTooLargeError(*place, size, most, self.topic)

    def _unpack_batch(
        self, command: c.CommandMessage, place: Place, metadata: EntryMetadata, plain: bytes, count: int
    ) -> None:
        envelope = self._envelope(command, place, metadata, count)
        bits = (1 << count) - 1
        if command.ack_set:
            bits &= bits_of(command.ack_set)
        found: list[Message] = []
        skipped = 0
        check = self._skip_to is not None
        for index, (single, _, body, stop) in enumerate(walk_batch(plain, count)):
            if single.compacted_out or not bits >> index & 1 or (check and self._is_before_start(place, index)):
                bits &= ~(1 << index)
                skipped += 1
            else:
                found.append(Message(envelope, plain[body:stop], index, single))
        if bits:
            self.acknowledgements.delivered(place, bits)
        self.queue += found
        if skipped:
            self._release(skipped)

    def _envelope(
        self,
        command: c.CommandMessage,
        place: Place,
        metadata: EntryMetadata,
        batch_size: int,
        chunks: tuple[Place, ...] = (),
    ) -> Envelope:
        return Envelope(
            self.topic, self._partition, place, metadata, batch_size, command.redelivery_count,
            command.broker_metadata, chunks,
        )  # fmt: skip

    def _is_before_start(self, place: Place, index: int) -> bool:
        start = self._skip_to
        if start is None or place != (start.ledger_id(), start.entry_id()):
            return False
        return start.batch_index() < 0 or index <= start.batch_index()

    def _reject(self, place: Place, reason: c.ValidationError, count: int) -> None:
        """Have the broker note what nobody will ever read (rule 3.7.8)."""
        self._damaged.append((place, reason))
        self._release(count)

    def _release(self, count: int) -> None:
        self._freed += count

    def take(self) -> Message:
        """Return the next message of the queue, which must have one."""
        message = self.queue.popleft()
        self.last_taken = message
        if self._limits.queue_size:
            self._freed += 1
        return message

    def want_one(self) -> None:
        """Permit one message where there is no queue, unless one is on its way."""
        if not self._limits.queue_size and self._granted <= 0 and not self._freed and not self.queue:
            self._freed = 1

    def acknowledge(self, message_id: MessageId) -> None:
        """Take one message as done with."""
        if message_id.chunks:
            for place in message_id.chunks:
                self._done(place, -1, 0)
            return
        place = message_id.ledger_id(), message_id.entry_id()
        self._done(place, message_id.batch_index(), message_id.batch_size)

    def acknowledge_message(self, message: Message) -> None:
        """Do the same for a message at hand, without an id made for it."""
        one = message.envelope
        if one.chunks:
            self.acknowledge(message.message_id())
        else:
            self._done((one.ledger, one.entry), message.index_in_batch, one.batch_size)

    def _done(self, place: Place, index: int, batch_size: int) -> None:
        if self.acknowledgements.individual(place, index, batch_size):
            self.negative.drop(place)

    def acknowledge_cumulative(self, message_id: MessageId) -> None:
        """Take a message and all before it as done with."""
        place = message_id.ledger_id(), message_id.entry_id()
        self.acknowledgements.cumulative(place, message_id.batch_index(), message_id.batch_size)

    def ids_in_transaction(self, message_id: MessageId, *, cumulative: bool) -> tuple[c.MessageIdData, ...]:
        """Return the ids of an acknowledgement that a transaction carries; a message of a batch with its ack set."""
        if message_id.chunks and not cumulative:
            return tuple(c.MessageIdData(*place) for place in message_id.chunks)
        data = c.MessageIdData(message_id.ledger_id(), message_id.entry_id())
        index, size = message_id.batch_index(), message_id.batch_size
        if index < 0 or size <= 1:
            return (data,)
        gone = (1 << (index + 1)) - 1 if cumulative else 1 << index
        left = ((1 << size) - 1) & ~gone
        return (data._replace(ack_set=ack_set_of(left), batch_size=size) if left else data,)

    def refuse(self, message_id: MessageId, now: float) -> None:
        """Ask for a message again after the delay."""
        places = message_id.chunks or ((message_id.ledger_id(), message_id.entry_id()),)
        self.negative.add(places, now)

    def redeliver_due(self, now: float) -> None:
        """Ask for what is due."""
        places = self.negative.take_due(now)
        if not places:
            return
        if self._ordered:
            self.redeliver_all()
            return
        for place in places:
            self.acknowledgements.forget(place)
        self._again = [*(self._again or ()), *places]

    def redeliver_all(self) -> None:
        """Ask for everything again that is not acknowledged; what is in the queue comes again, too."""
        self._freed += len(self.queue) if self._limits.queue_size else 0
        self._forget()
        self.epoch += self._ordered
        self._again = []

    def expire_chunks(self, now_ms: int) -> None:
        """Give up on messages whose chunks do not come."""
        for place in self._chunks.expire(now_ms):
            self.acknowledgements.individual(place, -1, 0)

    def restart(self, start: MessageId | None) -> None:
        """Forget everything, for a seek; a reader goes on at ``start``."""
        self._forget()
        self._skip_to = start
        self.last_taken = None

    def restart_after(self, message_id: MessageId) -> None:
        """Leave out what a reader has had: a broker may begin with the entry of its last message."""
        self._skip_to = message_id

    @property
    def incomplete(self) -> bool:
        """Whether chunks wait for the rest of their message."""
        return self._chunks.waiting

    def commands(self) -> list[c.Command]:
        """Return what is to be written now, in order; nothing without a connection."""
        found: list[c.Command] = []
        if (consumer_id := self._consumer_id) is None:
            return found
        for (ledger, entry), reason in self._damaged:
            ids = (c.MessageIdData(ledger, entry),)
            found.append(c.CommandAck(consumer_id, c.AckType.Individual, ids, validation_error=reason))
        self._damaged.clear()
        if self.acknowledgements.waiting:
            found += self._acks(consumer_id)
        if self._again is not None:
            found += self._redelivery(consumer_id, self._again)
            self._again = None
        if self._freed and (self._freed * 2 >= self._limits.queue_size):
            found.append(c.CommandFlow(consumer_id, self._freed))
            self._granted += self._freed
            self._freed = 0
        return found

    def _acks(self, consumer_id: int) -> list[c.Command]:
        found: list[c.Command] = []
        last = self.acknowledgements.take_cumulative()
        if last is not None:
            found.append(c.CommandAck(consumer_id, c.AckType.Cumulative, (last,)))
        ids = self.acknowledgements.take_individual()
        for at in range(0, len(ids), IDS_MAX):
            found.append(c.CommandAck(consumer_id, c.AckType.Individual, tuple(ids[at : at + IDS_MAX])))
        return found

    def _redelivery(self, consumer_id: int, places: list[Place]) -> list[c.Command]:
        epoch = self.epoch if self._ordered else None
        if not places:
            return [c.CommandRedeliverUnacknowledgedMessages(consumer_id, (), epoch)]
        ids = [c.MessageIdData(*place) for place in places]
        return [
            c.CommandRedeliverUnacknowledgedMessages(consumer_id, tuple(ids[at : at + IDS_MAX]))
            for at in range(0, len(ids), IDS_MAX)
        ]

    def check(self) -> None:
        """Assert what must always hold: the broker never has more permits than the queue has room."""
        assert self._freed >= 0
        if self._limits.queue_size and self._consumer_id is not None:
            assert self._granted + self._freed <= self._limits.queue_size
