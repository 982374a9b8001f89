"""SEEK by id and by time, and what it does to the consumers."""

from __future__ import annotations

from tests.conformance.answers import Json
from tests.conformance.probe import Broker, probe
from tests.conformance.roles import ack, flow, open_producer, place, produce, subscribe, take, texts, until
from tests.conformance.wire import Wire

MINUS_ONE = 2**64 - 1
LATEST = 2**63 - 1


def again(wire: Wire, topic: str, kind: str = "Exclusive") -> Wire:
    """Subscribe again as a client does after a seek."""
    until("SUCCESS", lambda: subscribe(wire, topic, kind))
    flow(wire, 100)
    return wire


def seek(broker: Broker, wire: Wire, **target: Json) -> list[Json]:
    """The frames that answer a seek, in order."""
    wire.requests += 1
    wire.send("SEEK", consumer_id=1, request_id=wire.requests, **target)
    said = []
    for _ in range(3):
        frame = wire.next()
        said.append(frame.kind if frame.kind != "ERROR" else broker.say(frame))
        if frame.kind in ("SUCCESS", "ERROR"):
            break
    return said


@probe("5.9.1", "5.9.3", "5.9.4", "1.3.8")
def seek_by_id(broker: Broker) -> Json:
    """Seek to an id: the order of CLOSE_CONSUMER and SUCCESS, what comes then; acks are forgotten."""
    wire = broker.wire()
    subscribe(wire, broker.topic(), permits=100)
    produce(wire, broker.topic(), [str(number) for number in range(6)])
    got = take(wire, 6)
    ack(wire, [place(got[5])], "Cumulative")
    wire.requests += 1
    wire.send("SEEK", consumer_id=1, request_id=wire.requests, message_id=place(got[2]))
    said: list[Json] = [broker.say(wire.next()) for _ in range(2)]
    again(wire, broker.topic())
    return {"answers": said, "then": [broker.say(each) for each in wire.rest()]}


@probe("5.9.7")
def seek_targets(broker: Broker) -> Json:
    """Earliest, latest, beyond the end, an entry of -1, ledgers that do not exist."""
    wire = broker.wire()
    topic = broker.topic()
    subscribe(wire, topic, permits=100)
    produce(wire, topic, [str(number) for number in range(4)])
    ledger = place(take(wire, 4)[0])["ledgerId"]
    targets: dict[str, dict[str, int]] = {
        "earliest": {"ledgerId": MINUS_ONE, "entryId": MINUS_ONE},
        "latest": {"ledgerId": LATEST, "entryId": LATEST},
        "entry -1": {"ledgerId": ledger, "entryId": MINUS_ONE},
        "last entry": {"ledgerId": ledger, "entryId": 3},
        "beyond the end": {"ledgerId": ledger, "entryId": 50},
        "ledger beyond": {"ledgerId": ledger + 100000, "entryId": 0},
        "ledger before": {"ledgerId": 0, "entryId": 0},
    }
    said: dict[str, Json] = {}
    for name, target in targets.items():
        answers = seek(broker, wire, message_id=target)
        again(wire, topic)
        said[name] = {"answers": answers, "then": texts(list(wire.rest()))}
    return said


@probe("5.9.2")
def seek_by_time(broker: Broker) -> Json:
    """Seek to publish times: of a message, between two, before all, after all."""
    wire = broker.wire()
    topic = broker.topic()
    subscribe(wire, topic, permits=100)
    open_producer(wire, topic)
    for number in range(5):
        wire.publish(1, number, str(number), publish_time=1000 + number * 100)
        wire.receive("SEND_RECEIPT")
    take(wire, 5)
    said: dict[str, Json] = {}
    for moment in (1200, 1250, 1, 0, 1400, 1401, 99999999999999):
        answers = seek(broker, wire, message_publish_time=moment)
        again(wire, topic)
        said[str(moment)] = {"answers": answers, "then": texts(list(wire.rest()))}
    return said


@probe("5.9.5")
def seek_errors(broker: Broker) -> Json:
    """Neither id nor time; the consumer afterwards."""
    wire = broker.wire()
    subscribe(wire, broker.topic(), permits=100)
    said: dict[str, Json] = {"neither": seek(broker, wire)}
    produce(wire, broker.topic(), ["m"])
    said["still consumes"] = texts(take(wire, 1))
    return said


@probe("5.9.3")
def seek_closes_consumers(broker: Broker) -> Json:
    """Who gets CLOSE_CONSUMER when one consumer of two seeks, by type."""
    said: dict[str, Json] = {}
    for kind in ("Shared", "Failover", "Key_Shared"):
        topic = broker.topic(kind)
        first, second = broker.wire(), broker.wire()
        subscribe(first, topic, kind, 1, permits=10)
        subscribe(second, topic, kind, 2, permits=10)
        produce(first, topic, ["0", "1"], partition_key="k")
        list(first.rest(1.5))
        list(second.rest(0.3))
        first.send("SEEK", consumer_id=1, request_id=77, message_id={"ledgerId": MINUS_ONE, "entryId": MINUS_ONE})
        said[kind] = {
            "asking": [each.kind for each in first.rest(1.0)],
            "other": [each.kind for each in second.rest(0.3)],
        }
    return said


@probe("5.9.6", profile="suite")
def seek_into_batch(broker: Broker) -> Json:
    """Seek with an ack_set into a batch."""
    wire = broker.wire()
    topic = broker.topic()
    subscribe(wire, topic, permits=100)
    open_producer(wire, topic)
    wire.publish_batch(1, 0, [str(number) for number in range(10)])
    wire.receive("SEND_RECEIPT")
    got = take(wire, 1)
    answers = seek(broker, wire, message_id={**place(got[0]), "ack_set": [1008]})
    again(wire, topic)
    return {"answers": answers, "then": [broker.say(each) for each in wire.rest()]}
