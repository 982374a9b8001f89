"""Producer and consumer ids that were never opened."""

from __future__ import annotations

from tests.conformance.answers import Json
from tests.conformance.probe import Broker, probe
from tests.conformance.roles import open_producer, subscribe

PLACE = {"ledgerId": 1, "entryId": 1}


@probe("3.3.1")
def send_unknown_producer(broker: Broker) -> Json:
    """SEND for a producer id that was never opened, and for one that the client closed."""
    said: dict[str, Json] = {}
    wire = broker.wire()
    wire.publish(7, 0, "x")
    said["never opened"] = {"closed": wire.closed(1.0), "said": [broker.say(each) for each in wire.queued]}
    wire = broker.wire()
    open_producer(wire, broker.topic())
    wire.request("CLOSE_PRODUCER", producer_id=1)
    wire.publish(1, 0, "x")
    said["closed by the client"] = {"closed": wire.closed(1.0), "said": [broker.say(each) for each in wire.queued]}
    return said


@probe("1.3.5", "1.3.6", "5.2.1")
def unknown_consumer_without_reply(broker: Broker) -> Json:
    """ACK, FLOW and REDELIVER for a consumer id that was never opened."""
    said: dict[str, Json] = {}
    commands: dict[str, tuple[str, dict[str, Json]]] = {
        "ACK": ("ACK", {"ack_type": "Individual", "message_id": [PLACE]}),
        "ACK with request id": ("ACK", {"ack_type": "Individual", "message_id": [PLACE], "request_id": 9}),
        "FLOW": ("FLOW", {"messagePermits": 1}),
        "FLOW 0": ("FLOW", {"messagePermits": 0}),
        "REDELIVER": ("REDELIVER_UNACKNOWLEDGED_MESSAGES", {"message_ids": [PLACE]}),
    }
    for name, (kind, fields) in commands.items():
        wire = broker.wire()
        wire.send(kind, consumer_id=7, **fields)
        alive = wire.alive()
        said[name] = {"alive": alive, "said": [broker.say(each) for each in wire.rest()]}
    return said


@probe("1.3.7", "1.3.9", "1.3.13", "5.9.5")
def unknown_ids_with_reply(broker: Broker) -> Json:
    """Commands with a request id for producers and consumers that were never opened."""
    wire = broker.wire()
    return {
        "UNSUBSCRIBE": broker.say(wire.request("UNSUBSCRIBE", consumer_id=7)),
        "SEEK": broker.say(wire.request("SEEK", consumer_id=7, message_publish_time=1)),
        "CLOSE_CONSUMER": broker.say(wire.request("CLOSE_CONSUMER", consumer_id=7)),
        "CLOSE_PRODUCER": broker.say(wire.request("CLOSE_PRODUCER", producer_id=7)),
        "GET_LAST_MESSAGE_ID": broker.say(wire.request("GET_LAST_MESSAGE_ID", consumer_id=7)),
        "alive": wire.alive(),
    }


@probe("1.3.12")
def consumer_stats(broker: Broker) -> Json:
    """CONSUMER_STATS for a consumer that exists and for one that does not."""
    wire = broker.wire()
    subscribe(wire, broker.topic(), "Shared", permits=5)
    wire.alive()
    known = sorted(broker.normal.message(wire.request("CONSUMER_STATS", consumer_id=1).body))
    wire.send("CONSUMER_STATS", consumer_id=7, request_id=99)
    closed = wire.closed(1.0)
    return {"fields": known, "unknown": {"closed": closed, "said": [broker.say(each) for each in wire.queued]}}


@probe("5.2.1")
def flow_zero(broker: Broker) -> Json:
    """FLOW with no permits for a consumer that exists."""
    wire = broker.wire()
    subscribe(wire, broker.topic(), "Shared")
    wire.send("FLOW", consumer_id=1, messagePermits=0)
    return {"closed": wire.closed(1.0), "said": [broker.say(each) for each in wire.queued]}


@probe("1.3.9")
def close_twice(broker: Broker) -> Json:
    """Closing a producer and a consumer twice."""
    wire = broker.wire()
    open_producer(wire, broker.topic())
    subscribe(wire, broker.topic())
    return [
        broker.say(wire.request(kind, **{name: 1}))
        for kind, name in (("CLOSE_PRODUCER", "producer_id"), ("CLOSE_CONSUMER", "consumer_id"))
        for _ in range(2)
    ]
