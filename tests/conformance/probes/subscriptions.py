"""SUBSCRIBE: types, refusals, initial position; UNSUBSCRIBE; closing."""

from __future__ import annotations

import time

from tests.conformance.answers import Json
from tests.conformance.probe import Broker, probe
from tests.conformance.roles import ack, flow, more, open_producer, place, produce, subscribe, take, texts, until

KINDS = ("Exclusive", "Shared", "Failover", "Key_Shared")


@probe("5.1.1", "5.1.2")
def subscription_types(broker: Broker) -> Json:
    """Each type against each other type that is connected; and after it left."""
    said: dict[str, Json] = {}
    for first in KINDS:
        wire, other = broker.wire(), broker.wire()
        topic = broker.topic(first)
        said[first] = broker.say(subscribe(wire, topic, first))
        # an id of its own for each: one that was refused just now is not free at once
        for number, second in enumerate(KINDS, 10):
            if first != second:
                said[f"{first}, then {second}"] = broker.say(subscribe(other, topic, second, number))
        wire.request("CLOSE_CONSUMER", consumer_id=1)
        said[f"{first} left, then Shared"] = broker.say(subscribe(other, topic, "Shared", 3))
    return said


@probe("5.3.1")
def exclusive_busy(broker: Broker) -> Json:
    """A second Exclusive consumer, from both connections; and when the first is gone."""
    wire, other = broker.wire(), broker.wire()
    said: dict[str, Json] = {
        "first": broker.say(subscribe(wire, broker.topic(), consumer_id=1)),
        "same connection": broker.say(subscribe(wire, broker.topic(), consumer_id=2)),
        "other connection": broker.say(subscribe(other, broker.topic(), consumer_id=1)),
        "other subscription": broker.say(subscribe(other, broker.topic(), consumer_id=3, subscription="s2")),
    }
    wire.close()
    said["the first went"] = until("SUCCESS", lambda: subscribe(other, broker.topic(), consumer_id=1)).kind
    return said


@probe("5.3.1", "3.1.2")
def busy_with_a_dead_connection(broker: Broker) -> Json:
    """An Exclusive consumer and a producer name whose connection does not answer PING any more."""
    dead, other = broker.wire(), broker.wire()
    subscribe(dead, broker.topic())
    open_producer(dead, broker.topic(), producer_name="p")
    dead.deaf = True
    started = time.monotonic()
    subscribed = broker.say(subscribe(other, broker.topic()))
    waited = time.monotonic() - started
    produced = broker.say(open_producer(other, broker.topic(), producer_name="p"))
    return {
        "SUBSCRIBE": subscribed,
        "PRODUCER": produced,
        "waited five seconds": 4 < waited < 7,
        "closed": dead.closed(),
    }


@probe("5.1.4")
def consumer_id_repeated(broker: Broker) -> Json:
    """SUBSCRIBE for an id that is open: the same subscription, another topic."""
    wire = broker.wire()
    return [
        broker.say(subscribe(wire, broker.topic())),
        broker.say(subscribe(wire, broker.topic())),
        broker.say(subscribe(wire, broker.topic("u"))),
        broker.topic_rest("GET", "u", "/stats").status,
    ]


@probe("4.3.8")
def subscription_names(broker: Broker) -> Json:
    """Reserved, empty and unusual subscription names."""
    wire = broker.wire()
    names = ("", "pulsar.repl.x", "pulsar.dedup", "a/b", "with space", "ümläut", "__compaction")
    return {
        name: broker.say(subscribe(wire, broker.topic(), consumer_id=number, subscription=name))
        for number, name in enumerate(names)
    }


@probe("4.3.5", "5.9.16")
def initial_position(broker: Broker) -> Json:
    """Latest (the default) and Earliest on a topic with messages; the position of an existing subscription stays."""
    wire = broker.wire()
    subscribe(wire, broker.topic(), consumer_id=9, subscription="keeps")
    produce(wire, broker.topic(), ["0", "1"])
    said: dict[str, Json] = {}
    for number, fields in enumerate(({}, {"initialPosition": "Latest"}, {"initialPosition": "Earliest"})):
        name = fields.get("initialPosition", "default")
        subscribe(wire, broker.topic(), consumer_id=number, subscription=name, permits=10, **fields)
        said[name] = more(wire)
    wire.request("CLOSE_CONSUMER", consumer_id=9)
    subscribe(wire, broker.topic(), consumer_id=9, subscription="keeps", permits=10, initialPosition="Latest")
    said["existing, asked for Latest"] = more(wire)
    return said


