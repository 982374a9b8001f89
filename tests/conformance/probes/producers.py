"""PRODUCER: names, duplicates; SEND and its receipts."""

from __future__ import annotations

from tests.conformance.answers import Json
from tests.conformance.probe import Broker, probe
from tests.conformance.roles import open_producer, produce, subscribe, take, until
from tests.conformance.wire import command, entry, frame, parse_entry


@probe("3.1.1", "3.1.4", "3.1.5", "13.7")
def producer_success(broker: Broker) -> Json:
    """PRODUCER_SUCCESS for a generated name, an own name and a non-persistent topic."""
    wire = broker.wire()
    return [
        broker.say(open_producer(wire, broker.topic(), 1)),
        broker.say(open_producer(wire, broker.topic(), 2, producer_name="mine", user_provided_producer_name=True)),
        broker.say(open_producer(wire, broker.topic("np", "non-persistent"), 3, producer_name="mine")),
    ]


@probe("3.1.1")
def producer_generated_names(broker: Broker) -> Json:
    """That generated names differ and share their form."""
    wire = broker.wire()
    names = [open_producer(wire, broker.topic(), number).get("producer_name") for number in (1, 2)]
    parts = [name.split("-") for name in names]
    return {
        "differ": names[0] != names[1],
        "parts": [len(each) for each in parts],
        "numbers": [each[-1].isdigit() and each[-2].isdigit() for each in parts],
        "counted up": int(parts[1][-1]) > int(parts[0][-1]),
    }


@probe("3.1.2")
def producer_name_taken(broker: Broker) -> Json:
    """A name that is connected: from the same connection, from another, and after it left."""
    first, second = broker.wire(), broker.wire()
    open_producer(first, broker.topic(), 1, producer_name="p")
    said: dict[str, Json] = {
        "same connection": broker.say(open_producer(first, broker.topic(), 2, producer_name="p")),
        "other connection": broker.say(open_producer(second, broker.topic(), 1, producer_name="p")),
        "other topic": broker.say(open_producer(second, broker.topic("u"), 2, producer_name="p")),
    }
    first.request("CLOSE_PRODUCER", producer_id=1)
    said["after close"] = broker.say(open_producer(second, broker.topic(), 3, producer_name="p"))
    second.close()
    third = broker.wire()
    again = until("PRODUCER_SUCCESS", lambda: open_producer(third, broker.topic(), 1, producer_name="p"))
    said["after the connection went"] = again.kind
    return said


@probe("3.1.3", "3.1.2")
def producer_id_repeated(broker: Broker) -> Json:
    """PRODUCER for an id that is open: the same topic, a larger epoch, another topic."""
    wire = broker.wire()
    open_producer(wire, broker.topic(), 1, producer_name="p")
    return [
        broker.say(open_producer(wire, broker.topic(), 1, producer_name="p")),
        broker.say(open_producer(wire, broker.topic(), 1, producer_name="p", epoch=1)),
        broker.say(open_producer(wire, broker.topic("u"), 1, producer_name="q")),
    ]


@probe("3.3.2", "1.3.3")
def receipts(broker: Broker) -> Json:
    """Receipts with and without highest_sequence_id, of a batch, in order, on a partition."""
    wire = broker.wire()
    open_producer(wire, broker.topic())
    sends: list[dict[str, Json]] = [
        {"sequence_id": 0},
        {"sequence_id": 1, "num_messages": 1},
        {"sequence_id": 2, "highest_sequence_id": 4},
        {"sequence_id": 100},
        {"sequence_id": 100},
        {"sequence_id": 3},
        {"sequence_id": 2**64 - 1},
    ]
    for fields in sends:
        wire.write(frame(command("SEND", producer_id=1, **fields), entry(b"m")))
    said = [broker.say(wire.receive("SEND_RECEIPT", "SEND_ERROR")) for _ in sends]
    wire.publish_batch(1, 200, ["a", "b"])
    said.append(broker.say(wire.receive("SEND_RECEIPT", "SEND_ERROR")))
    broker.topic_rest("PUT", "parted", "/partitions", 2)
    said.extend(broker.say(each) for each in produce(wire, broker.topic("parted-partition-1"), ["m"], 2))
    return said


@probe("1.1.12", "3.3.2")
def receipts_in_order(broker: Broker) -> Json:
    """A thousand messages sent without waiting: the order of receipts and positions."""
    wire = broker.wire()
    open_producer(wire, broker.topic())
    for number in range(1000):
        wire.publish(1, number, "m")
    got = [wire.receive("SEND_RECEIPT", "SEND_ERROR") for _ in range(1000)]
    entries = [each.get("message_id").entryId for each in got]
    return {
        "sequence ids in order": [each.get("sequence_id") for each in got] == list(range(1000)),
        "entries from 0 without gap": entries == list(range(1000)),
        "ledgers": len({each.get("message_id").ledgerId for each in got}),
    }


