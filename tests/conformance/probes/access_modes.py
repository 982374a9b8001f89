"""Producer access modes: who gets in, who waits, who is fenced out, and the topic's epoch."""

from __future__ import annotations

from tests.conformance.answers import Json
from tests.conformance.probe import Broker, probe
from tests.conformance.roles import open_producer
from tests.conformance.wire import Wire

_FENCING = "ExclusiveWithFencing"
_WAIT = "WaitForExclusive"


def _rest(broker: Broker, wire: Wire) -> list[Json]:
    return [broker.say(each) for each in wire.rest()]


@probe("3.2.3", "3.2.5")
def fencing_out(broker: Broker) -> Json:
    """ExclusiveWithFencing beside a shared producer and a waiting one: what each of them hears and can do."""
    shared, waiting, new = broker.wire(), broker.wire(), broker.wire()
    topic, say = broker.topic(), broker.say
    open_producer(shared, topic, 1, producer_name="s")
    said: dict[str, Json] = {
        "waiting": say(open_producer(waiting, topic, 1, producer_name="w", producer_access_mode=_WAIT)),
        "shared beside the queue": say(open_producer(new, topic, 1, producer_name="t")),
        "exclusive beside the queue": say(
            open_producer(new, topic, 2, producer_name="u", producer_access_mode="Exclusive")
        ),
        "fencing": say(open_producer(new, topic, 3, producer_name="f", producer_access_mode=_FENCING)),
    }
    said["then the waiting one"] = _rest(broker, waiting)
    said["then the shared one"] = _rest(broker, shared)
    shared.publish(1, 0, "too late")
    said["sending"] = _rest(broker, shared)
    said["alive"] = shared.alive()
    return said


@probe("3.2.5", "3.2.6")
def topic_epochs(broker: Broker) -> Json:
    """Epochs over several owners, after unloading, with epochs that clients bring, among the topic's properties."""
    wire, topic, say = broker.wire(), broker.topic(), broker.say
    said: list[Json] = []
    for number, (mode, epoch) in enumerate(
        [("Exclusive", None), (_FENCING, None), (_WAIT, None), ("Exclusive", 2), ("Exclusive", 7), ("Exclusive", 3),
         (_WAIT, 3), ("Exclusive", None), ("Shared", 1)], 1
    ):  # fmt: skip
        fields: dict[str, Json] = {} if epoch is None else {"topic_epoch": epoch}
        answer = open_producer(wire, topic, number, producer_name="p", producer_access_mode=mode, **fields)
        said.append(say(answer))
        if answer.kind == "PRODUCER_SUCCESS":
            wire.request("CLOSE_PRODUCER", producer_id=number)
    broker.topic_rest("PUT", "t", "/unload")
    wire.request("LOOKUP", topic=topic)
    said.append(say(open_producer(wire, topic, 20, producer_name="p", producer_access_mode="Exclusive")))
    return said


@probe("3.2.5")
def late_fencing(broker: Broker) -> Json:
    """ExclusiveWithFencing with an epoch that has passed, while somebody owns the topic."""
    first, second, third = broker.wire(), broker.wire(), broker.wire()
    topic, say = broker.topic(), broker.say
    open_producer(first, topic, 1, producer_name="a", producer_access_mode=_FENCING)
    said: dict[str, Json] = {
        "second": say(open_producer(second, topic, 1, producer_name="b", producer_access_mode=_FENCING)),
        "late": say(open_producer(third, topic, 1, producer_name="a", producer_access_mode=_FENCING, topic_epoch=0)),
    }
    second.publish(1, 0, "mine")
    said["the owner sends"] = _rest(broker, second)
    said["the owner is alive"] = second.alive()
    return said


@probe("3.2.4", "3.2.8")
def waiting_queue(broker: Broker) -> Json:
    """Two who wait: one closes, the owner's connection goes, the other is promoted; how statistics show them."""
    owner, other = broker.wire(), broker.wire()
    topic, say = broker.topic(), broker.say
    said: dict[str, Json] = {
        "owner": say(open_producer(owner, topic, 1, producer_name="o", producer_access_mode="Exclusive")),
        "first": say(open_producer(other, topic, 1, producer_name="f", producer_access_mode=_WAIT)),
        "second": say(open_producer(other, topic, 2, producer_name="o", producer_access_mode=_WAIT)),
        "again": say(open_producer(other, topic, 2, producer_name="o", producer_access_mode=_WAIT)),
    }
    said["stats"] = _shown(broker)
    said["first leaves"] = say(other.request("CLOSE_PRODUCER", producer_id=1))
    owner.close()
    said["second then"] = say(other.receive("PRODUCER_SUCCESS"))
    said["stats then"] = _shown(broker)
    return said


def _shown(broker: Broker) -> Json:
    stats = broker.topic_rest("GET", "t", "/stats").told()["body"]
    return {
        "waitingPublishers": stats["waitingPublishers"],
        "topicEpoch": stats.get("topicEpoch"),
        "publishers": [[each["producerName"], each["accessMode"]] for each in stats["publishers"]],
    }


@probe("3.2.4")
def unload_with_a_queue(broker: Broker) -> Json:
    """What those who wait hear when their topic is unloaded."""
    owner, other = broker.wire(), broker.wire()
    open_producer(owner, broker.topic(), 1, producer_name="o", producer_access_mode="Exclusive")
    open_producer(other, broker.topic(), 1, producer_name="w", producer_access_mode=_WAIT)
    broker.topic_rest("PUT", "t", "/unload")
    return {"owner": _rest(broker, owner), "waiting": _rest(broker, other)}


@probe("3.2.2", "13.1")
def exclusive_on_non_persistent(broker: Broker) -> Json:
    """Exclusive producers of a non-persistent topic."""
    wire, topic = broker.wire(), broker.topic("np", "non-persistent")
    return [
        broker.say(open_producer(wire, topic, 1, producer_name="a", producer_access_mode="Exclusive")),
        broker.say(open_producer(wire, topic, 2, producer_name="b", producer_access_mode="Exclusive")),
        broker.say(open_producer(wire, topic, 3, producer_name="c", producer_access_mode=_FENCING)),
    ]
