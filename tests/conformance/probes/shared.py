"""Shared: how a backlog is spread, permits, priorities."""

from __future__ import annotations

import time

from tests.conformance.answers import Json
from tests.conformance.probe import Broker, probe
from tests.conformance.roles import ack, flow, more, place, produce, produce_batch, subscribe, take, texts
from tests.conformance.wire import Wire


def backlog(broker: Broker, count: int) -> Wire:
    """A topic with ``count`` messages that wait for the Shared subscription `s`; no consumer is connected."""
    wire = broker.wire()
    subscribe(wire, broker.topic(), "Shared", 99)
    wire.request("CLOSE_CONSUMER", consumer_id=99)
    produce(wire, broker.topic(), [str(number) for number in range(count)])
    return wire


@probe("5.5.3")
def shared_round_robin(broker: Broker) -> Json:
    """A backlog of 100 over three idle consumers that have permits for all of it when the first FLOW comes last."""
    backlog(broker, 100)
    wires = [broker.wire() for _ in range(3)]
    for number, wire in enumerate(wires):
        subscribe(wire, broker.topic(), "Shared", number)
    # permits of all three are there before anything can be read only if they come in one go: take counts, not orders
    for number, wire in enumerate(wires):
        flow(wire, 40, number)
    got = [texts(list(wire.rest(1.0))) for wire in wires]
    everything = sorted((text for each in got for text in each), key=int)
    return {
        "each exactly once": everything == [str(number) for number in range(100)],
        "each in order": all(each == sorted(each, key=int) for each in got),
        "nobody over permits": all(len(each) <= 40 for each in got),
    }


@probe("5.1.10", "5.2.1")
def shared_permits(broker: Broker) -> Json:
    """Permits of a Shared consumer, used up and given again."""
    backlog(broker, 10)
    wire = broker.wire()
    subscribe(wire, broker.topic(), "Shared", permits=3)
    said = [more(wire)]
    flow(wire, 1)
    flow(wire, 1)
    said.append(more(wire))
    flow(wire, 100)
    said.append(more(wire))
    return said


@probe("5.1.10")
def shared_batch_overshoot(broker: Broker) -> Json:
    """Batches of ten against permits of fifteen: how far a Shared consumer overshoots, and its permits in the stats."""
    wire = broker.wire()
    subscribe(wire, broker.topic(), "Shared")
    produce_batch(wire, broker.topic(), [[f"{b}.{n}" for n in range(10)] for b in range(6)])
    flow(wire, 15)
    said: dict[str, Json] = {"15 permits": len(more(wire))}
    stats = broker.topic_rest("GET", "t", "/stats").body["subscriptions"]["s"]
    said["permits left"] = stats["consumers"][0]["availablePermits"]
    said["unacked"] = stats["unackedMessages"]
    flow(wire, 5)
    said["5 more"] = len(more(wire))
    flow(wire, 6)
    said["6 more"] = len(more(wire))
    return said


@probe("5.1.10")
def exclusive_batch_overshoot(broker: Broker) -> Json:
    """How far batches of ten overshoot the permits of an Exclusive consumer, which counts entries per read."""
    wire = broker.wire()
    subscribe(wire, broker.topic())
    produce_batch(wire, broker.topic(), [[f"{b}.{n}" for n in range(10)] for b in range(30)])
    flow(wire, 15)
    said: dict[str, Json] = {"15 permits": len(more(wire))}
    stats = broker.topic_rest("GET", "t", "/stats").body["subscriptions"]["s"]
    said["permits left"] = stats["consumers"][0]["availablePermits"]
    flow(wire, 135)
    said["135 more"] = len(more(wire))
    flow(wire, 1)
    said["1 more"] = len(more(wire))
    return said


@probe("5.5.1", "5.5.2")
def shared_priorities(broker: Broker) -> Json:
    """A backlog while a consumer of priority 0 and one of priority 1 have permits; then only the second has."""
    wire = backlog(broker, 30)
    high, low = broker.wire(), broker.wire()
    subscribe(high, broker.topic(), "Shared", 1, priority_level=0, permits=20)
    said: dict[str, Json] = {"alone": len(more(high))}
    subscribe(low, broker.topic(), "Shared", 2, priority_level=1, permits=5)
    said["low, high without permits"] = more(low)
    flow(high, 100, 1)
    said["high"] = more(high)
    flow(low, 5, 2)
    produce(wire, broker.topic(), ["new"])
    said["new: high"] = more(high)
    said["new: low"] = more(low)
    return said


