"""Messages that wait for company: one open batch, or one for each key (rules 3.5.1, 3.5.4, 3.5.8).

The limits count all open batches together. A change of the transaction ends what is open (rule 3.5.7); so does a
message that has to travel alone, which its caller sees to.

Messages that are nothing but bytes, with sequence ids in a row, are kept as they are, and what stands before each is
written for all of them at once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from magnetar.client.machines.outgoing.entry_fate import EntryFate
from magnetar.client.machines.outgoing.outgoing_message import (
    PLAIN_NUMBERS,
    OutgoingMessage,
    join_plain,
    single_metadata,
)


class FullBatch(NamedTuple):
    """A batch that is to be sent."""

    first: OutgoingMessage
    sequence_id: int
    highest_sequence_id: int | None
    """None with batches by key, whose ids lie between each other."""
    messages: int
    payload: bytes
    fate: EntryFate


class _Open:
    __slots__ = ("contents", "contents_from", "fate", "first", "highest", "parts", "sequence_id")

    def __init__(self, first: OutgoingMessage, sequence_id: int) -> None:
        self.first = first
        self.sequence_id = self.highest = sequence_id
        self.fate = EntryFate(batch=True)
        self.parts: list[bytes] = []
        self.contents: list[bytes] = []
        """Messages after ``parts`` that are bytes alone."""
        self.contents_from = 0
        """The sequence id of the first of them; the others follow in a row."""

    def close_run(self) -> None:
        """Write the contents, with what stands before each, after the parts."""
        if self.contents:
            self.parts.append(join_plain(self.contents, self.contents_from))
            self.highest = self.contents_from + len(self.contents) - 1
            self.contents = []

    def payload(self) -> bytes:
        """Return everything, one message after the other."""
        self.close_run()
        return self.parts[0] if len(self.parts) == 1 else b"".join(self.parts)


class OpenBatches:
    """The open batches of one producer."""

    __slots__ = ("_batches", "_by_key", "_messages_max", "_plain", "_txn", "bytes_max", "messages", "size")

    def __init__(self, messages_max: int, bytes_max: int, *, by_key: bool = False) -> None:
        """``messages_max``: 0 or less is no limit."""
        self.messages = 0
        self.size = 0
        """The weight of all messages together, in bytes; no batch weighs more than ``bytes_max``."""
        self.bytes_max = bytes_max
        self._messages_max = messages_max if messages_max > 0 else 1 << 60
        self._by_key = by_key
        self._batches: dict[bytes | None, _Open] = {}
        self._plain: _Open | None = None
        """The one that messages without key and transaction join."""
        self._txn: object = None

    def has_room(self, message: OutgoingMessage) -> bool:
        """Whether the message may join what is open; anything may begin."""
        if not self.messages:
            return True
        return self.size + message.weight <= self.bytes_max and message.txn == self._txn

    def add(self, message: OutgoingMessage, sequence_id: int, token: Any) -> tuple[EntryFate, bool]:
        """Add a message; returns its batch's fate, which ``token`` hears unless it is None, and whether the limits
        are reached."""
        if not self.messages:
            self._txn = message.txn
        group = _group(message) if self._by_key else None
        batch = self._batches.get(group)
        if batch is None:
            batch = self._batches[group] = _Open(message, sequence_id)
            if group is None and message.txn is None:
                self._plain = batch
        batch.close_run()
        head = single_metadata(message, sequence_id)
        batch.parts += len(head).to_bytes(4, "big"), head, message.payload
        batch.highest = sequence_id
        fate = batch.fate
        if token is not None:
            fate.tokens.append((fate.messages, token))
        fate.messages += 1
        self.messages += 1
        self.size += message.weight
        return fate, self.messages >= self._messages_max or self.size >= self.bytes_max

    def join(self, content: bytes, sequence_id: int) -> EntryFate | None:
        """Add bytes without a key to a batch that is open and does not end with them; None if there is none, and then
        nothing has changed."""
        batch = self._plain
        if batch is None:
            return None
        size = self.size + len(content) + PLAIN_NUMBERS
        messages = self.messages + 1
        if size >= self.bytes_max or messages >= self._messages_max:
            return None
        self.size = size
        self.messages = messages
        contents = batch.contents
        if not contents:
            batch.contents_from = sequence_id
        elif batch.contents_from + len(contents) != sequence_id:
            batch.close_run()  # a message of another batch is between them
            contents = batch.contents
            batch.contents_from = sequence_id
        contents.append(content)
        fate = batch.fate
        fate.messages += 1
        return fate

    def join_many(
        self, contents: Sequence[bytes], at: int, stop: int, sequence_id: int, room: int
    ) -> tuple[EntryFate | None, int]:
        """Do the same with those of ``contents`` from ``at`` until ``stop`` that are ``room`` bytes at most; returns
        how many of them joined."""
        batch = self._plain
        if batch is None:
            return None, 0
        part = contents[at : min(stop, at + max(self._messages_max - 1 - self.messages, 0))]
        room = min(self.bytes_max - 1 - self.size, room)
        size = sum(map(len, part)) + PLAIN_NUMBERS * len(part)
        if size > room:
            sizes = list(accumulate(len(one) + PLAIN_NUMBERS for one in part))
            part = part[: bisect_right(sizes, room)]
            size = sizes[len(part) - 1] if part else 0
        if not part:
            return None, 0
        if not batch.contents:
            batch.contents_from = sequence_id
        elif batch.contents_from + len(batch.contents) != sequence_id:
            batch.close_run()
            batch.contents_from = sequence_id
        batch.contents += part
        self.size += size
        self.messages += len(part)
        batch.fate.messages += len(part)
        return batch.fate, len(part)

    def take(self) -> list[FullBatch]:
        """Return everything that is open, in the order of the first sequence ids, and begin anew."""
        found: list[FullBatch] = []
        for one in self._batches.values():
            payload = one.payload()
            highest = None if self._by_key else one.highest
            found.append(FullBatch(one.first, one.sequence_id, highest, one.fate.messages, payload, one.fate))
        self._batches = {}
        self._plain = None
        self.messages = self.size = 0
        return found


def _group(message: OutgoingMessage) -> bytes | None:
    """The ordering key counts before the key; messages without either are together."""
    if message.ordering_key is not None:
        return b"o" + message.ordering_key
    return None if message.key is None else b"k" + message.key.encode()
