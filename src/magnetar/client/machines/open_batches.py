"""Messages that wait for company: one open batch, or one for each key (rules 3.5.1, 3.5.4, 3.5.8).

The limits count all open batches together. A change of the transaction ends what is open (rule 3.5.7); so does a
message that has to travel alone, which its caller sees to.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from magnetar.client.machines.outgoing_message import OutgoingMessage, single_metadata


class FullBatch(NamedTuple):
    """A batch that is to be sent."""

    first: OutgoingMessage
    sequence_id: int
    highest_sequence_id: int | None
    """None with batches by key, whose ids lie between each other."""
    messages: int
    payload: bytes
    tokens: list[Any]


class _Open:
    __slots__ = ("count", "first", "highest", "parts", "sequence_id", "tokens")

    def __init__(self, first: OutgoingMessage, sequence_id: int) -> None:
        self.first = first
        self.sequence_id = self.highest = sequence_id
        self.count = 0
        self.parts: list[bytes] = []
        self.tokens: list[Any] = []


class OpenBatches:
    """The open batches of one producer."""

    __slots__ = ("_batches", "_by_key", "_messages_max", "_txn", "bytes_max", "messages", "size")

    def __init__(self, messages_max: int, bytes_max: int, *, by_key: bool = False) -> None:
        """``messages_max``: 0 or less is no limit."""
        self.messages = 0
        self.size = 0
        """The weight of all messages together, in bytes; no batch weighs more than ``bytes_max``."""
        self.bytes_max = bytes_max
        self._messages_max = messages_max if messages_max > 0 else 1 << 60
        self._by_key = by_key
        self._batches: dict[bytes | None, _Open] = {}
        self._txn: object = None

    def has_room(self, message: OutgoingMessage) -> bool:
        """Whether the message may join what is open; anything may begin."""
        if not self.messages:
            return True
        return self.size + message.weight <= self.bytes_max and message.txn == self._txn

    def add(self, message: OutgoingMessage, sequence_id: int, token: Any) -> bool:
        """Add a message; returns whether the limits are reached."""
        if not self.messages:
            self._txn = message.txn
        group = _group(message) if self._by_key else None
        batch = self._batches.get(group)
        if batch is None:
            batch = self._batches[group] = _Open(message, sequence_id)
        head = single_metadata(message, sequence_id)
        batch.parts += len(head).to_bytes(4, "big"), head, message.payload
        batch.tokens.append(token)
        batch.highest = sequence_id
        batch.count += 1
        self.messages += 1
        self.size += message.weight
        return self.messages >= self._messages_max or self.size >= self.bytes_max

    def take(self) -> list[FullBatch]:
        """Return everything that is open, in the order of the first sequence ids, and begin anew."""
        found = [
            FullBatch(
                one.first,
                one.sequence_id,
                None if self._by_key else one.highest,
                one.count,
                b"".join(one.parts),
                one.tokens,
            )
            for one in self._batches.values()
        ]
        self._batches = {}
        self.messages = self.size = 0
        return found


def _group(message: OutgoingMessage) -> bytes | None:
    """The ordering key counts before the key; messages without either are together."""
    if message.ordering_key is not None:
        return b"o" + message.ordering_key
    return None if message.key is None else b"k" + message.key.encode()