@probe("5.5.1", "5.8.1")
def shared_newcomer(broker: Broker) -> Json:
    """A consumer that was alone gives back what it has when another one has joined; both have permits for all of it."""
    wire = broker.wire()
    first, second = broker.wire(), broker.wire()
    subscribe(first, broker.topic(), "Shared", 1, permits=20)
    produce(wire, broker.topic(), [str(number) for number in range(10)])
    said: dict[str, Json] = {"alone": len(take(first, 10))}
    subscribe(second, broker.topic(), "Shared", 2, permits=10)
    time.sleep(0.5)
    first.send("REDELIVER_UNACKNOWLEDGED_MESSAGES", consumer_id=1)
    said["second"] = texts(list(second.rest(1.0)))
    said["first"] = texts(list(first.rest(0.5)))
    return said


@probe("5.5.4", "5.5.5")
def shared_disconnect(broker: Broker) -> Json:
    """A Shared consumer disconnects with unacked messages: they go to the other one, in order, uncounted."""
    backlog(broker, 6)
    first, second = broker.wire(), broker.wire()
    subscribe(first, broker.topic(), "Shared", 1, permits=4)
    got = take(first, 4)
    ack(first, [place(got[1])])
    subscribe(second, broker.topic(), "Shared", 2, permits=1)
    said: dict[str, Json] = {"second": more(second)}
    first.close()
    time.sleep(0.5)
    flow(second, 100, 2)
    said["after the first left"] = [broker.say(each) for each in second.rest()]
    return said


@probe("5.5.6")
def shared_cumulative_ack(broker: Broker) -> Json:
    """A cumulative ack on a Shared subscription: the response, and what is acked by it."""
    backlog(broker, 3)
    wire = broker.wire()
    subscribe(wire, broker.topic(), "Shared", permits=10)
    got = take(wire, 3)
    answer = broker.say(ack(wire, [place(got[2])], "Cumulative"))
    wire.request("CLOSE_CONSUMER", consumer_id=1)
    subscribe(wire, broker.topic(), "Shared", permits=10)
    return {"answer": answer, "comes again": more(wire)}


@probe("5.7.4")
def shared_ack_by_another(broker: Broker) -> Json:
    """A consumer acks what another one holds."""
    backlog(broker, 3)
    first, second = broker.wire(), broker.wire()
    subscribe(first, broker.topic(), "Shared", 1, permits=10)
    got = take(first, 3)
    subscribe(second, broker.topic(), "Shared", 2, permits=10)
    answer = broker.say(ack(second, [place(got[0]), place(got[1])], consumer_id=2))
    stats = broker.topic_rest("GET", "t", "/stats").body["subscriptions"]["s"]
    held = {each["consumerName"]: each["unackedMessages"] for each in stats["consumers"]}
    return {"answer": answer, "unacked": held, "backlog": stats["msgBacklog"]}


@probe("5.9.10", "5.8.6", profile="strict")
def max_unacked_blocks(broker: Broker) -> Json:
    """maxUnackedMessagesPerConsumer of 10: where dispatch stops, where it goes on; batches; the flag in the stats."""
    broker.topic_rest("PUT", "t", "")
    broker.topic_rest("PUT", "t", "/subscription/s")
    wire = broker.wire()
    subscribe(wire, broker.topic(), "Shared", permits=1000)
    produce(wire, broker.topic(), [str(number) for number in range(30)])

    def blocked() -> Json:
        stats = broker.topic_rest("GET", "t", "/stats").body["subscriptions"]["s"]["consumers"][0]
        return [stats["blockedConsumerOnUnackedMsgs"], stats["unackedMessages"], stats["availablePermits"]]

    got = take(wire, 30, 1.0)
    said: dict[str, Json] = {"first": texts(got), "then": blocked()}
    ack(wire, [place(each) for each in got[:4]])
    said["4 acked"] = [more(wire), blocked()]
    ack(wire, [place(got[4])])
    next_ = take(wire, 30, 1.0)
    said["5 acked"] = [texts(next_), blocked()]
    wire.send("REDELIVER_UNACKNOWLEDGED_MESSAGES", consumer_id=1)
    said["redelivered"] = [more(wire), blocked()]
    return said


@probe("5.2.4", "5.5.4", "1.3.4")
def shared_reconnect(broker: Broker) -> Json:
    """A consumer that comes back: no permits until it gives some, then everything unacked."""
    backlog(broker, 4)
    wire = broker.wire()
    subscribe(wire, broker.topic(), "Shared", permits=100)
    take(wire, 4)
    wire.close()
    time.sleep(0.5)
    again = broker.wire()
    subscribe(again, broker.topic(), "Shared")
    said: list[Json] = [more(again)]
    flow(again, 2)
    said.append([broker.say(each) for each in again.rest()])
    return said