@probe("3.3.11", "3.8.5", "3.8.4", "3.8.3")
def message_metadata_kept(broker: Broker) -> Json:
    """Keys, ordering key, repeated properties, event time and null value, as delivered."""
    wire = broker.wire()
    subscribe(wire, broker.topic(), permits=10)
    open_producer(wire, broker.topic())
    metadata: dict[str, Json] = {
        "partition_key": "k", "ordering_key": b"o", "event_time": 7, "publish_time": 5,
        "properties": [{"key": "a", "value": "1"}, {"key": "a", "value": "2"}],
    }  # fmt: skip
    wire.publish(1, 0, "m", **metadata)
    wire.publish(1, 1, "", null_value=True, publish_time=5)
    return [broker.normal.message(parse_entry(each.headers).metadata) for each in take(wire, 2)]


@probe("3.1.9")
def producer_initial_subscription(broker: Broker) -> Json:
    """A producer that brings an initial subscription: what that subscription gets."""
    wire = broker.wire()
    said: list[Json] = [broker.say(open_producer(wire, broker.topic(), initial_subscription_name="s"))]
    wire.publish(1, 0, "m")
    wire.receive("SEND_RECEIPT")
    subscribe(wire, broker.topic(), permits=10)
    return [*said, *(broker.say(each) for each in take(wire, 1))]


@probe("3.2.1", "3.2.2")
def producer_access_modes(broker: Broker) -> Json:
    """Exclusive and shared producers against each other."""
    wire = broker.wire()
    say = broker.say
    shared, exclusive = broker.topic("shared"), broker.topic("exclusive")
    return {
        "shared": say(open_producer(wire, shared, 1, producer_name="a", producer_access_mode="Shared")),
        "exclusive beside it": say(open_producer(wire, shared, 2, producer_name="b", producer_access_mode="Exclusive")),
        "exclusive": say(open_producer(wire, exclusive, 3, producer_name="c", producer_access_mode="Exclusive")),
        "shared beside that": say(open_producer(wire, exclusive, 4, producer_name="d", producer_access_mode="Shared")),
        "second": say(open_producer(wire, exclusive, 5, producer_name="e", producer_access_mode="Exclusive")),
        "waiting": say(open_producer(wire, exclusive, 6, producer_name="f", producer_access_mode="WaitForExclusive")),
        "the first leaves": say(wire.request("CLOSE_PRODUCER", producer_id=3)),
        "waiting then": say(wire.receive("PRODUCER_SUCCESS")),
    }


@probe("4.2.5", "4.1.5", "3.3.1", "3.3.6")
def unload_closes_producers(broker: Broker) -> Json:
    """Unloading a topic: what producer and consumer receive, a SEND that comes too late, the position afterwards."""
    wire = broker.wire()
    subscribe(wire, broker.topic(), "Shared", permits=10)
    open_producer(wire, broker.topic(), producer_name="p")
    wire.publish(1, 0, "before")
    first = wire.receive("SEND_RECEIPT")
    said: dict[str, Json] = {"unload": broker.topic_rest("PUT", "t", "/unload").told()}
    told = [broker.say(each) for each in wire.rest() if each.kind != "MESSAGE"]
    said["told"] = sorted(told, key=str)
    wire.publish(1, 1, "too late")
    said["too late"] = {"alive": wire.alive(), "said": [broker.say(each) for each in wire.rest()]}
    wire.request("LOOKUP", topic=broker.topic())
    again = until("PRODUCER_SUCCESS", lambda: open_producer(wire, broker.topic(), 2, producer_name="p"))
    said["again"] = broker.say(again)
    wire.publish(2, 2, "after")
    second = wire.receive("SEND_RECEIPT")
    said["later ledger"] = second.get("message_id").ledgerId > first.get("message_id").ledgerId
    said["entry"] = second.get("message_id").entryId
    subscribe(wire, broker.topic(), "Shared", 2, permits=10)
    said["then"] = [broker.say(each) for each in take(wire, 2)]
    return said


@probe("1.1.12", "3.3.2")
def two_producers_one_connection(broker: Broker) -> Json:
    """Two producers of one connection, and two topics: each has its receipts in its own order."""
    wire = broker.wire()
    for number in (1, 2, 3):
        open_producer(wire, broker.topic("u" if number == 3 else "t"), number)
    for sequence in range(20):
        for number in (1, 2, 3):
            wire.publish(number, sequence, "m")
    got = [wire.receive("SEND_RECEIPT") for _ in range(60)]
    own = {number: [each for each in got if each.get("producer_id") == number] for number in (1, 2, 3)}
    shared = [each.get("message_id").entryId for each in got if each.get("producer_id") in (1, 2)]
    return {
        "sequence ids": {n: [each.get("sequence_id") for each in mine] == list(range(20)) for n, mine in own.items()},
        "entries of the shared topic": shared == list(range(40)),
        "entries of the other": [each.get("message_id").entryId for each in own[3]] == list(range(20)),
    }
