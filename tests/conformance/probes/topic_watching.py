"""WATCH_TOPIC_LIST: the first list, updates for each way a topic comes and goes, refusals."""

from __future__ import annotations

import time

from tests.conformance.answers import Json
from tests.conformance.probe import NAMESPACE, Broker, probe
from tests.conformance.roles import open_producer, subscribe
from tests.conformance.wire import SilentError, Wire


def watch(broker: Broker, wire: Wire, pattern: str, watcher: int = 1, **fields: Json) -> Json:
    known: dict[str, Json] = {"namespace": NAMESPACE, "topics_pattern": pattern, "watcher_id": watcher}
    answer = broker.say(wire.request("WATCH_TOPIC_LIST", **{**known, **fields}))
    if isinstance(answer, dict):
        for body in answer.values():
            if isinstance(body, dict) and "topic" in body:
                body["topic"].sort()
    return answer


def updates(wire: Wire, watcher: int = 1, seconds: float = 3.0) -> dict[str, list[str]]:
    """What is new and what is gone once nothing more comes; the pieces in which it comes are not the question."""
    said: dict[str, list[str]] = {"new": [], "deleted": []}
    until = time.monotonic() + seconds
    try:
        while True:
            frame = wire.receive(
                "WATCH_TOPIC_UPDATE", seconds=until - time.monotonic() if not any(said.values()) else 0.6
            )
            if frame.get("watcher_id") == watcher:
                said["new"] += frame.get("new_topics")
                said["deleted"] += frame.get("deleted_topics")
    except (SilentError, ValueError):
        pass
    return {name: sorted(topics) for name, topics in said.items()}


@probe("2.19")
def watch_updates(broker: Broker) -> Json:
    """Topics that come by PRODUCER, SUBSCRIBE, REST, as partitions and by growth; topics that go."""
    wire, user = broker.wire(), broker.wire()
    open_producer(user, broker.topic("a"), 1)
    said: dict[str, Json] = {"first": watch(broker, wire, f"{NAMESPACE}/{broker.probe_id}-.*")}
    open_producer(user, broker.topic("b"), 2)
    said["by producer"] = updates(wire)
    subscribe(user, broker.topic("c"), consumer_id=3)
    said["by consumer"] = updates(wire)
    broker.topic_rest("PUT", "d", "")
    said["by rest"] = updates(wire)
    broker.topic_rest("PUT", "p", "/partitions", 2)
    said["by partitions"] = updates(wire)
    broker.topic_rest("POST", "p", "/partitions", 3)
    said["by growth"] = updates(wire)
    open_producer(user, broker.topic("n", "non-persistent"), 4)
    said["non-persistent"] = updates(wire, seconds=1.0)
    open_producer(user, f"persistent://{NAMESPACE}/other-{broker.probe_id}", 5)
    said["of another name"] = updates(wire, seconds=1.0)
    broker.topic_rest("DELETE", "d", "")
    said["deleted"] = updates(wire)
    broker.topic_rest("DELETE", "p", "/partitions")
    said["partitions deleted"] = updates(wire)
    broker.topic_rest("DELETE", "a", "?force=true")
    said["deleted by force"] = updates(wire)
    return said


@probe("2.18", "2.19")
def watch_hash(broker: Broker) -> Json:
    """The hash of the list, sent back by a client that knows the list, and another; the hash in an update."""
    wire, user = broker.wire(), broker.wire()
    pattern = f"{NAMESPACE}/{broker.probe_id}-.*"
    open_producer(user, broker.topic("a"), 1)
    listed = wire.request("WATCH_TOPIC_LIST", namespace=NAMESPACE, topics_pattern=pattern, watcher_id=1)
    known = listed.get("topics_hash")
    said: dict[str, Json] = {
        "first": broker.say(listed),
        "same": watch(broker, wire, pattern, 2, topics_hash=known),
        "other": watch(broker, wire, pattern, 3, topics_hash="ffffffff"),
    }
    open_producer(user, broker.topic("b"), 2)
    frame = wire.receive("WATCH_TOPIC_UPDATE")
    said["update"] = sorted(frame.get("new_topics"))
    said["hash"] = frame.get("topics_hash")
    return said


@probe("2.19", "2.17")
def watch_patterns(broker: Broker) -> Json:
    """Patterns with a scheme, of partitions, of everything non-persistent, none at all."""
    wire, user = broker.wire(), broker.wire()
    open_producer(user, broker.topic("a"), 1)
    open_producer(user, broker.topic("n", "non-persistent"), 2)
    broker.topic_rest("PUT", "p", "/partitions", 2)
    id_ = broker.probe_id
    said: dict[str, Json] = {}
    for number, pattern in enumerate(
        (
            f"persistent://{NAMESPACE}/{id_}-.*",
            f"non-persistent://{NAMESPACE}/{id_}-.*",
            f"{NAMESPACE}/{id_}-p",
            f"{NAMESPACE}/{id_}-p-partition-0",
            f"{id_}-a",
            f"{NAMESPACE}/[",
        ),
        1,
    ):
        said[pattern] = watch(broker, wire, pattern, number)
    return said


@probe("2.19", "2.17", "1.3.17")
def watch_refused(broker: Broker) -> Json:
    """A pattern that is too long, unknown and malformed namespaces, one id twice, closing."""
    wire = broker.wire()
    pattern = f"{NAMESPACE}/{broker.probe_id}-.*"
    said: dict[str, Json] = {
        "50": watch(broker, wire, "x" * 50, 1),
        "51": watch(broker, wire, "x" * 51, 2),
        "missing": watch(broker, wire, pattern, 3, namespace="public/oracle-missing"),
        "no tenant": watch(broker, wire, pattern, 4, namespace="oracle-missing/default"),
        "first": watch(broker, wire, pattern, 5),
        "twice": watch(broker, wire, pattern, 5),
        "close": broker.say(wire.request("WATCH_TOPIC_LIST_CLOSE", watcher_id=5)),
        "close again": broker.say(wire.request("WATCH_TOPIC_LIST_CLOSE", watcher_id=5)),
        "close unknown": broker.say(wire.request("WATCH_TOPIC_LIST_CLOSE", watcher_id=99)),
    }
    open_producer(broker.wire(), broker.topic("late"))
    said["after close"] = [broker.say(each) for each in wire.rest(1.0)]
    for name, wrong in (("malformed", "public"), ("empty", "")):
        other = broker.wire()
        other.send("WATCH_TOPIC_LIST", namespace=wrong, topics_pattern=pattern, watcher_id=6, request_id=1)
        said[name] = {"closed": other.closed(1.0), "said": [broker.say(each) for each in other.queued]}
    return said
