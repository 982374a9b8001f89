"""Failover: who is active, and how the others learn it."""

from __future__ import annotations

import time

from tests.conformance.answers import Json
from tests.conformance.probe import Broker, probe
from tests.conformance.roles import ack, flow, place, produce, subscribe, take
from tests.conformance.wire import Frame, Wire

ACTIVATION_SECONDS = 2.0


def changes(wire: Wire) -> list[str]:
    """What a connection received within the activation delay and a bit, in words."""
    return [word(each) for each in wire.rest(ACTIVATION_SECONDS)]


def word(frame: Frame) -> str:
    if frame.kind == "ACTIVE_CONSUMER_CHANGE":
        return f"consumer {frame.get('consumer_id')} {'active' if frame.get('is_active') else 'waits'}"
    return frame.kind


@probe("5.4.5", "5.4.6")
def failover_first_consumer(broker: Broker) -> Json:
    """The first Failover consumer: what it is notified of, and that it waits for about a second."""
    wire = broker.wire()
    started = time.monotonic()
    answer = broker.say(subscribe(wire, broker.topic(), "Failover"))
    change = wire.receive("ACTIVE_CONSUMER_CHANGE")
    delay = time.monotonic() - started
    return {"answer": answer, "change": word(change), "waited about a second": 0.8 < delay < 1.6}


@probe("5.4.2")
def failover_by_name(broker: Broker) -> Json:
    """Which of four consumers is active on plain topics, by the names of consumers and topics."""
    said: dict[str, Json] = {}
    for local in ("one", "two", "three"):
        wire = broker.wire()
        for number, name in enumerate(("A", "B", "C", "D")):
            subscribe(wire, broker.topic(local), "Failover", number, consumer_name=name)
        wire.rest(ACTIVATION_SECONDS)
        time.sleep(ACTIVATION_SECONDS)
        stats = broker.topic_rest("GET", local, "/stats").body
        said[local] = stats["subscriptions"]["s"]["activeConsumerName"]
    return said


@probe("5.4.1")
def failover_partitions(broker: Broker) -> Json:
    """Which consumer is active on each partition; joining out of order; after one leaves; priority levels."""
    broker.topic_rest("PUT", "t", "/partitions", 3)
    wire = broker.wire()
    partitions = [broker.topic(f"t-partition-{n}") for n in range(3)]

    def active() -> list[str]:
        time.sleep(ACTIVATION_SECONDS)
        stats = [broker.topic_rest("GET", f"t-partition-{n}", "/stats").body for n in range(3)]
        return [each["subscriptions"]["s"]["activeConsumerName"] for each in stats]

    for index, topic in enumerate(partitions):
        for number, name in enumerate(("B", "A", "C", "D")):
            subscribe(wire, topic, "Failover", index * 10 + number, consumer_name=name)
    said: dict[str, Json] = {"B A C D": active()}
    for index in range(3):
        wire.request("CLOSE_CONSUMER", consumer_id=index * 10 + 1)
    said["A left"] = active()
    for index, topic in enumerate(partitions):
        subscribe(wire, topic, "Failover", index * 10 + 5, consumer_name="low", priority_level=1)
    said["one of priority 1 came"] = active()
    for index in range(3):
        for number in (0, 2, 3):
            wire.request("CLOSE_CONSUMER", consumer_id=index * 10 + number)
    said["only that one is left"] = active()
    return said


@probe("5.4.4", "5.4.6", "5.4.8")
def failover_switch(broker: Broker) -> Json:
    """A better consumer takes over: who is notified of what, and what comes again."""
    broker.topic_rest("PUT", "t", "/partitions", 1)
    topic = broker.topic("t-partition-0")
    first, second = broker.wire(), broker.wire()
    subscribe(first, topic, "Failover", 1, consumer_name="B", permits=100)
    said: dict[str, Json] = {"B alone": changes(first)}
    produce(first, topic, ["0", "1", "2"])
    ack(first, [place(take(first, 3)[0])])
    subscribe(second, topic, "Failover", 2, consumer_name="A", permits=100)
    said["A joined: A"] = [broker.say(each) for each in second.rest(ACTIVATION_SECONDS)]
    said["A joined: B"] = changes(first)
    produce(first, topic, ["3"])
    said["next message: A"] = [broker.say(each) for each in take(second, 1)]
    second.close()
    said["A gone: B"] = [broker.say(each) for each in first.rest(ACTIVATION_SECONDS)]
    return said


@probe("5.4.5", "5.4.6")
def failover_joins_waiting(broker: Broker) -> Json:
    """A consumer that joins without becoming active: who is notified."""
    broker.topic_rest("PUT", "t", "/partitions", 1)
    topic = broker.topic("t-partition-0")
    first, second = broker.wire(), broker.wire()
    subscribe(first, topic, "Failover", 1, consumer_name="A")
    said: dict[str, Json] = {"A alone": changes(first)}
    started = time.monotonic()
    subscribe(second, topic, "Failover", 2, consumer_name="B")
    second.receive("ACTIVE_CONSUMER_CHANGE")
    said["B told at once"] = time.monotonic() - started < 0.7
    said["B then"] = changes(second)
    said["A then"] = changes(first)
    return said


@probe("5.4.7")
def failover_ack_from_waiting(broker: Broker) -> Json:
    """ACK with a request id, FLOW and REDELIVER from a consumer that is not active."""
    broker.topic_rest("PUT", "t", "/partitions", 1)
    topic = broker.topic("t-partition-0")
    first, second = broker.wire(), broker.wire()
    subscribe(first, topic, "Failover", 1, consumer_name="A", permits=10)
    subscribe(second, topic, "Failover", 2, consumer_name="B", permits=10)
    changes(second)
    produce(first, topic, ["0", "1"])
    got = take(first, 2)
    said: dict[str, Json] = {"ack": broker.say(ack(second, [place(got[0])], consumer_id=2))}
    second.send("REDELIVER_UNACKNOWLEDGED_MESSAGES", consumer_id=2)
    flow(second, 10, 2)
    said["B"] = changes(second)
    said["A"] = changes(first)
    stats = broker.topic_rest("GET", "t-partition-0", "/stats").body
    said["backlog"] = stats["subscriptions"]["s"]["msgBacklog"]
    return said


@probe("5.4.9")
def failover_negative_priority(broker: Broker) -> Json:
    """A negative priority level."""
    return broker.say(subscribe(broker.wire(), broker.topic(), "Failover", priority_level=-1))
