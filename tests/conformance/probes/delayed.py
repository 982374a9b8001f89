"""Delayed delivery: who waits, in which order, what statistics say, the longest delay."""

from __future__ import annotations

import time

from tests.conformance.answers import Json
from tests.conformance.probe import Broker, probe
from tests.conformance.roles import ack, flow, more, open_producer, place, subscribe, take, texts
from tests.conformance.wire import Wire

LATE_S = 3.0
"""Well beyond a tick either way."""


def publish(wire: Wire, topic: str, delays_s: list[float], producer_id: int = 9) -> Json:
    """One message per delay, named after it; 0: without a time. What the broker said to each."""
    open_producer(wire, topic, producer_id)
    said = []
    for number, delay in enumerate(delays_s):
        metadata = {"deliver_at_time": int((time.time() + delay) * 1000)} if delay else {}
        wire.publish(producer_id, number, f"{delay:g}", **metadata)
        receipt = wire.receive("SEND_RECEIPT", "SEND_ERROR")
        said.append(receipt.get("message") if receipt.kind == "SEND_ERROR" else receipt.kind)
    wire.request("CLOSE_PRODUCER", producer_id=producer_id)
    return said


def counts(broker: Broker, topic: str = "t") -> Json:
    """What statistics say of the subscription."""
    found = broker.topic_rest("GET", topic, "/stats").body["subscriptions"]["s"]
    return {name: found[name] for name in ("msgBacklog", "msgBacklogNoDelayed", "msgDelayed", "unackedMessages")}


@probe("7.2", "7.4", "0.14")
def delayed_types(broker: Broker) -> Json:
    """Which types wait: a message 4 s away between two plain ones; what came before 2 s and after."""
    said: dict[str, Json] = {}
    for kind in ("Exclusive", "Failover", "Shared", "Key_Shared"):
        wire, topic = broker.wire(), broker.topic(kind)
        subscribe(wire, topic, kind, permits=100)
        publish(wire, topic, [0, 4.0, 0])
        said[kind] = [more(wire, 2.0), texts(take(wire, 1, LATE_S)) if "hared" in kind else []]
    return said


@probe("7.5", "5.10.1")
def delayed_order_and_stats(broker: Broker) -> Json:
    """The order is by time, however they were sent; msgDelayed before and after."""
    wire, topic = broker.wire(), broker.topic()
    subscribe(wire, topic, "Shared", permits=100)
    publish(wire, topic, [8.0, 5.0, 0])
    first = more(wire, 0.5)
    before = counts(broker)
    got = take(wire, 2, 12.0)
    after = counts(broker)
    ack(wire, [place(frame) for frame in got])
    return {"first": first, "before": before, "then": texts(got), "after": after}


@probe("7.12", "5.8.1")
def delayed_nack(broker: Broker) -> Json:
    """A redelivery of a delayed message that has come is answered at once."""
    wire, topic = broker.wire(), broker.topic()
    subscribe(wire, topic, "Shared", permits=100)
    publish(wire, topic, [2.5])
    (got,) = take(wire, 1, 6.0)
    began = time.monotonic()
    wire.send("REDELIVER_UNACKNOWLEDGED_MESSAGES", consumer_id=1, message_ids=[place(got)])
    again = take(wire, 1, 3.0)
    return {"again": texts(again), "at once": time.monotonic() - began < 0.5, "count": again[0].get("redelivery_count")}


@probe("7.8", "5.7.4")
def delayed_acknowledged_before(broker: Broker) -> Json:
    """No consumer is connected when it becomes due; a new consumer gets it then and not before."""
    wire, topic = broker.wire(), broker.topic()
    subscribe(wire, topic, "Shared", permits=100)
    publish(wire, topic, [4.0, 0])
    plain = take(wire, 1)
    ack(wire, [place(plain[0])])
    wire.request("CLOSE_CONSUMER", consumer_id=1)
    subscribe(wire, topic, "Shared", permits=100)
    early = more(wire, 1.0)
    return {"plain": texts(plain), "early": early, "then": texts(take(wire, 1, 7.0)), "stats": counts(broker)}


@probe("7.10")
def delayed_longest(broker: Broker) -> Json:
    """maxDeliveryDelayInMillis of a topic: what a longer delay is answered."""
    wire, topic = broker.wire(), broker.topic()
    subscribe(wire, topic, "Shared")
    policy = {"active": True, "tickTime": 1000, "maxDeliveryDelayInMillis": 5000}
    set_to = broker.topic_rest("POST", "t", "/delayedDelivery", policy).status
    time.sleep(1.0)
    said = publish(wire, topic, [3.0, 20.0, 0])
    flow(wire, 100)
    return {"set": set_to, "said": said, "came": sorted(texts(take(wire, 2, 7.0)))}
