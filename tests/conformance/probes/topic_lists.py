"""GET_TOPICS_OF_NAMESPACE. Other probes' topics are in the namespace as well, so patterns keep to their own."""

from __future__ import annotations

from tests.conformance.answers import Json
from tests.conformance.probe import NAMESPACE, Broker, probe
from tests.conformance.roles import open_producer
from tests.conformance.wire import Wire


def fill(broker: Broker) -> Wire:
    """A partitioned topic of two, a plain one and a non-persistent one."""
    broker.topic_rest("PUT", "pp", "/partitions", 2)
    wire = broker.wire()
    for number, name in enumerate((broker.topic("plain"), broker.topic("np", "non-persistent"))):
        open_producer(wire, name, number)
    return wire


@probe("2.16")
def topics_by_mode(broker: Broker) -> Json:
    """The lists of each mode, cut to this probe's topics."""
    wire = fill(broker)
    said: dict[str, Json] = {}
    for mode in ("PERSISTENT", "NON_PERSISTENT", "ALL"):
        answer = wire.request("GET_TOPICS_OF_NAMESPACE", namespace=NAMESPACE, mode=mode)
        said[mode] = sorted(name for name in answer.get("topics") if broker.probe_id in name)
        said[f"{mode} flags"] = {
            name: answer.get(name) if answer.has(name) else "<absent>" for name in ("filtered", "changed")
        }
    return said


@probe("2.16", "2.17", "2.18")
def topics_by_pattern(broker: Broker) -> Json:
    """Patterns: with and without the scheme, partial, partition suffix, too long; their hashes."""
    wire = fill(broker)
    said: dict[str, Json] = {}
    id_ = broker.probe_id
    for pattern in (
        f"{NAMESPACE}/{id_}-.*",
        f"persistent://{NAMESPACE}/{id_}-.*",
        f"{NAMESPACE}/{id_}-plain",
        f"{NAMESPACE}/{id_}-pla",
        f"{NAMESPACE}/{id_}-pp",
        f"{NAMESPACE}/{id_}-pp-partition-0",
        f"{id_}-plain",
        f"{NAMESPACE}/.*nothing-like-this",
    ):
        answer = wire.request("GET_TOPICS_OF_NAMESPACE", namespace=NAMESPACE, topics_pattern=pattern)
        said[pattern] = broker.say(answer)["GET_TOPICS_OF_NAMESPACE_RESPONSE"]
        said[pattern].get("topics", []).sort()
    long = f"{NAMESPACE}/{id_}-.*|{'x' * 40}"
    answer = wire.request("GET_TOPICS_OF_NAMESPACE", namespace=NAMESPACE, topics_pattern=long)
    said["long"] = {"filtered": answer.get("filtered"), "changed": answer.get("changed")}
    return said


@probe("2.18")
def topics_hash_unchanged(broker: Broker) -> Json:
    """A request that carries the hash of the list, and one that carries another."""
    wire = fill(broker)
    pattern = f"{NAMESPACE}/{broker.probe_id}-.*"
    ask: dict[str, Json] = {"namespace": NAMESPACE, "topics_pattern": pattern}
    first = wire.request("GET_TOPICS_OF_NAMESPACE", **ask)
    same = wire.request("GET_TOPICS_OF_NAMESPACE", topics_hash=first.get("topics_hash"), **ask)
    other = wire.request("GET_TOPICS_OF_NAMESPACE", topics_hash="ffffffff", **ask)
    return {
        "same": {"changed": same.get("changed"), "topics": len(same.get("topics")), "hash": same.get("topics_hash")},
        "other": {"changed": other.get("changed"), "topics": len(other.get("topics"))},
    }


@probe("2.16", "1.3.19")
def topics_of_no_namespace(broker: Broker) -> Json:
    """A namespace that does not exist, one that is malformed."""
    missing = broker.wire().request("GET_TOPICS_OF_NAMESPACE", namespace="public/oracle-missing")
    wire = broker.wire()
    wire.send("GET_TOPICS_OF_NAMESPACE", namespace="public", request_id=1)
    return {
        "missing": broker.say(missing),
        "malformed": {"closed": wire.closed(1.0), "said": [broker.say(each) for each in wire.queued]},
    }


@probe("2.17")
def topics_by_anchored_pattern(broker: Broker) -> Json:
    """Patterns as clients write them: Java keeps anchors before the scheme; groups, quotations."""
    wire = fill(broker)
    said: dict[str, Json] = {}
    full = f"{NAMESPACE}/{broker.probe_id[:11]}"
    for pattern in (
        f"^persistent://{full}.*",
        f"^persistent://{full}.*$",
        f"^{full}.*$",
        f"(?:persistent://{full}.*)",
        f"^\\Qpersistent://{full}\\E.*",
        f"\\Q{full}\\E.*",
        f"non-persistent://{full}.*",
        f"{full}[a-z&&[^b]]*.*",
        f"(?i){full.upper()}.*",
        f"(?i)^PERSISTENT://{full.upper()}.*",
        f"(?i)PERSISTENT://{full.upper()}.*",
    ):
        answer = wire.request("GET_TOPICS_OF_NAMESPACE", namespace=NAMESPACE, topics_pattern=pattern)
        said[pattern] = broker.say(answer)
        found = said[pattern].get("GET_TOPICS_OF_NAMESPACE_RESPONSE", {})
        found.pop("topics_hash", None)
        if "topics" in found:
            found["topics"] = sorted(name for name in found["topics"] if broker.probe_id in name)
        watch = broker.wire()
        watch.send("WATCH_TOPIC_LIST", namespace=NAMESPACE, topics_pattern=pattern, watcher_id=1, request_id=1)
        told = watch.receive("WATCH_TOPIC_LIST_SUCCESS", "ERROR")
        said[f"watch {pattern}"] = told.kind if told.kind != "ERROR" else [told.get("error"), told.get("message")]
    return said
