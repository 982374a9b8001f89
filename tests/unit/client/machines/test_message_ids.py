"""Ids and messages as applications see them."""

from __future__ import annotations

from magnetar.client.machines.message import Envelope, Message
from magnetar.client.machines.message_id import MessageId
from magnetar.protocol.commands import BrokerEntryMetadata
from magnetar.protocol.entries import EntryMetadata
from magnetar.protocol.generated import pulsar_pb2

TOPIC = "persistent://public/default/t-partition-3"


def test_an_id_as_bytes_and_as_text() -> None:
    """Bytes are MessageIdData, the text is that of C++ and Python (rule 4.1.2)."""
    one = MessageId(3, 1, 2, 4, batch_size=7)
    written = pulsar_pb2.MessageIdData.FromString(one.serialize())
    assert (written.ledgerId, written.entryId, written.partition, written.batch_index) == (1, 2, 3, 4)
    assert written.batch_size == 7 and str(one) == "(1,2,3,4)"
    assert MessageId.deserialize(one.serialize()) == one
    large = MessageId(-1, 9, 5, topic=TOPIC, chunks=((9, 3), (9, 4), (9, 5)))
    written = pulsar_pb2.MessageIdData.FromString(large.serialize())
    assert (written.entryId, written.first_chunk_message_id.entryId) == (5, 3)
    assert MessageId.deserialize(large.serialize()).chunks == ((9, 3), (9, 5))


def test_ids_are_in_the_order_of_ledger_entry_and_index() -> None:
    """An id without an index comes before those of its entry's messages (rule 4.1.4)."""
    places = [(1, 9, 5), (2, 0, -1), (2, 0, 0), (2, 0, 1), (2, 1, -1), (10, 0, 0)]
    ids = [MessageId(-1, *place) for place in places]
    assert sorted({*ids}) == ids and len(set(ids)) == len(ids)


def test_what_a_message_says() -> None:
    """All that rule 6.1.6 names."""
    metadata = EntryMetadata(
        "producer", 7, 1_234, partition_key="k", ordering_key=b"o", event_time=77, properties=(("x", "y"),),
        schema_version=b"\0\0\0\1",
    )  # fmt: skip
    one = Message[bytes](Envelope(TOPIC, 3, (1, 2), metadata, 0, 5, BrokerEntryMetadata(1_240, 99)), b"a", -1, None)
    assert (one.data(), one.value(), one.properties()) == (b"a", b"a", {"x": "y"})
    assert (one.partition_key(), one.ordering_key(), one.key_bytes()) == ("k", "o", b"k")
    assert (one.publish_timestamp(), one.event_timestamp(), one.broker_publish_time()) == (1_234, 77, 1_240)
    assert (one.topic_name(), one.producer_name(), one.redelivery_count()) == (TOPIC, "producer", 5)
    assert (one.schema_version(), one.sequence_id(), one.index()) == (b"\0\0\0\1", 7, 99)
    assert one.message_id() == MessageId(3, 1, 2)