@probe("5.3.3", "5.9.14", "5.8.4")
def unacked_come_again(broker: Broker) -> Json:
    """Messages that were delivered and not acked come again to the next consumer; acked ones do not."""
    said: dict[str, Json] = {}
    for kind in KINDS:
        topic = broker.topic(kind)
        wire = broker.wire()
        subscribe(wire, topic, kind, permits=10)
        produce(wire, topic, ["0", "1", "2"], partition_key="k")
        got = take(wire, 3)
        ack(wire, [place(got[1])])
        wire.request("CLOSE_CONSUMER", consumer_id=1)
        subscribe(wire, topic, kind, 2, permits=10)
        said[kind] = [broker.say(each) for each in take(wire, 2)] + more(wire)
    return said


@probe("5.1.10", "5.2.1")
def exclusive_permits(broker: Broker) -> Json:
    """An Exclusive consumer with fewer permits than messages, unbatched."""
    wire = broker.wire()
    subscribe(wire, broker.topic(), initialPosition="Earliest")
    produce(wire, broker.topic(), [str(n) for n in range(5)])
    said: list[Json] = [more(wire)]
    for permits in (2, 1, 10):
        flow(wire, permits)
        said.append(more(wire))
    return said


@probe("5.9.9", "1.3.7")
def unsubscribe(broker: Broker) -> Json:
    """UNSUBSCRIBE alone, with another consumer connected, by force; what a new subscription gets then."""
    wire, other = broker.wire(), broker.wire()
    topic = broker.topic()
    subscribe(wire, topic, "Shared")
    subscribe(other, topic, "Shared", 2)
    said: dict[str, Json] = {"with another": broker.say(wire.request("UNSUBSCRIBE", consumer_id=1))}
    other.request("CLOSE_CONSUMER", consumer_id=2)
    said["alone"] = broker.say(wire.request("UNSUBSCRIBE", consumer_id=1))
    said["subscriptions then"] = broker.topic_rest("GET", "t", "/subscriptions").told()
    said["again"] = broker.say(wire.request("UNSUBSCRIBE", consumer_id=1))
    produce(wire, topic, ["lost"])
    subscribe(wire, topic, "Shared", 3, permits=5)
    said["new one gets"] = more(wire)
    return said


@probe("5.9.9")
def unsubscribe_by_force(broker: Broker) -> Json:
    """UNSUBSCRIBE with force while another consumer is connected, and what that one receives."""
    wire, other = broker.wire(), broker.wire()
    subscribe(wire, broker.topic(), "Shared")
    subscribe(other, broker.topic(), "Shared", 2)
    answer = broker.say(wire.request("UNSUBSCRIBE", consumer_id=1, force=True))
    return {
        "answer": answer,
        "the other": [broker.say(each) for each in other.rest()],
        "subscriptions": broker.topic_rest("GET", "t", "/subscriptions").told(),
    }


@probe("2.15")
def subscribe_refused_keeps_connection(broker: Broker) -> Json:
    """That a refused SUBSCRIBE leaves other producers and consumers of the connection alone."""
    wire = broker.wire()
    subscribe(wire, broker.topic(), permits=10)
    open_producer(wire, broker.topic())
    refused = broker.say(subscribe(wire, broker.topic(), "Shared", 2))
    wire.publish(1, 0, "m")
    return [refused, texts(take(wire, 1))]


@probe("5.9.13")
def read_compacted_refused(broker: Broker) -> Json:
    """read_compacted on the types that cannot, and on a non-persistent topic."""
    wire = broker.wire()
    said = {
        kind: broker.say(subscribe(wire, broker.topic(), kind, number, subscription=kind, read_compacted=True))
        for number, kind in enumerate(KINDS)
    }
    topic = broker.topic("np", "non-persistent")
    said["non-persistent"] = broker.say(subscribe(wire, topic, consumer_id=9, read_compacted=True))
    return said
