"""One message on its way in, with the names of the official Python client.

What all messages of an entry have in common is kept once (`Envelope`); a message reads its own metadata when it is
asked for them.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Generic, Protocol, Self

from typing_extensions import TypeVar

from magnetar.client.encryption.encryption_context import EncryptionContext
from magnetar.client.errors import AlreadyClosedError, ClientError
from magnetar.client.machines.acknowledgement import BatchLeft
from magnetar.client.machines.message_id import MessageId
from magnetar.client.values.written_schema import SEALED, WrittenSchema
from magnetar.protocol.commands import BrokerEntryMetadata
from magnetar.protocol.entries import EntryMetadata, single_metadata_of
from magnetar.protocol.message_keys import key_of_base64

T = TypeVar("T", default=bytes)


class MessageOwner(Protocol):
    """The consumer that a message was received from."""

    facade: Any
    """Its blocking twin, if it has one, which has a blocking `settle`."""

    async def settle(self, message: Message[Any], error: BaseException | None, /) -> bool:
        """Acknowledge it without an error, or have it come again; returns whether the error was an answer."""
        ...


class Envelope:
    """What the messages of one entry share."""

    __slots__ = (
        "batch_size", "broker", "chunks", "entry", "ledger", "left", "metadata", "owner", "partition",
        "redelivery_count", "schema", "sealed", "topic",
    )  # fmt: skip

    def __init__(
        self,
        topic: str,
        partition: int,
        place: tuple[int, int],
        metadata: EntryMetadata,
        batch_size: int,
        redelivery_count: int,
        broker: BrokerEntryMetadata | None,
        chunks: tuple[tuple[int, int], ...] = (),
        schema: WrittenSchema | None = None,
        owner: MessageOwner | None = None,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.ledger, self.entry = place
        self.metadata = metadata
        self.batch_size = batch_size
        """0 for a message that is in no batch."""
        self.redelivery_count = redelivery_count
        self.broker = broker
        self.chunks = chunks
        self.schema = schema
        """How values are read; None where the consumer has no schema."""
        self.owner = owner
        self.sealed = False
        """Whether it is delivered encrypted, since no key opened it."""
        self.left: BatchLeft | None = None
        """Of a batch: which messages are not acknowledged."""

    def seal(self) -> None:
        """Mark it as delivered encrypted: it has no value that could be read."""
        self.sealed = True
        if self.schema is not None:
            self.schema = SEALED

    @property
    def places(self) -> tuple[tuple[int, int], ...]:
        """Where it is: of a message in chunks, where each of them is."""
        return self.chunks or ((self.ledger, self.entry),)

    def message_id(self, index: int) -> MessageId:
        """Return the id of one of its messages, -1 for what is in no batch."""
        return MessageId(
            self.partition, self.ledger, self.entry, index, batch_size=self.batch_size, topic=self.topic,
            chunks=self.chunks,
        )  # fmt: skip


class Message(Generic[T]):
    """One message that was received.

    What its batch says of it alone is read when it is asked for: the methods that give it raise ProtocolError if it
    cannot be read.
    """

    __slots__ = ("_data", "_index", "_single", "envelope")

    def __init__(self, envelope: Envelope, data: bytes, index: int, single: Any) -> None:
        """``single``: the message's own metadata in a batch, as bytes or read; otherwise None."""
        self.envelope = envelope
        self._data = data
        self._index = index
        self._single = single

    async def __aenter__(self) -> Self:
        """Begin to handle it: ``async with message:`` acknowledges it at the end, and has it come again after an error.

        `Retry` and `Reject` (magnetar.aio) are answers there, and leave the block without an error.
        """
        return self

    async def __aexit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> bool:
        return await self._owner().settle(self, error)

    def __enter__(self) -> Self:
        """Do the same for a message of the blocking client."""
        if self._owner().facade is None:
            raise ClientError("this message was received with asyncio; use `async with message:`")
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> bool:
        try:
            settled: bool = self._owner().facade.settle(self, error)
        except ReferenceError:
            raise AlreadyClosedError(f"message {self.message_id()}: its consumer is gone") from None
        return settled

    def _owner(self) -> MessageOwner:
        owner = self.envelope.owner
        if owner is None:
            raise ClientError(f"message {self.message_id()} was not received by a consumer")
        return owner

    @property
    def index_in_batch(self) -> int:
        """The place in the batch, -1 if it is in none."""
        return self._index

    @property
    def _own(self) -> Any:
        single = self._single
        if single is None:
            return self.envelope.metadata
        if type(single) is bytes:
            single = self._single = single_metadata_of(single)
        return single

    def data(self) -> bytes:
        """Return the payload."""
        return self._data

    def value(self) -> T:
        """Return the value by the consumer's schema, read as the message's version was written; without one the bytes.

        None for a message without a value. Raises SchemaError for one that cannot be read; the message is not
        acknowledged then, and `data` has its bytes.
        """
        written = self.envelope.schema
        if written is None:
            return self._data  # type: ignore[return-value]  # without a schema T is bytes
        found: T = written.value_of(self)
        return found

    def has_null_value(self) -> bool:
        """Whether the producer sent no value at all, as compaction understands it."""
        return bool(self._own.null_value)

    def properties(self) -> dict[str, str]:
        """Return the properties; of those of one name the last."""
        if self._single is None:
            return dict(self.envelope.metadata.properties)
        return {pair.key: pair.value for pair in self._own.properties}

    def partition_key(self) -> str:
        """Return the key, empty if there is none; one that is no text is in base64."""
        key: str = (self._own.partition_key or "") if self.has_key() else ""
        return key

    def has_key(self) -> bool:
        """Whether the message has a key."""
        if self._single is None:
            return self.envelope.metadata.partition_key is not None
        return bool(self._own.HasField("partition_key"))

    def key_bytes(self) -> bytes:
        """Return the key as the producer gave it."""
        key = self.partition_key().encode()
        return key_of_base64(key) if self._own.partition_key_b64_encoded else key

    @property
    def key_is_base64(self) -> bool:
        """Whether `partition_key` is base64 of the key."""
        return bool(self._own.partition_key_b64_encoded)

    def ordering_key(self) -> str:
        """Return the ordering key, empty if there is none; what is no UTF-8 is replaced."""
        return self.ordering_key_bytes().decode(errors="replace")

    def ordering_key_bytes(self) -> bytes:
        """Return the ordering key as the producer gave it, empty if there is none."""
        return bytes(self._own.ordering_key or b"")

    def event_timestamp(self) -> int:
        """Return the event time in milliseconds, 0 if there is none."""
        return int(self._own.event_time)

    def publish_timestamp(self) -> int:
        """Return when the producer sent it, in milliseconds by its own clock."""
        return self.envelope.metadata.publish_time

    def sequence_id(self) -> int:
        """Return the producer's number of it."""
        if self._single is not None and self._own.HasField("sequence_id"):
            return int(self._own.sequence_id)
        return self.envelope.metadata.sequence_id + max(self._index, 0)

    def producer_name(self) -> str:
        """Return the name of the producer."""
        return self.envelope.metadata.producer_name

    def topic_name(self) -> str:
        """Return the topic, with partitions the internal one."""
        return self.envelope.topic

    def redelivery_count(self) -> int:
        """Return how often the broker has delivered it before, as it counts."""
        return self.envelope.redelivery_count

    def schema_version(self) -> bytes | None:
        """Return the version of the schema that the producer had."""
        return self.envelope.metadata.schema_version

    def encryption_context(self) -> EncryptionContext | None:
        """Return what is known of its encryption, None if it came in clear."""
        one = self.envelope
        return EncryptionContext(one.metadata, failed=one.sealed) if one.metadata.encryption_keys else None

    def replicated_from(self) -> str | None:
        """Return the cluster it was copied from."""
        return self.envelope.metadata.replicated_from

    def broker_publish_time(self) -> int | None:
        """Return when the broker stored it, in milliseconds, where the broker says so."""
        return None if self.envelope.broker is None else self.envelope.broker.broker_timestamp

    def index(self) -> int | None:
        """Return its number in the topic, where the broker counts."""
        broker = self.envelope.broker
        if broker is None or broker.index is None:
            return None
        size = self.envelope.batch_size
        return broker.index if size <= 1 else broker.index - size + 1 + self._index

    def message_id(self) -> MessageId:
        """Return where it is."""
        return self.envelope.message_id(self._index)

    def __repr__(self) -> str:
        return f"Message({self.message_id()}, {len(self._data)} bytes)"
