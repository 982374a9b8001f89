"""Non-durable cursors, GET_LAST_MESSAGE_ID."""

from __future__ import annotations

from tests.conformance.answers import Json
from tests.conformance.probe import Broker, probe
from tests.conformance.roles import ack, more, open_producer, place, produce, produce_batch, subscribe, take

MINUS_ONE = 2**64 - 1
LATEST = 2**63 - 1
EARLIEST_ID = {"ledgerId": MINUS_ONE, "entryId": MINUS_ONE}
LATEST_ID = {"ledgerId": LATEST, "entryId": LATEST}


@probe("4.3.6", "6.9.2", "4.1.3")
def reader_start_ids(broker: Broker) -> Json:
    """start_message_id of a non-durable cursor: earliest, latest, of an entry, with a batch index, absent."""
    wire = broker.wire()
    receipts = produce(wire, broker.topic(), [str(number) for number in range(4)])
    batched = produce_batch(wire, broker.topic(), [["a", "b", "c"]], 2)
    starts: dict[str, Json] = {
        "absent": None,
        "earliest": EARLIEST_ID,
        "latest": LATEST_ID,
        "entry 1": place(receipts[1]),
        "last entry": place(batched[0]),
        "inside the batch": {**place(batched[0]), "batch_index": 1},
        "entry -1": {**place(receipts[0]), "entryId": MINUS_ONE},
        "beyond": {**place(receipts[0]), "entryId": 70},
    }
    said: dict[str, Json] = {}
    for number, (name, start) in enumerate(starts.items()):
        fields: dict[str, Json] = {} if start is None else {"start_message_id": start}
        subscribe(wire, broker.topic(), consumer_id=number, subscription=name, durable=False, permits=100, **fields)
        said[name] = more(wire)
    return said


@probe("4.3.2", "4.3.6")
def non_durable_vanishes(broker: Broker) -> Json:
    """A non-durable subscription is gone with its consumer; a start_message_id on a durable one."""
    wire = broker.wire()
    subscribe(wire, broker.topic(), durable=False, permits=100)
    produce(wire, broker.topic(), ["0", "1"])
    got = take(wire, 2)
    ack(wire, [place(got[0])], "Cumulative")
    said: dict[str, Json] = {"while connected": broker.topic_rest("GET", "t", "/subscriptions").body}
    stats = broker.topic_rest("GET", "t", "/stats").body["subscriptions"]["s"]
    said["isDurable"] = stats["isDurable"]
    wire.request("CLOSE_CONSUMER", consumer_id=1)
    said["closed"] = broker.topic_rest("GET", "t", "/subscriptions").body
    subscribe(wire, broker.topic(), subscription="durable", start_message_id=EARLIEST_ID, permits=100)
    said["durable with a start id"] = more(wire)
    return said


@probe("0.12")
def durable_against_non_durable(broker: Broker) -> Json:
    """A durable and a non-durable subscription of one name."""
    wire = broker.wire()
    subscribe(wire, broker.topic("durable"))
    subscribe(wire, broker.topic("non"), consumer_id=2, durable=False)
    return {
        "non-durable where a durable is": broker.say(
            subscribe(wire, broker.topic("durable"), "Shared", 3, durable=False)
        ),
        "durable where a non-durable is": broker.say(subscribe(wire, broker.topic("non"), "Shared", 4)),
    }


@probe("4.3.2", "5.9.1")
def non_durable_seek_and_unsubscribe(broker: Broker) -> Json:
    """UNSUBSCRIBE of a non-durable subscription."""
    wire = broker.wire()
    subscribe(wire, broker.topic(), durable=False, permits=10)
    return {
        "answer": broker.say(wire.request("UNSUBSCRIBE", consumer_id=1)),
        "left": broker.topic_rest("GET", "t", "/subscriptions").body,
    }


@probe("5.9.12", "1.3.13")
def last_message_id(broker: Broker) -> Json:
    """GET_LAST_MESSAGE_ID of an empty topic, after messages, after a batch, after acks, of a partition."""
    wire = broker.wire()
    topic = broker.topic()
    subscribe(wire, topic, permits=100)

    def last() -> Json:
        return broker.say(wire.request("GET_LAST_MESSAGE_ID", consumer_id=1))

    # the first message's position gives the ledger its number before any other answer names one
    said: dict[str, Json] = {}
    empty = last()
    produce(wire, topic, ["0", "1"])
    got = take(wire, 2)
    said["after two"] = last()
    produce_batch(wire, topic, [["a", "b", "c"]], 2)
    said["after a batch of three"] = last()
    ack(wire, [place(got[1])], "Cumulative")
    said["after an ack"] = last()
    said["empty"] = empty
    broker.topic_rest("PUT", "parted", "/partitions", 2)
    subscribe(wire, broker.topic("parted-partition-1"), consumer_id=2)
    produce(wire, broker.topic("parted-partition-1"), ["m"], 3)
    said["partition"] = broker.say(wire.request("GET_LAST_MESSAGE_ID", consumer_id=2))
    return said


@probe("4.3.7")
def start_rollback(broker: Broker) -> Json:
    """start_message_rollback_duration_sec: only messages of the last minute."""
    wire = broker.wire()
    open_producer(wire, broker.topic())
    wire.publish(1, 0, "old", publish_time=1000)
    wire.receive("SEND_RECEIPT")
    wire.publish(1, 1, "new")
    wire.receive("SEND_RECEIPT")
    subscribe(
        wire,
        broker.topic(),
        durable=False,
        start_message_id=LATEST_ID,
        start_message_rollback_duration_sec=60,
        permits=9,
    )
    return more(wire, 0.8)


@probe("4.1.6")
def message_id_partition(broker: Broker) -> Json:
    """The partition in MESSAGE.message_id, of a partition and of a plain topic."""
    broker.topic_rest("PUT", "t", "/partitions", 3)
    wire = broker.wire()
    said = {}
    for number, name in enumerate(("t-partition-2", "plain")):
        subscribe(wire, broker.topic(name), consumer_id=number, permits=5)
        produce(wire, broker.topic(name), ["m"], number)
        frame = take(wire, 1)[0]
        message_id = frame.get("message_id")
        said[name] = {
            "partition": message_id.partition,
            "partition present": message_id.HasField("partition"),
            "batch_index present": message_id.HasField("batch_index"),
        }
    return said
