"""REDELIVER_UNACKNOWLEDGED_MESSAGES and redelivery counts."""

from __future__ import annotations

from tests.conformance.answers import Json
from tests.conformance.probe import Broker, probe
from tests.conformance.roles import ack, more, place, produce, produce_batch, subscribe, take
from tests.conformance.wire import Wire

KIND = "REDELIVER_UNACKNOWLEDGED_MESSAGES"


def said(broker: Broker, wire: Wire) -> list[Json]:
    return [broker.say(each) for each in wire.rest(0.6) if each.kind == "MESSAGE"]


@probe("5.8.1", "5.8.3")
def redeliver_shared(broker: Broker) -> Json:
    """Shared: some ids, again, all; acked and unknown ids; a batch index."""
    wire = broker.wire()
    subscribe(wire, broker.topic(), "Shared", permits=100)
    produce(wire, broker.topic(), [str(number) for number in range(4)])
    got = take(wire, 4)
    places = [place(each) for each in got]
    answers: dict[str, Json] = {}
    for name, ids in {
        "1 and 2": places[1:3],
        "1 again": places[1:2],
        "unknown": [{"ledgerId": 9999, "entryId": 1}],
    }.items():
        wire.send(KIND, consumer_id=1, message_ids=ids)
        answers[name] = said(broker, wire)
    ack(wire, [places[0]])
    wire.send(KIND, consumer_id=1, message_ids=places[:1])
    answers["acked"] = said(broker, wire)
    wire.send(KIND, consumer_id=1, message_ids=[{**places[3], "batch_index": 5}])
    answers["batch index"] = said(broker, wire)
    wire.send(KIND, consumer_id=1)
    answers["all"] = said(broker, wire)
    return answers


@probe("5.8.2", "5.8.3")
def redeliver_single_active(broker: Broker) -> Json:
    """Exclusive and Failover: ids or none, everything unacked comes again, uncounted."""
    answers: dict[str, Json] = {}
    for kind in ("Exclusive", "Failover"):
        wire = broker.wire()
        topic = broker.topic(kind)
        subscribe(wire, topic, kind, permits=100)
        produce(wire, topic, [str(number) for number in range(4)])
        got = take(wire, 4)
        ack(wire, [place(got[1])])
        wire.send(KIND, consumer_id=1, message_ids=[place(got[2])])
        answers[f"{kind}, one id"] = said(broker, wire)
        wire.send(KIND, consumer_id=1)
        answers[f"{kind}, none"] = said(broker, wire)
    return answers


@probe("5.8.5")
def redeliver_epoch(broker: Broker) -> Json:
    """consumer_epoch in SUBSCRIBE and REDELIVER, echoed in MESSAGE; and without it."""
    wire = broker.wire()
    subscribe(wire, broker.topic(), permits=100, consumer_epoch=0)
    produce(wire, broker.topic(), ["0"])
    answers: list[Json] = [broker.say(each) for each in take(wire, 1)]
    wire.send(KIND, consumer_id=1, consumer_epoch=1)
    answers.append(said(broker, wire))
    wire.send(KIND, consumer_id=1, consumer_epoch=2)
    answers.append(said(broker, wire))
    return answers


@probe("5.8.3", "5.8.4")
def redelivery_count_kept(broker: Broker) -> Json:
    """The count after the consumer closes: with another one there, and with none left."""
    first, second = broker.wire(), broker.wire()
    subscribe(first, broker.topic(), "Shared", 1, permits=100)
    produce(first, broker.topic(), ["0"])
    got = take(first, 1)
    for _ in range(2):
        first.send(KIND, consumer_id=1, message_ids=[place(got[0])])
        take(first, 1)
    subscribe(second, broker.topic(), "Shared", 2, permits=100)
    first.request("CLOSE_CONSUMER", consumer_id=1)
    answers: dict[str, Json] = {"next owner": said(broker, second)}
    second.request("CLOSE_CONSUMER", consumer_id=2)
    subscribe(second, broker.topic(), "Shared", 3, permits=100)
    answers["after nobody was left"] = said(broker, second)
    return answers


@probe("5.8.6", "5.5.5")
def redeliver_permits(broker: Broker) -> Json:
    """Redelivered messages cost permits and come before new ones."""
    wire = broker.wire()
    subscribe(wire, broker.topic(), "Shared", permits=3)
    produce(wire, broker.topic(), [str(number) for number in range(6)])
    got = take(wire, 3)
    wire.send(KIND, consumer_id=1, message_ids=[place(got[2]), place(got[0])])
    answers: list[Json] = [more(wire)]
    wire.send("FLOW", consumer_id=1, messagePermits=3)
    answers.append(more(wire))
    wire.send("FLOW", consumer_id=1, messagePermits=10)
    answers.append(more(wire))
    return answers


@probe("5.8.1", "5.8.3")
def redeliver_batch(broker: Broker) -> Json:
    """A batch is redelivered whole, with one count."""
    wire = broker.wire()
    subscribe(wire, broker.topic(), "Shared", permits=100)
    produce_batch(wire, broker.topic(), [["a", "b", "c"]])
    got = take(wire, 1)
    wire.send(KIND, consumer_id=1, message_ids=[{**place(got[0]), "batch_index": 1}])
    return said(broker, wire)


@probe("5.8.1")
def redeliver_to_another(broker: Broker) -> Json:
    """Ids that are pending on another consumer."""
    first, second = broker.wire(), broker.wire()
    subscribe(first, broker.topic(), "Shared", 1, permits=10)
    produce(first, broker.topic(), ["0", "1"])
    got = take(first, 2)
    subscribe(second, broker.topic(), "Shared", 2, permits=10)
    second.send(KIND, consumer_id=2, message_ids=[place(got[0])])
    return {"first": said(broker, first), "second": said(broker, second)}
