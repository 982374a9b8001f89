"""Which partition a message goes to (rules of 6.7): by its key, else in turn, all to one, or as a function says."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final, SupportsIndex

from magnetar.client.machines.outgoing.outgoing_message import OutgoingMessage
from magnetar.model.errors import InvalidValueError
from magnetar.model.hashing import boost_hash, java_string_hash, murmur3_31


class PartitionsRoutingMode(Enum):
    """How messages without a key are spread, with the names of the official Python client."""

    UseSinglePartition = "single"
    RoundRobinDistribution = "round robin"
    CustomPartition = "custom"


class HashingScheme(Enum):
    """How a key becomes a number; producers of one topic should agree on it."""

    JavaStringHash = "JavaStringHash"
    Murmur3_32Hash = "Murmur3_32Hash"
    BoostHash = "BoostHash"
    """The default of the C++ client and of the official Python client, which has no other."""


_HASHES: Final[dict[HashingScheme, Callable[[str], int]]] = {
    HashingScheme.JavaStringHash: java_string_hash,
    HashingScheme.BoostHash: boost_hash,
    HashingScheme.Murmur3_32Hash: lambda key: murmur3_31(key.encode()),
}


class RoutedMessage:
    """What a message_router sees of a message, with the names of the official Python client."""

    __slots__ = ("_message",)

    def __init__(self, message: OutgoingMessage) -> None:
        self._message = message

    def data(self) -> bytes:
        """Return the payload."""
        return self._message.payload

    def value(self) -> bytes:
        """Return the payload, as the official client does whatever the schema."""
        return self._message.payload

    def properties(self) -> dict[str, str]:
        """Return the properties."""
        return dict(self._message.properties)

    def partition_key(self) -> str:
        """Return the key, empty if there is none; one of bytes is in base64."""
        return self._message.key or ""

    def ordering_key(self) -> str:
        """Return the ordering key, empty if there is none."""
        return (self._message.ordering_key or b"").decode(errors="replace")

    def event_timestamp(self) -> int:
        """Return the event time in milliseconds, 0 if there is none."""
        return self._message.event_time

    def sequence_id(self) -> int | None:
        """Return the number that the application gave, None if the producer counts."""
        return self._message.sequence_id


MessageRouter = Callable[[RoutedMessage, int], int]
"""A function of a message and the number of partitions."""


class PartitionRouter:
    """The choices of one producer; with batching it stays with a partition as long as a batch would be open there."""

    def __init__(
        self,
        mode: PartitionsRoutingMode,
        hashing: HashingScheme,
        chance: float,
        batch: tuple[int, int, float] = (0, 0, 0.0),
        *,
        router: MessageRouter | None = None,
    ) -> None:
        """``chance``, from 0 to 1, is where it begins; ``batch``: messages, bytes and seconds of one; without
        batching 0 messages.
        """
        custom = PartitionsRoutingMode.CustomPartition
        if mode is (PartitionsRoutingMode.UseSinglePartition if router is not None else custom):
            raise InvalidValueError("message_router and message_routing_mode CustomPartition belong together")
        self.mode = mode if router is None else custom
        self.chance = chance
        self.hash_of = _HASHES[hashing]
        self._batch_messages, self._batch_bytes, self._batch_delay = batch
        self._router = router
        self._turn = 0
        self._messages = self._bytes = 0
        self._since = 0.0

    def first(self, count: int) -> int:
        """Return the partition of the first message that has no key and about which no function is asked."""
        return int(self.chance * count)

    def choose(self, message: OutgoingMessage, count: int, now: float) -> int:
        """Return the partition, from 0 to ``count`` - 1."""
        if self._router is not None:
            chosen = self._router(RoutedMessage(message), count)
            if not isinstance(chosen, SupportsIndex):
                raise InvalidValueError(
                    f"message_router returned {type(chosen).__name__}, not the number of a partition, 0 to {count - 1}"
                )
            if not 0 <= chosen < count:
                raise InvalidValueError(f"message_router chose partition {chosen} of {count}")
            return chosen
        if message.key is not None:
            return self.hash_of(message.key) % count
        first = self.first(count)
        if self.mode is PartitionsRoutingMode.UseSinglePartition:
            return first
        chosen = (first + self._turn) % count
        if not self._batch_messages:
            self._turn += 1
            return chosen
        if self._messages and (
            self._messages >= self._batch_messages
            or 0 < self._batch_bytes <= self._bytes
            or now - self._since >= self._batch_delay
        ):
            self._turn += 1
            self._messages = self._bytes = 0
            chosen = (first + self._turn) % count
        if not self._messages:
            self._since = now
        self._messages += 1
        self._bytes += len(message.payload)
        return chosen
