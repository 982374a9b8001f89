"""Entries that came and were not taken, and the few of their messages that may be taken now.

    entries, whole -> messages of the first one -> at hand -> application

An entry stays whole until its first message is asked for. What is at hand is part of one entry, or of several for
other threads; a caller that takes a message, from the list itself, has nothing to count until it has taken the last.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container
from dataclasses import replace
from itertools import chain

from magnetar.client.machines.message import Envelope, Message
from magnetar.client.machines.message_id import MessageId
from magnetar.protocol.compression import CompressionType
from magnetar.protocol.entries import build_entry, payload_of


class QueuedEntry:
    """An entry of which messages wait."""

    __slots__ = ("_payload", "_stored", "begun", "bits", "envelope", "messages")

    def __init__(
        self, envelope: Envelope, stored: bytes | None, payload: bytes | None, messages: int, bits: int = 0
    ) -> None:
        """``stored`` is the entry as it came, where it is neither encrypted nor compressed; otherwise ``payload`` is
        the payload in plain."""
        self.envelope = envelope
        self._stored = stored
        self._payload = payload
        self.messages = messages
        """How many are to be taken from it."""
        self.bits = bits
        """Of a batch: 1 for each message that is to be taken; 0 for all of them."""
        self.begun = False
        """Whether messages of it were taken."""

    @property
    def payload(self) -> bytes:
        """Decrypted, decompressed, of a message in chunks as a whole."""
        if self._payload is not None:
            return self._payload
        assert self._stored is not None, "it has one of them"
        return payload_of(self._stored)

    @property
    def stored(self) -> bytes:
        """The entry as a reader of plain entries takes it."""
        if self._stored is not None:
            return self._stored
        count = self.envelope.batch_size or None
        plain = replace(
            self.envelope.metadata, compression=CompressionType.NONE, uncompressed_size=0, encryption_keys=(),
            encryption_algo=None, encryption_param=None, num_messages_in_batch=count, uuid=None,
            num_chunks_from_msg=None, total_chunk_msg_size=None, chunk_id=None,
        )  # fmt: skip
        return build_entry(plain, self.payload)

    @property
    def size(self) -> int:
        """Bytes that it holds."""
        return len(self._stored or self._payload or b"")

    def wanted(self) -> int:
        """Return 1 for each message that is to be taken, the first one lowest."""
        return self.bits or (1 << self.messages) - 1

    def ranges(self) -> list[tuple[int, int]]:
        """Return the same as ranges of indexes, without their ends."""
        if not self.bits:
            return [(0, self.messages)]
        found: list[tuple[int, int]] = []
        bits, at = self.bits, 0
        while bits:
            skip = (bits & -bits).bit_length() - 1
            bits, at = bits >> skip, at + skip
            run = (~bits & (bits + 1)).bit_length() - 1
            found.append((at, at + run))
            bits, at = bits >> run, at + run
        return found

    def split(self, most: int) -> QueuedEntry:
        """Cut the first ``most`` messages off, which are fewer than it has; returns those."""
        bits, low = self.wanted(), 0
        for _ in range(most):
            low |= bits & -bits
            bits &= bits - 1
        self.bits, self.messages, self.begun = bits, self.messages - most, True
        return QueuedEntry(self.envelope, self._stored, self._payload, most, low)


class MessageQueue:
    """What waits in one consumer."""

    __slots__ = (
        "_cut", "_entries", "_last_taken", "_lent", "_lent_from", "_lent_until", "_opened", "_rest", "at_hand",
        "generation", "lent", "passed", "queued",
    )  # fmt: skip

    def __init__(self, cut: Callable[[QueuedEntry], list[Message]]) -> None:
        """``cut`` makes messages of an entry, the last one first; none of one that is damaged."""
        self.at_hand: list[Message] = []
        """What may be taken now, the next message last; it is this very list for life. The one who takes the
        last message calls `used_up`."""
        self.queued = 0
        """How many messages wait that are not at hand."""
        self.lent = 0
        """How many were put at hand the last time, taken or not; their permits are not given back."""
        self.generation = 0
        """Raised when everything is dropped; what was taken before is not to be put back."""
        self.passed: tuple[int, int] | None = None
        """The last entry that came and of which there is nothing to take."""
        self._cut = cut
        self._opened: list[QueuedEntry] = []
        """The entries that those at hand and the rest are of, perhaps others before them."""
        self._entries: deque[QueuedEntry] = deque()
        self._rest: list[Message] = []
        """The messages of the entry before those that are not at hand yet, the next one last."""
        self._lent_from: Envelope | None = None
        self._lent_until = -1
        """The entry that those at hand are of, and the index of the last one."""
        self._lent: list[Message] | None = None
        """All that were put at hand the last time, if they are of several entries."""
        self._last_taken: MessageId | None = None

    def put(self, one: QueuedEntry) -> None:
        """Add an entry."""
        self._entries.append(one)
        self.queued += one.messages

    @property
    def waiting(self) -> int:
        """How many messages have come and were not taken. Of a batch that turns out to be damaged there are fewer."""
        return self.queued + len(self.at_hand)

    def __len__(self) -> int:
        return self.waiting

    @property
    def last_taken(self) -> MessageId | None:
        """The id of the message that was taken last, None if none was."""
        envelope, at_hand = self._lent_from, self.at_hand
        if envelope is None or len(at_hand) == self.lent:
            return self._last_taken
        if self._lent is not None:
            return self._lent[len(at_hand)].message_id()
        # Messages between it and the next one were not to be taken.
        return envelope.message_id(at_hand[-1].index_in_batch - 1 if at_hand else self._lent_until)

    def refill(self, most: int, *, across: bool = False) -> bool:
        """Put up to ``most`` messages at hand, if none is; returns whether there are any.

        They are of one entry, or ``across`` several, and then other threads may take them.
        """
        at_hand, rest = self.at_hand, self._rest
        if at_hand:
            return True
        del self._opened[:-1]
        if not self._open_entry():
            return False
        if across:
            block = self._block(most)
        elif len(rest) <= most:
            block = rest.copy()
            rest.clear()
        else:
            block = rest[-most:]
            del rest[-most:]
        self.lent = len(block)
        self.queued -= self.lent
        self._lent = block if across else None
        self._lent_from, self._lent_until = block[0].envelope, block[0].index_in_batch
        at_hand += block  # only now: other threads take them at once
        return True

    def _open_entry(self) -> bool:
        """Make messages of the next entry, if there are none of the one before."""
        rest = self._rest
        while not rest:
            if not self._entries:
                return False
            one = self._entries.popleft()
            rest += self._cut(one)
            self._opened.append(one)
            self.queued += len(rest) - one.messages
            one.messages = len(rest)
        return True

    def _block(self, most: int) -> list[Message]:
        """Take up to ``most`` messages of as many entries as it needs, the next one last."""
        rest, parts, count = self._rest, list[list[Message]](), 0
        while count < most and self._open_entry():
            part = rest[count - most :]
            del rest[count - most :]
            parts.append(part)
            count += len(part)
        if len(parts) == 1:
            return parts[0]
        parts.reverse()
        return list(chain.from_iterable(parts))

    def used_up(self) -> int:
        """Return how many messages were at hand, now that all of them were taken."""
        self._last_taken = self.last_taken
        self._lent_from = self._lent = None
        lent, self.lent = self.lent, 0
        return lent

    def fold(self) -> int:
        """Put what is at hand, and the rest of its entry, back as entries; returns how many were at hand and were
        taken."""
        self._last_taken = self.last_taken
        at_hand = self._withdraw(self._lent) if self._lent is not None else self.at_hand.copy()
        self.at_hand.clear()
        taken = self.lent - len(at_hand)
        left: dict[int, list[Message]] = {}
        for message in [*self._rest, *at_hand]:
            left.setdefault(id(message.envelope), []).append(message)
        for one in reversed(self._opened):
            messages = left.get(id(one.envelope), [])
            if messages:
                one.begun = one.begun or len(messages) < one.messages
                one.messages, one.bits = len(messages), 0
                for message in messages if one.envelope.batch_size else ():
                    one.bits |= 1 << message.index_in_batch
                self._entries.appendleft(one)
        self.queued += len(at_hand)
        self._opened.clear()
        self._rest.clear()
        self._lent_from = self._lent = None
        self.lent = 0
        return taken

    def take_entries(self, most: int, note: Callable[[QueuedEntry], None]) -> list[QueuedEntry]:
        """Take up to ``most`` messages as entries; nothing may be at hand. The last one may be a part of its entry.

        ``note`` is called with each entry before a part of it is cut off.
        """
        found: list[QueuedEntry] = []
        while most > 0 and self._entries:
            one = self._entries[0]
            note(one)
            if one.messages > most:
                one = one.split(most)
            else:
                self._entries.popleft()
            found.append(one)
            most -= one.messages
            self.queued -= one.messages
        if found:
            last = found[-1]
            index = last.wanted().bit_length() - 1 if last.envelope.batch_size else -1
            self._last_taken = last.envelope.message_id(index)
        return found

    def put_back(self, taken: list[QueuedEntry]) -> None:
        """Put entries back that `take_entries` gave, and nothing was taken since."""
        self._entries.extendleft(reversed(taken))
        self.queued += sum(one.messages for one in taken)

    def end(self) -> None:
        """Let go of all, and of the owner: it is closed."""
        self.clear()
        self._cut = _nothing

    def clear(self) -> None:
        """Drop everything that was not taken."""
        if self._lent is not None:
            self._withdraw(self._lent)
        self._last_taken = self.last_taken
        self._lent_from = self._lent = None
        self.generation += 1
        self.passed = None
        self.at_hand.clear()
        self._rest.clear()
        self._opened.clear()
        self._entries.clear()
        self.queued = self.lent = 0

    def _withdraw(self, lent: list[Message]) -> list[Message]:
        """Take back what other threads have not taken, from the end that they do not reach; returns that."""
        at_hand, back = self.at_hand, list[Message]()
        while at_hand:
            try:
                back.append(at_hand.pop(0))
            except IndexError:
                break  # the last one was taken just now
        if len(back) < len(lent):
            self._last_taken = lent[len(back)].message_id()
        self._lent_from = None
        return back

    def drop(self, places: Container[tuple[int, int]]) -> int:
        """Drop messages of the entry of which some were taken, if it is one of these; returns for how many messages
        there is room again."""
        first = self.at_hand or self._rest
        if not first or (first[0].envelope.ledger, first[0].envelope.entry) not in places:
            return 0
        found = 0
        if self.at_hand and self._lent is None:  # otherwise other threads take them just now
            self._last_taken, self._lent_from = self.last_taken, None
            self.at_hand.clear()
            found, self.lent = self.lent, 0
        rest = self._rest
        if rest and (rest[0].envelope.ledger, rest[0].envelope.entry) in places:
            found += len(rest)
            self.queued -= len(rest)
            rest.clear()
        return found

    def drop_untouched(self) -> list[QueuedEntry]:
        """Drop the entries of which nothing was taken or put at hand; returns them."""
        found = [one for one in self._entries if not one.begun]
        if found:
            self._entries = deque(one for one in self._entries if one.begun)
            self.queued -= sum(one.messages for one in found)
        return found

    @property
    def size(self) -> int:
        """How many bytes wait, about."""
        opened = sum(len(one.data()) for one in (*self.at_hand, *self._rest))
        return opened + sum(one.size for one in self._entries)

    def forget_last(self) -> None:
        """Forget what was taken last."""
        self._last_taken = self._lent_from = None

    def check(self) -> None:
        """Assert what must always hold."""
        assert len(self.at_hand) <= self.lent
        assert self.queued == len(self._rest) + sum(one.messages for one in self._entries)


def _nothing(_: QueuedEntry) -> list[Message]:
    return []
