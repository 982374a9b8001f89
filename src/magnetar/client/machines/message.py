"""One message on its way in, with the names of the official Python client.

What all messages of an entry have in common is kept once (`Envelope`); a message reads its own metadata when it is
asked for them.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from magnetar.client.machines.message_id import MessageId
from magnetar.protocol.commands import BrokerEntryMetadata
from magnetar.protocol.entries import EntryMetadata


class Envelope:
    """What the messages of one entry share."""

    __slots__ = (
        "batch_size", "broker", "chunks", "entry", "ledger", "metadata", "partition", "redelivery_count",
        "topic",
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


class Message:
    """One message that was received."""

    __slots__ = ("_data", "_index", "_single", "envelope")

    def __init__(self, envelope: Envelope, data: bytes, index: int, single: Any) -> None:
        """``single``: the message's own metadata in a batch, otherwise None."""
        self.envelope = envelope
        self._data = data
        self._index = index
        self._single = single

    @property
    def index_in_batch(self) -> int:
        """The place in the batch, -1 if it is in none."""
        return self._index

    @property
    def _own(self) -> Any:
        return self.envelope.metadata if self._single is None else self._single

    def data(self) -> bytes:
        """Return the payload."""
        return self._data

    def value(self) -> bytes:
        """Return the payload; schemas are not decoded."""
        return self._data

    def has_null_value(self) -> bool:
        """Whether the producer sent no value at all, as compaction understands it."""
        return bool(self._own.null_value)

    def properties(self) -> dict[str, str]:
        """Return the properties; of those of one name the last."""
        if self._single is None:
            return dict(self.envelope.metadata.properties)
        return {pair.key: pair.value for pair in self._single.properties}

    def partition_key(self) -> str:
        """Return the key, empty if there is none; one that is no text is in base64."""
        key: str = (self._own.partition_key or "") if self.has_key() else ""
        return key

    def has_key(self) -> bool:
        """Whether the message has a key."""
        if self._single is None:
            return self.envelope.metadata.partition_key is not None
        return bool(self._single.HasField("partition_key"))

    def key_bytes(self) -> bytes:
        """Return the key as the producer gave it."""
        key = self.partition_key().encode()
        if self._own.partition_key_b64_encoded:
            try:
                return base64.b64decode(key, validate=True)
            except binascii.Error:
                pass
        return key

    @property
    def key_is_base64(self) -> bool:
        """Whether `partition_key` is base64 of the key."""
        return bool(self._own.partition_key_b64_encoded)

    def ordering_key(self) -> bytes:
        """Return the ordering key, empty if there is none."""
        return bytes(self._own.ordering_key or b"")

    def event_timestamp(self) -> int:
        """Return the event time in milliseconds, 0 if there is none."""
        return int(self._own.event_time)

    def publish_timestamp(self) -> int:
        """Return when the producer sent it, in milliseconds by its own clock."""
        return self.envelope.metadata.publish_time

    def sequence_id(self) -> int:
        """Return the producer's number of it."""
        if self._single is not None and self._single.HasField("sequence_id"):
            return int(self._single.sequence_id)
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
        one = self.envelope
        return MessageId(
            one.partition, one.ledger, one.entry, self._index, batch_size=one.batch_size, topic=one.topic,
            chunks=one.chunks,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"Message({self.message_id()}, {len(self._data)} bytes)"
