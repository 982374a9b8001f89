"""The place of a message, as applications see it, with the names of the official Python client."""

from __future__ import annotations

from collections.abc import Iterator
from functools import total_ordering
from operator import index
from typing import ClassVar, SupportsIndex

from magnetar.client.errors import ArgumentError
from magnetar.model.names import TopicName
from magnetar.protocol.codec import decode_message_id, encode_message_id
from magnetar.protocol.commands import MessageIdData

MAX_LONG = (1 << 63) - 1
_MAX_INT = (1 << 31) - 1
AFTER_BATCH = 1 << 31
"""An index after those of all messages in a batch."""


@total_ordering
class MessageId:
    """The place of one message; ids of one topic are in the order of the topic.

    ``batch_index`` is -1 for what is not in a batch. An id made by hand names an entry or one message of it.
    """

    __slots__ = ("_batch_index", "_batch_size", "_chunks", "_entry", "_ledger", "_partition", "_topic")

    earliest: ClassVar[MessageId]
    latest: ClassVar[MessageId]

    def __init__(
        self,
        partition: int = -1,
        ledger_id: int = -1,
        entry_id: int = -1,
        batch_index: int = -1,
        *,
        batch_size: int = 0,
        topic: str = "",
        chunks: tuple[tuple[int, int], ...] = (),
    ) -> None:
        """``topic``: the partition it is in; ``chunks``: ledger and entry of each chunk of a large message.

        Raises ArgumentError about numbers that no id has; it is looked for in ids without a topic, made by hand.
        """
        if not topic:
            partition, ledger_id, entry_id, batch_index = _checked(partition, ledger_id, entry_id, batch_index)
        self._partition = partition
        self._ledger = ledger_id
        self._entry = entry_id
        self._batch_index = batch_index
        self._batch_size = batch_size
        self._topic = topic
        self._chunks = chunks

    def ledger_id(self) -> int:
        """Return the ledger's number."""
        return self._ledger

    def entry_id(self) -> int:
        """Return the entry's number in its ledger."""
        return self._entry

    def batch_index(self) -> int:
        """Return the place in the batch, -1 if it is in none."""
        return self._batch_index

    def partition(self) -> int:
        """Return the partition, -1 for a topic without."""
        return self._partition

    @property
    def batch_size(self) -> int:
        """How many messages the batch has; 0 if it is in none."""
        return self._batch_size

    @property
    def topic(self) -> str:
        """The internal topic, empty for an id made by hand."""
        return self._topic

    @property
    def chunks(self) -> tuple[tuple[int, int], ...]:
        """Ledger and entry of each chunk, empty for a message that is whole."""
        return self._chunks

    def serialize(self) -> bytes:
        """Return the id as other clients read it."""
        return encode_message_id(self.data())

    @staticmethod
    def wrap(msg_id: MessageId) -> MessageId:
        """Return the id itself: there is no other class of ids here, as the official client has."""
        return msg_id

    @staticmethod
    def deserialize(message_id_bytes: bytes, topic: str | None = None) -> MessageId:
        """Return the id that `serialize` of any client has written. Raises ProtocolError, InvalidTopicNameError.

        A consumer of several topics needs to know the ``topic`` it is of, as `Message.topic_name` says it.
        """
        found = decode_message_id(message_id_bytes)
        first = found.first_chunk
        chunks = () if first is None else ((first.ledger, first.entry), (found.ledger, found.entry))
        return MessageId(
            found.partition, found.ledger, found.entry, found.batch_index, batch_size=found.batch_size, chunks=chunks,
            topic="" if topic is None else TopicName.parse(topic).fqn,
        )  # fmt: skip

    def data(self) -> MessageIdData:
        """Return the id as commands carry it."""
        first = None
        if self._chunks:
            first = MessageIdData(self._chunks[0][0], self._chunks[0][1], self._partition)
        return MessageIdData(self._ledger, self._entry, self._partition, self._batch_index, (), self._batch_size, first)

    def _key(self) -> tuple[int, int, int, int]:
        return self._ledger, self._entry, self._batch_index, self._partition

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MessageId) and self._key() == other._key()

    def __lt__(self, other: MessageId) -> bool:
        return self._key() < other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        return f"({self._ledger},{self._entry},{self._partition},{self._batch_index})"

    def __repr__(self) -> str:
        return f"MessageId{self}"


def _checked(partition: object, ledger_id: object, entry_id: object, batch_index: object) -> Iterator[int]:
    """Yield them as they are in an id; rows of a table have numbers of numpy."""
    for name, given, most in (
        ("partition", partition, _MAX_INT),
        ("ledger_id", ledger_id, MAX_LONG),
        ("entry_id", entry_id, MAX_LONG),
        ("batch_index", batch_index, _MAX_INT),
    ):
        if not isinstance(given, SupportsIndex):
            raise ArgumentError(f"MessageId: {name} is a number, and not {type(given).__name__}")
        number = index(given)
        if not -most - 1 <= number <= most:
            raise ArgumentError(f"MessageId: {name} is a number from {-most - 1} to {most}, and not {number}")
        yield number


MessageId.earliest = MessageId(-1, -1, -1)
MessageId.latest = MessageId(-1, MAX_LONG, MAX_LONG)


def order_of(message_id: MessageId) -> tuple[int, int, int]:
    """Return the place in the topic; an entry without a batch index is after all messages of a batch."""
    index = message_id.batch_index()
    return message_id.ledger_id(), message_id.entry_id(), index if index >= 0 else AFTER_BATCH


def end_order(end: MessageId) -> tuple[int, int, int]:
    """Return the place at which a topic is read up to the last message that a broker names.

    One without a batch index may be a batch of one: brokers leave the index out in what is compacted (rule 5.9.12). So
    any message of its entry reaches it.
    """
    return end.ledger_id(), end.entry_id(), end.batch_index()
