"""Which entries are done with, and which messages of a batch (rules 5.7, 6.6.5).

An entry is acknowledged as a whole. The messages of a batch are crossed off one by one, and the entry is acknowledged
with the last of them; with batch index acknowledgement the broker hears of each, as a set of bits of those that are
left. Nothing is ever acknowledged that was not handed in.
"""

from __future__ import annotations

import struct
from typing import Final

from magnetar.client.machines.message_id import MessageId
from magnetar.model.errors import InvalidValueError
from magnetar.protocol.commands import AckType, CommandAck, MessageIdData

Place = tuple[int, int]
UNSEEN_MAX: Final = 1_000
"""Batches, known by ids only, of which what is left is kept."""
BATCH_MAX: Final = 1 << 20
"""Messages of one batch at most, as far as what is left of it is kept."""
IDS_MAX: Final = 1_000
"""Message ids of one command at most (rule 6.3.4)."""
_WORD: Final = 64
_WORD_MASK: Final = (1 << _WORD) - 1
_AS_DIGITS: Final = bytes([48, 49]) + bytes(254)


def bits_of(ack_set: tuple[int, ...]) -> int:
    """Return the bits of an ack set: 1 for each message that is left."""
    return int.from_bytes(b"".join([(word & _WORD_MASK).to_bytes(8, "little") for word in ack_set]), "little")


