"""Partitioned topics through REST: create, grow, refuse, delete."""

from __future__ import annotations

from tests.conformance.answers import Json
from tests.conformance.probe import NAMESPACE, Broker, probe
from tests.conformance.roles import open_producer


@probe("11.4.1", "2.14")
def partitions_created_and_grown(broker: Broker) -> Json:
    """PUT, GET and POST partitions; growing, equal, shrinking."""
    rest = broker.topic_rest
    said: dict[str, Json] = {
        "create": rest("PUT", "t", "/partitions", 4).told(),
        "get": rest("GET", "t", "/partitions").told(),
        "create again": rest("PUT", "t", "/partitions", 4).told(),
        "equal": rest("POST", "t", "/partitions", 4).told(),
        "shrink": rest("POST", "t", "/partitions", 1).told(),
        "grow": rest("POST", "t", "/partitions", 6).told(),
        "get then": rest("GET", "t", "/partitions").told(),
    }
    wire = broker.wire()
    said["wire"] = broker.say(wire.request("PARTITIONED_METADATA", topic=broker.topic()))
    return said


@probe("11.4.1", "11.1.2")
def partitions_refused(broker: Broker) -> Json:
    """Counts that are refused, a body that is no number, a missing namespace and tenant, malformed names."""
    rest = broker.topic_rest
    return {
        "0": rest("PUT", "a", "/partitions", 0).told(),
        "-1": rest("PUT", "b", "/partitions", -1).told(),
        "text": rest("PUT", "c", "/partitions", "four").status,
        "grow missing": rest("POST", "d", "/partitions", 4).told(),
        "get missing": rest("GET", "e", "/partitions").told(),
        "namespace": broker.rest("PUT", "persistent/public/oracle-missing/t/partitions", 2).told(),
        "tenant": broker.rest("PUT", "persistent/oracle-missing/default/t/partitions", 2).told(),
        "partition name": rest("PUT", "f-partition-0", "/partitions", 2).told(),
    }


@probe("11.4.1", "2.14")
def partitions_of_plain_topic(broker: Broker) -> Json:
    """The partitions calls on a topic that is not partitioned, and the plain calls on one that is."""
    rest = broker.topic_rest
    open_producer(broker.wire(), broker.topic("plain"))
    rest("PUT", "parted", "/partitions", 2)
    return {
        "PUT": rest("PUT", "plain", "/partitions", 2).told(),
        "POST": rest("POST", "plain", "/partitions", 2).told(),
        "GET": rest("GET", "plain", "/partitions").told(),
        "DELETE": rest("DELETE", "plain", "/partitions").told(),
        "PUT plain over partitioned": rest("PUT", "parted", "").told(),
        "DELETE plain of partitioned": rest("DELETE", "parted", "").told(),
    }


@probe("11.4.1", "4.7.2")
def topics_created_and_deleted(broker: Broker) -> Json:
    """Plain topics: create, again, delete, missing; partitioned: delete; one with a producer connected."""
    rest = broker.topic_rest
    said: dict[str, Json] = {
        "create": rest("PUT", "t", "").told(),
        "again": rest("PUT", "t", "").told(),
        "partition without parent": rest("PUT", "x-partition-0", "").told(),
        "delete": rest("DELETE", "t", "").told(),
        "delete missing": rest("DELETE", "t", "").told(),
    }
    rest("PUT", "parted", "/partitions", 2)
    said["delete partitioned"] = rest("DELETE", "parted", "/partitions").told()
    said["get then"] = rest("GET", "parted", "/partitions").told()
    wire = broker.wire()
    open_producer(wire, broker.topic("busy"))
    said["delete busy"] = rest("DELETE", "busy", "").told()
    said["delete busy by force"] = rest("DELETE", "busy", "?force=true").told()
    said["told"] = [each.kind for each in wire.rest()]
    return said


@probe("11.4.2")
def topics_listed(broker: Broker) -> Json:
    """The lists of plain and partitioned topics, cut to this probe's own."""
    broker.topic_rest("PUT", "parted", "/partitions", 2)
    broker.topic_rest("PUT", "plain", "")
    said: dict[str, Json] = {}
    for path in (f"persistent/{NAMESPACE}", f"persistent/{NAMESPACE}/partitioned", f"namespaces/{NAMESPACE}/topics"):
        names = broker.rest("GET", path).body
        said[path] = sorted(name for name in names if broker.probe_id in name)
    return said


@probe("11.4.1")
def partitions_grow_while_used(broker: Broker) -> Json:
    """Growing while a producer is connected to a partition: it stays, the new partition can be used."""
    broker.topic_rest("PUT", "t", "/partitions", 1)
    wire = broker.wire()
    open_producer(wire, broker.topic("t-partition-0"), 1)
    said: dict[str, Json] = {
        "before": broker.say(open_producer(wire, broker.topic("t-partition-1"), 2)),
        "grow": broker.topic_rest("POST", "t", "/partitions", 2).told(),
        "after": broker.say(open_producer(wire, broker.topic("t-partition-1"), 3)),
    }
    wire.publish(1, 0, "m")
    said["old producer"] = broker.say(wire.receive("SEND_RECEIPT", "SEND_ERROR"))
    return said
