"""The queue of one consumer on one topic or partition (rules of 5.3, 5.7, 5.8, 6.1, 6.2, 6.6).

    entry -> queue -> messages at hand -> application -> acknowledged, refused, or neither
                           |
                     permits: as many as the queue takes, given back when half of them were taken

Permits are counted when nothing is at hand any more (`used_up`), which is when they are due: no more is put at hand.

When the connection is lost, the broker delivers everything again that is not acknowledged, so the queue is emptied; a
reader, of which the broker remembers nothing, says where it goes on. Acknowledgements that were not written yet are
written first on the next connection. Whatever is to be written is collected here, and `commands` gives it.
"""

from __future__ import annotations

from sys import maxsize
from typing import Any

from magnetar.client.machines.acknowledgement import AckTracker, bits_of, flags_of
from magnetar.client.machines.chunk_buffer import ChunkBuffer, Place
from magnetar.client.machines.consumer_commands import redeliver_commands
from magnetar.client.machines.consumption_limits import ConsumptionLimits, Unsealer
from magnetar.client.machines.entry_intake import ConsumeCounters, EntryIntake, Intake
from magnetar.client.machines.message import Envelope, Message
from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.message_queue import MessageQueue, QueuedEntry
from magnetar.client.machines.prefetch.permits import Permits
from magnetar.client.machines.prefetch.resent_entries import ResentEntries
from magnetar.client.machines.redelivery.redeliveries import Redeliveries
from magnetar.client.values.written_schema import SchemaReading
from magnetar.model.errors import ProtocolError
from magnetar.protocol import commands as c
from magnetar.protocol.compression import DamagedPayloadError
from magnetar.protocol.entries import cut_batch, metadata_of


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
        unsealer: Unsealer | None = None,
        reading: SchemaReading | None = None,
    ) -> None:
        """``ordered``: Exclusive and Failover get everything again when one message is asked for again (rule 6.2.1).

        ``skip_to``: a reader begins after this message; messages of its entry up to its index are left out.
        ``unpacked_max``: at what would be more bytes than these when it is unpacked, `received` raises.
        """
        self.topic = topic
        self.queue = MessageQueue(self._cut)
        self.at_hand = self.queue.at_hand
        self.epoch = 0
        """Raised when everything is asked for again; messages with an older one are left out (rule 5.8.5)."""
        self.redeliveries = Redeliveries(limits.redelivery)
        self.paused = False
        """Whether the broker is to send no more for now."""
        self.acknowledgements = AckTracker(by_index=limits.batch_index_ack)
        self._limits = limits
        self._redelivered_max = most = limits.redelivery.max_redeliver_count
        # Without a queue, messages that were never received count as redelivered: none is dead before a refusal.
        self._dead_above = maxsize if most is None or limits.in_all is not None else most
        self._ordered = ordered
        self.counters = ConsumeCounters()
        self.chunks = ChunkBuffer(limits.pending_chunked_messages, acknowledge_oldest=limits.acknowledge_oldest_chunked)
        self.intake = EntryIntake(
            topic,
            partition,
            self.chunks,
            skip_to=skip_to,
            unpacked_max=unpacked_max,
            unsealer=unsealer,
            reading=reading,
        )
        self._consumer_id: int | None = None
        self.permits = Permits(limits.queue_size)
        self._resent = ResentEntries()
        self._begun = False  # whether something was taken since everything was to come again
        self._damaged: list[tuple[Place, c.ValidationError]] = []
        self._again: list[Place] | None = None
        """Entries to ask for; empty for everything."""

    def opened(self, consumer_id: int) -> None:
        """Begin on a new connection."""
        self._consumer_id = consumer_id
        self.permits.opened()

    def lost(self) -> None:
        """End with the connection: what was not acknowledged comes again."""
        self._consumer_id = None
        self._again = None
        self.permits.lost()
        self._forget()

    @property
    def waiting(self) -> int:
        """How many messages have come and were not taken. Of a batch that turns out to be damaged there are fewer."""
        return self.queue.waiting

    @property
    def full(self) -> bool:
        """Whether messages wait and the broker sends no more before some are taken."""
        return self.permits.granted <= 0 and self.waiting > 0

    def _forget(self) -> None:
        self.queue.clear()
        self.permits.overdrawn = 0
        self.chunks.clear()
        self._resent.forget()
        self.intake.skip_also, self._begun = None, False
        self.acknowledgements.come_again()
        self.redeliveries.clear()

    def received(self, command: c.CommandMessage) -> None:
        """Take what the broker has sent; its messages are `waiting` then. Raises UndeliverableError."""
        place = command.message_id.ledger, command.message_id.entry
        try:
            metadata = metadata_of(command.entry)
        except ProtocolError:
            self.permits.granted -= 1
            self._reject(place, c.ValidationError.BatchDeSerializeError, 1)
            return
        count = metadata.num_messages_in_batch or 1
        self.permits.charge(count, count if not command.ack_set else bits_of(command.ack_set).bit_count())
        self.counters.messages_received += count
        self.counters.bytes_received += len(command.entry)
        if not command.checksum_ok:
            self._reject(place, c.ValidationError.ChecksumMismatch, count)
            return
        old = command.consumer_epoch is not None and command.consumer_epoch < self.epoch
        if old or self._resent.leaves_out(place):
            self.permits.free(count)
            return
        try:
            self._take_in(self.intake.unpack(command, place, metadata), place)
        except DamagedPayloadError as error:
            self._reject(place, error.reason, count)
        except ProtocolError:
            self._reject(place, c.ValidationError.BatchDeSerializeError, count)

    def _take_in(self, found: Intake, place: Place) -> None:
        for one in found.acknowledged:
            self.acknowledgements.individual(one, -1, 0)
        self.permits.free(found.released)
        if found.again and not self._ordered:
            self._again = [*found.again] if self._again is None else self._again and [*self._again, *found.again]
        if found.rejected is not None:
            self._damaged.append((place, found.rejected))
        if found.entry is None:
            self.queue.passed = max(self.queue.passed or place, place)
        else:
            self._put(found.entry)

    def _cut(self, one: QueuedEntry) -> list[Message]:
        """Make messages of an entry, the last one first."""
        envelope, size = one.envelope, one.envelope.batch_size
        if not size:
            return self._noted(envelope, [Message(envelope, one.payload, -1, None)])
        place = envelope.ledger, envelope.entry
        try:
            found = cut_batch(one.payload, size)
        except ProtocolError:
            self._reject(place, c.ValidationError.BatchDeSerializeError, one.messages)
            return []
        flags: bytearray | None = None
        if one.bits or len(found) < size:
            there = bytearray(size)
            for index, _, _ in found:
                there[index] = 1
            flags = bytearray(map(min, there, flags_of(size, one.bits or (1 << size) - 1)))
            found = [each for each in found if flags[each[0]]]
            self.permits.free(one.messages - len(found))
        if found and envelope.left is None:
            envelope.left = self.acknowledgements.delivered(place, flags or bytearray(b"\1") * size)
        found.reverse()
        return self._noted(envelope, [Message(envelope, data, index, single) for index, single, data in found])

    def _noted(self, envelope: Envelope, messages: list[Message]) -> list[Message]:
        """Note messages that were redelivered as often as they may, or more often."""
        most, count = self._redelivered_max, envelope.redelivery_count
        if most is not None and count >= most:
            count = most if count <= self._dead_above else count
            self.redeliveries.arrived((envelope.ledger, envelope.entry), count, reversed(messages))
        return messages

    def _put(self, one: QueuedEntry) -> None:
        """Queue an entry for the application, unless it was redelivered too often."""
        if one.envelope.redelivery_count > self._dead_above:
            self.permits.free(len(self._cut(one)))
        else:
            self.queue.put(one)

    def refill(self, *, across: bool = False) -> bool:
        """Put the next messages at hand, if none is, of one entry or ``across``; returns whether there are any."""
        size = self._limits.queue_size
        if self._limits.one_at_hand:
            return self.queue.refill(1, across=across)
        return self.queue.refill(max((size + 1) // 2 - self.permits.freed, 1) if size else maxsize, across=across)

    def used_up(self) -> int:
        """Give the permits back of what was at hand, now that it was taken; returns how many that is."""
        taken = self.queue.used_up()
        self._begun = True
        self.permits.taken(taken)
        return taken

    def take_back(self) -> int:
        """Put back what was put at hand and not taken; returns how many were taken."""
        taken = self.queue.fold()
        self._begun = self._begun or taken > 0
        self.permits.taken(taken)
        return taken

    def take_entries(self, most: int) -> list[QueuedEntry]:
        """Take up to ``most`` messages as entries, the last of which may be a part of one."""
        self.permits.taken(self.queue.fold())
        found = self.queue.take_entries(most, self._delivered)
        self._begun = True
        self.permits.taken(sum(one.messages for one in found))
        return found

    def _delivered(self, one: QueuedEntry) -> None:
        envelope, size = one.envelope, one.envelope.batch_size
        if size and envelope.left is None:
            flags = flags_of(size, one.bits or (1 << size) - 1)
            envelope.left = self.acknowledgements.delivered((envelope.ledger, envelope.entry), flags)

    def reject_taken(self, one: QueuedEntry) -> None:
        """Have the broker note that nothing can be read of an entry that was taken."""
        place = one.envelope.ledger, one.envelope.entry
        self.acknowledgements.forget(place)
        self._damaged.append((place, c.ValidationError.BatchDeSerializeError))

    def leave_out(self, one: QueuedEntry) -> None:
        """Take what compaction has removed from a batch that was taken as done with."""
        left = one.envelope.left
        if left is not None and left.known:
            there = {index for index, _, _ in cut_batch(one.payload, one.envelope.batch_size)}
            for index in set(range(one.envelope.batch_size)) - there:
                self.acknowledgements.cross_off(left, index)

    def acknowledge_range(self, place: Place, first: int, stop: int, batch_size: int) -> None:
        """Take neighbouring messages of one entry as done with."""
        if self.acknowledgements.cross_off_range(place, first, stop, batch_size):
            self.redeliveries.done(place)

    def put_back(self, taken: list[QueuedEntry], generation: int) -> None:
        """Put back what was taken as entries, before anything else, unless it comes again by itself."""
        if generation == self.queue.generation:
            self.permits.put_back(sum(one.messages for one in taken))
            self.queue.put_back(taken)

    def _reject(self, place: Place, reason: c.ValidationError, count: int) -> None:
        """Have the broker note what will never be read (rule 3.7.8)."""
        self._damaged += [(each, reason) for each in (*self.chunks.take_damaged(), place)]
        self.queue.passed = max(self.queue.passed or place, place)
        self.counters.rejected += count
        self.permits.free(count)

    def hand_back(self) -> bool:
        """Hand everything back to the broker of which nothing was taken; returns whether there was something.

        On an ordered subscription it comes again with all that is not acknowledged, of which the application gets what
        it has not had; otherwise it alone comes again, to a consumer that has permits, and counts as redelivered.
        """
        chunks = self.chunks.hand_back()
        places = [each for one in self.queue.drop_untouched() for each in one.envelope.places] + chunks
        if not places:
            return False
        for place in places:
            self.acknowledgements.forget(place)
        if not self._ordered:
            self._again = places if self._again is None else self._again and self._again + places
            return True
        # Chunks may stand before what was taken; then the application has that once more.
        begun = (self._begun or self.queue.lent > len(self.at_hand)) and not chunks
        last = self.queue.last_taken if begun else None
        if self._limits.reader and last is not None:
            self.acknowledge_cumulative(last)
        self._resent.expect(last, whole=self.waiting > 0)
        self.intake.skip_also = self._resent.part
        self.epoch += 1
        self._again = []
        return True

    def acknowledge(self, message_id: MessageId) -> None:
        """Take one message as done with."""
        if message_id.chunks:
            for place in message_id.chunks:
                self._done(place, -1, 0)
            return
        place = message_id.ledger_id(), message_id.entry_id()
        self._done(place, message_id.batch_index(), message_id.batch_size)

    def acknowledge_message(self, message: Message[Any]) -> bool:
        """Do the same for a message at hand, without an id made for it; returns whether there is something to send."""
        one = message.envelope
        left = one.left
        if left is not None and left.known:
            due = self.acknowledgements.cross_off(left, message.index_in_batch)
            if not left.count:
                self.redeliveries.done(left.place)
            return due
        if one.chunks:
            self.acknowledge(message.message_id())
        else:
            self._done((one.ledger, one.entry), message.index_in_batch, one.batch_size)
        return True

    def _done(self, place: Place, index: int, batch_size: int) -> None:
        if self.acknowledgements.individual(place, index, batch_size):
            self.redeliveries.done(place)

    def acknowledge_cumulative(self, message_id: MessageId) -> None:
        """Take a message and all before it as done with."""
        ledger, entry = message_id.ledger_id(), message_id.entry_id()
        self.acknowledgements.cumulative((ledger, entry), message_id.batch_index(), message_id.batch_size)
        whole = message_id.batch_index() + 1 >= message_id.batch_size
        self.redeliveries.done_until((ledger, entry if whole else entry - 1))

    def redeliver_due(self, now: float) -> tuple[list[Place], list[Place]]:
        """Ask for what is due, and return it: what was refused, and what the application had for too long."""
        refused, late = self.redeliveries.take_due(now)
        places = refused + late
        if self._ordered and places:
            self.redeliver_all()
        elif places:
            for place in places:
                self.acknowledgements.forget(place)
            dropped = self.queue.drop(set(places))
            self.permits.free(dropped)
            self._again = [*(self._again or ()), *places]
        return refused, late

    def redeliver_all(self) -> None:
        """Ask for everything again that is not acknowledged; what is in the queue comes again, too."""
        self.permits.free(self.queue.queued + self.queue.lent - self.permits.overdrawn)
        self._forget()
        self.epoch += self._ordered
        self._again = []

    def expire_chunks(self, now_ms: int, *, active: bool = True) -> None:
        """Give up on messages whose chunks do not come, though the broker may send them; what an inactive consumer has
        of them comes to the ``active`` one of the subscription."""
        if not active:
            self.chunks.clear()
        for place in self.chunks.expire(now_ms, asked=self.permits.granted > 0 and not self.paused):
            self.acknowledgements.individual(place, -1, 0)

    def restart(self, start: MessageId | None) -> None:
        """Forget everything, for a seek; a reader goes on at ``start``."""
        # Nothing is to be asked of the connection that ends with the seek.
        self.permits.granted += self.queue.queued + self.queue.lent - self.permits.overdrawn
        self._forget()
        self.intake.skip_to = start
        self.queue.forget_last()

    def restart_after(self, message_id: MessageId) -> None:
        """Leave out what a reader has had: a broker may begin with the entry of its last message."""
        self.intake.skip_to = message_id

    def commands(self, *, acks: bool = True) -> list[c.Command]:
        """Return what is to be written now, in order; nothing without a connection.

        ``acks``: whether acknowledgements are; they are in any case where entries are asked for again.
        """
        found: list[c.Command] = []
        if (consumer_id := self._consumer_id) is None:
            return found
        for (ledger, entry), reason in self._damaged:
            ids = (c.MessageIdData(ledger, entry),)
            found.append(c.CommandAck(consumer_id, c.AckType.Individual, ids, validation_error=reason))
        self._damaged.clear()
        if (acks or self._again is not None) and self.acknowledgements.waiting:
            written = self.acknowledgements.commands(consumer_id)
            self.counters.acks_sent += sum(len(one.message_ids) for one in written)
            found += written
        if self._again is not None:
            found += redeliver_commands(consumer_id, self._again, self.epoch if self._ordered else None)
            self._again = None
        if not self.paused and (permits := self.permits.flow()):
            found.append(c.CommandFlow(consumer_id, permits))
        return found

    def check(self) -> None:
        """Assert what must always hold: each permit is with the broker, with a message that waits, or to be given
        back."""
        self.queue.check()
        if self._consumer_id is not None:
            self.permits.check(self.queue.queued + self.queue.lent)