def ack_set_of(bits: int) -> tuple[int, ...]:
    """Return the ack set for bits, as signed words."""
    words = max((bits.bit_length() + _WORD - 1) // _WORD, 1)
    return struct.unpack(f"<{words}q", bits.to_bytes(words * 8, "little"))


def ids_in_transaction(message_id: MessageId, *, cumulative: bool) -> tuple[MessageIdData, ...]:
    """Return the ids of an acknowledgement that a transaction carries; a message of a batch with its ack set.

    Raises InvalidValueError for an id, made by hand or of strange bytes, whose batch cannot be.
    """
    if message_id.chunks and not cumulative:
        return tuple(MessageIdData(*place) for place in message_id.chunks)
    data = MessageIdData(message_id.ledger_id(), message_id.entry_id())
    index, size = message_id.batch_index(), message_id.batch_size
    if index < 0 or size <= 1:
        return (data,)
    if index >= size or size > BATCH_MAX:
        raise InvalidValueError(f"message id {message_id} is no message of a batch of {size}; nothing is acknowledged")
    gone = (1 << (index + 1)) - 1 if cumulative else 1 << index
    left = ((1 << size) - 1) & ~gone
    return (data._replace(ack_set=ack_set_of(left), batch_size=size) if left else data,)


class BatchLeft:
    """Which messages of one batch are not acknowledged; all deliveries of the batch share it."""

    __slots__ = ("count", "flags", "known", "place")

    def __init__(self, place: Place, flags: bytearray) -> None:
        """``flags``: 1 for each message that is left."""
        self.place = place
        self.known = True
        """Whether its tracker goes by it; if not, the batch is to come again, or is done with."""
        self.flags = flags
        self.count = flags.count(1)

    def bits(self) -> int:
        """Return 1 for each message that is left, the first one lowest."""
        return int(self.flags[::-1].translate(_AS_DIGITS), 2)


def flags_of(size: int, bits: int) -> bytearray:
    """Return the flags of a batch of which these are left."""
    if bits == (1 << size) - 1:
        return bytearray(b"\1") * size
    return bytearray([bits >> index & 1 for index in range(size)])


class AckTracker:
    """What one consumer has acknowledged and not sent yet, and what is left of each batch."""

    def __init__(self, *, by_index: bool) -> None:
        self._by_index = by_index
        self._left: dict[Place, BatchLeft] = {}
        """Of each batch of which messages were handed out: what is left."""
        self._unseen: dict[Place, None] = {}
        """Batches among them that did not come to this consumer, oldest first: only ids of theirs did."""
        self._whole: dict[Place, None] = {}
        self._partial: dict[Place, BatchLeft] = {}
        """Batches of which the broker is to hear what is left."""
        self._cumulative: tuple[Place, int] | None = None
        """Everything up to here, and the bits that are left of that entry; 0 for a whole entry."""

    def delivered(self, place: Place, flags: bytearray) -> BatchLeft:
        """Note a batch that has come, with 1 for each of its messages that is not acknowledged."""
        self._unseen.pop(place, None)
        left = self._left.get(place)
        if left is None:
            left = self._left[place] = BatchLeft(place, flags)
        else:
            if place in self._partial and len(flags) == len(left.flags):
                flags = bytearray(map(min, flags, left.flags))  # the broker has not heard of these yet
            left.flags, left.count = flags, flags.count(1)
        return left

    def _note_unseen(self, place: Place) -> None:
        """Bound what ids alone make it keep; a batch that is forgotten stays unacknowledged, and comes again."""
        self._unseen.pop(place, None)
        self._unseen[place] = None
        if len(self._unseen) > UNSEEN_MAX:
            oldest = next(iter(self._unseen))
            del self._unseen[oldest]
            self.forget(oldest)

    def individual(self, place: Place, index: int, batch_size: int) -> bool:
        """Take one message; returns whether its entry is done with."""
        if index < 0 or batch_size <= 1:
            return self._finish(place)
        left = self._left_of(place, batch_size)
        return self.cross_off(left, index) and not left.count

    def _left_of(self, place: Place, batch_size: int) -> BatchLeft:
        left = self._left.get(place)
        if left is None:
            # An id of an earlier life of the application: nothing is known of the others, so they are left.
            left = self._left[place] = BatchLeft(place, bytearray(b"\1") * min(batch_size, BATCH_MAX))
            self._note_unseen(place)
        return left

    def _finish(self, place: Place) -> bool:
        self.forget(place)
        self._partial.pop(place, None)
        self._whole[place] = None
        return True

    def cross_off(self, left: BatchLeft, index: int) -> bool:
        """Take one message of a batch; returns whether there is something to send."""
        flags = left.flags
        if index >= len(flags) or not flags[index]:
            return False
        flags[index] = 0
        left.count -= 1
        if not left.count:
            return self._finish(left.place)
        if self._by_index:
            self._partial[left.place] = left
            return True
        return False

    def cross_off_range(self, place: Place, first: int, stop: int, batch_size: int) -> bool:
        """Take messages ``[first, stop)`` of an entry; returns whether it is done with."""
        if batch_size <= 1:
            return self._finish(place)
        left = self._left_of(place, batch_size)
        stop = min(stop, len(left.flags))
        left.flags[first:stop] = bytes(max(stop - first, 0))
        left.count = left.flags.count(1)
        if not left.count:
            return self._finish(place)
        if self._by_index:
            self._partial[place] = left
        return False

    def size_of(self, place: Place) -> int | None:
        """Return how many messages a batch has, None if it is none, or nothing is left of it."""
        left = self._left.get(place)
        return None if left is None else len(left.flags)

    def cumulative(self, place: Place, index: int, batch_size: int) -> None:
        """Take everything up to a message."""
        bits = 0
        if index >= 0 and batch_size > 1:
            left = self._left.get(place)
            if left is None:
                left = BatchLeft(place, bytearray(b"\1") * min(batch_size, BATCH_MAX))
            gone = min(index + 1, len(left.flags))
            flags = bytearray(gone) + left.flags[gone:]
            if 1 in flags:
                left.flags, left.count = flags, flags.count(1)
                bits = left.bits()
                self._left[place] = left
                if not self._by_index:
                    place, bits = (place[0], place[1] - 1), 0
        for known in [one for one in self._left if one < place or (one == place and not bits)]:
            self.forget(known)
        if place[1] < 0:
            return  # before the first entry of a ledger: the entry before it was acknowledged with its own ledger
        if self._cumulative is None or (place, -bits) > (self._cumulative[0], -self._cumulative[1]):
            self._cumulative = place, bits

    def forget(self, place: Place) -> None:
        """Forget an entry that is to come again, or is done with."""
        left = self._left.pop(place, None)
        if left is not None:
            left.known = False

    def come_again(self) -> None:
        """Forget what is left of batches: everything that is not acknowledged comes again."""
        for left in self._left.values():
            left.known = False
        self._left.clear()
        self._unseen.clear()

    @property
    def waiting(self) -> bool:
        """Whether there is something to send."""
        return bool(self._whole or self._partial or self._cumulative)

    @property
    def count(self) -> int:
        """How many entries there are to send something about."""
        return len(self._whole) + len(self._partial) + (self._cumulative is not None)

    def take_individual(self) -> list[MessageIdData]:
        """Return what is to be acknowledged one by one, and begin anew."""
        ids = [MessageIdData(ledger, entry) for ledger, entry in self._whole]
        ids += [MessageIdData(*place, ack_set=ack_set_of(left.bits())) for place, left in self._partial.items()]
        self._whole.clear()
        self._partial.clear()
        return ids

    def commands(self, consumer_id: int) -> list[CommandAck]:
        """Return what is to be written, and begin anew."""
        found: list[CommandAck] = []
        last = self.take_cumulative()
        if last is not None:
            found.append(CommandAck(consumer_id, AckType.Cumulative, (last,)))
        ids = self.take_individual()
        for at in range(0, len(ids), IDS_MAX):
            found.append(CommandAck(consumer_id, AckType.Individual, tuple(ids[at : at + IDS_MAX])))
        return found

    def take_cumulative(self) -> MessageIdData | None:
        """Return the message up to which everything is acknowledged, and begin anew."""
        found, self._cumulative = self._cumulative, None
        if found is None:
            return None
        (ledger, entry), bits = found
        return MessageIdData(ledger, entry, ack_set=ack_set_of(bits) if bits else ())
