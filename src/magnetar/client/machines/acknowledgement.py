"""Which entries are done with, and which messages of a batch (rules 5.7, 6.6.5).

An entry is acknowledged as a whole. The messages of a batch are crossed off one by one, and the entry is acknowledged
with the last of them; with batch index acknowledgement the broker hears of each, as a set of bits of those that are
left. Nothing is ever acknowledged that was not handed in.
"""

from __future__ import annotations

from typing import Final

from magnetar.protocol.commands import MessageIdData

Place = tuple[int, int]
UNSEEN_MAX: Final = 1_000
"""Batches, known by ids only, of which what is left is kept."""
_WORD: Final = 64
_WORD_MASK: Final = (1 << _WORD) - 1


def bits_of(ack_set: tuple[int, ...]) -> int:
    """Return the bits of an ack set: 1 for each message that is left."""
    bits = 0
    for number, word in enumerate(ack_set):
        bits |= (word & _WORD_MASK) << (_WORD * number)
    return bits


def ack_set_of(bits: int) -> tuple[int, ...]:
    """Return the ack set for bits, as signed words."""
    words: list[int] = []
    while bits:
        word = bits & _WORD_MASK
        words.append(word - (1 << _WORD) if word >> (_WORD - 1) else word)
        bits >>= _WORD
    return tuple(words) or (0,)


class AckTracker:
    """What one consumer has acknowledged and not sent yet, and what is left of each batch."""

    def __init__(self, *, by_index: bool) -> None:
        self._by_index = by_index
        self._left: dict[Place, int] = {}
        """Of each batch of which messages were handed out: a bit for each message that is not acknowledged."""
        self._unseen: dict[Place, None] = {}
        """Batches among them that did not come to this consumer, oldest first: only ids of theirs did."""
        self._whole: dict[Place, None] = {}
        self._partial: dict[Place, int] = {}
        """Batches of which the broker is to hear what is left."""
        self._cumulative: tuple[Place, int] | None = None
        """Everything up to here, and the bits that are left of that entry; 0 for a whole entry."""

    def delivered(self, place: Place, bits: int) -> None:
        """Note a batch that has come, with the bits of its messages that are not acknowledged."""
        self._left[place] = bits
        self._unseen.pop(place, None)

    def _note_unseen(self, place: Place) -> None:
        """Bound what ids alone make it keep; a batch that is forgotten stays unacknowledged, and comes again."""
        self._unseen.pop(place, None)
        self._unseen[place] = None
        if len(self._unseen) > UNSEEN_MAX:
            oldest = next(iter(self._unseen))
            del self._unseen[oldest]
            self._left.pop(oldest, None)

    def individual(self, place: Place, index: int, batch_size: int) -> bool:
        """Take one message; returns whether its entry is done with."""
        if index < 0 or batch_size <= 1:
            self._left.pop(place, None)
            self._whole[place] = None
            return True
        # An id of an earlier life of the application: nothing is known of the others, so they are left.
        known = self._left.get(place)
        if known is None:
            known = (1 << batch_size) - 1
            self._note_unseen(place)
        left = known & ~(1 << index)
        if not left:
            self._left.pop(place, None)
            self._partial.pop(place, None)
            self._whole[place] = None
            return True
        self._left[place] = left
        if self._by_index:
            self._partial[place] = left
        return False

    def cumulative(self, place: Place, index: int, batch_size: int) -> None:
        """Take everything up to a message."""
        bits = 0
        if index >= 0 and batch_size > 1:
            bits = self._left.get(place, (1 << batch_size) - 1) & ~((1 << (index + 1)) - 1)
            if bits:
                self._left[place] = bits
                if not self._by_index:
                    place, bits = (place[0], place[1] - 1), 0
        for known in [one for one in self._left if one < place or (one == place and not bits)]:
            del self._left[known]
        if place[1] < 0:
            return  # before the first entry of a ledger: the entry before it was acknowledged with its own ledger
        if self._cumulative is None or (place, -bits) > (self._cumulative[0], -self._cumulative[1]):
            self._cumulative = place, bits

    def forget(self, place: Place) -> None:
        """Forget an entry that is to come again."""
        self._left.pop(place, None)

    def come_again(self) -> None:
        """Forget what is left of batches: everything that is not acknowledged comes again."""
        self._left.clear()
        self._unseen.clear()

    @property
    def waiting(self) -> bool:
        """Whether there is something to send."""
        return bool(self._whole or self._partial or self._cumulative)

    def take_individual(self) -> list[MessageIdData]:
        """Return what is to be acknowledged one by one, and begin anew."""
        ids = [MessageIdData(ledger, entry) for ledger, entry in self._whole]
        ids += [MessageIdData(place[0], place[1], ack_set=ack_set_of(bits)) for place, bits in self._partial.items()]
        self._whole.clear()
        self._partial.clear()
        return ids

    def take_cumulative(self) -> MessageIdData | None:
        """Return the message up to which everything is acknowledged, and begin anew."""
        found, self._cumulative = self._cumulative, None
        if found is None:
            return None
        (ledger, entry), bits = found
        return MessageIdData(ledger, entry, ack_set=ack_set_of(bits) if bits else ())
