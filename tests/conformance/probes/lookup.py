"""LOOKUP, PARTITIONED_METADATA, topic names and automatic creation."""

from __future__ import annotations

from tests.conformance.answers import Json
from tests.conformance.probe import NAMESPACE, Broker, probe
from tests.conformance.roles import open_producer, subscribe

INVALID_NAMES = (
    "a/b",
    "a/b/c/d/e",
    "http://public/default/t",
    "persistent://public",
    "persistent://public/default",
    "persistent://public/default/",
    "persistent:///default/t",
    "",
)


@probe("2.3", "2.5")
def lookup_answer(broker: Broker) -> Json:
    """LOOKUP of topics that do not exist; whether it creates them."""
    wire = broker.wire()
    said: dict[str, Json] = {}
    for name in (broker.topic(), broker.local("short"), broker.topic(domain="non-persistent")):
        said[name] = broker.say(wire.request("LOOKUP", topic=name))
    said["authoritative"] = broker.say(wire.request("LOOKUP", topic=broker.topic(), authoritative=True))
    said["exists afterwards"] = broker.topic_rest("GET", "t", "/stats").status
    return said


@probe("2.4")
def lookup_unknown_listener(broker: Broker) -> Json:
    """LOOKUP with an advertised listener that the broker does not have."""
    return broker.say(broker.wire().request("LOOKUP", topic=broker.topic(), advertised_listener_name="test"))


@probe("1.3.19", "2.1", "1.3.11")
def invalid_topic_names(broker: Broker) -> Json:
    """Malformed topic names in each command that takes one."""
    said: dict[str, Json] = {}
    for name in INVALID_NAMES:
        wire = broker.wire()
        said[name] = {
            "LOOKUP": broker.say(wire.request("LOOKUP", topic=name)),
            "PARTITIONED_METADATA": broker.say(wire.request("PARTITIONED_METADATA", topic=name)),
            "PRODUCER": broker.say(open_producer(wire, name)),
            "SUBSCRIBE": broker.say(subscribe(wire, name)),
            "alive": wire.alive(),
        }
    return said


@probe("2.1")
def topic_name_forms(broker: Broker) -> Json:
    """That short, middle and full form of a name are one topic."""
    wire = broker.wire()
    forms = (broker.local(), f"public/default/{broker.local()}", broker.topic())
    said = {}
    for number, form in enumerate(forms):
        said[form] = broker.say(open_producer(wire, form, number, producer_name="same name"))
    return said


@probe("2.1")
def topic_name_characters(broker: Broker) -> Json:
    """Unusual but allowed local names: slashes, spaces, signs, letters of other scripts."""
    wire = broker.wire()
    said = {}
    for number, local in enumerate(("a/b/c", "with space", "percent%20", "ümläut", "q?x=1&y#z", "x-partition-")):
        said[local] = broker.say(open_producer(wire, broker.topic(local), number, producer_name="p"))
    return said


@probe("2.1")
def topic_name_extremes(broker: Broker) -> Json:
    """Control characters, dots, commas and long names, by LOOKUP, PARTITIONED_METADATA and PRODUCER."""
    said: dict[str, Json] = {}
    names = {
        "NUL": "a\0b",
        "newline": "a\nb",
        "newline at the end": "a\n",
        "escape": "a\x1bb",
        "DEL": "a\x7fb",
        "NEL": "a\x85b",
        "dot": ".",
        "dots": "..",
        "comma": "a,b",
        "private use": "a\ue000b",
        "not a character": "a\uffffb",
        "255": "x" * 255,
        "4000": "x" * 4000,
    }
    for what, local in names.items():
        wire = broker.wire()
        name = f"persistent://{NAMESPACE}/{broker.local()}{local}" if len(local) > 2 else broker.topic()[:-1] + local
        found = {
            "LOOKUP": broker.say(wire.request("LOOKUP", topic=name)),
            "PARTITIONED_METADATA": broker.say(wire.request("PARTITIONED_METADATA", topic=name)),
            "PRODUCER": broker.say(open_producer(wire, name, producer_name="p")),
            "alive": wire.alive(),
        }
        found["LOOKUP"] = next(iter(found["LOOKUP"]))
        said[what] = found
    return said


@probe("2.9")
def namespace_missing(broker: Broker) -> Json:
    """Commands for a namespace and a tenant that do not exist."""
    said: dict[str, Json] = {}
    for name in ("persistent://public/oracle-missing/t", "persistent://oracle-missing/default/t"):
        wire = broker.wire()
        said[name] = {
            "LOOKUP": broker.say(wire.request("LOOKUP", topic=name)),
            "PARTITIONED_METADATA": broker.say(wire.request("PARTITIONED_METADATA", topic=name)),
            "PRODUCER": broker.say(open_producer(wire, name)),
            "SUBSCRIBE": broker.say(subscribe(wire, name)),
            "alive": wire.alive(),
        }
    return said


@probe("2.7", "2.8")
def partition_metadata_plain(broker: Broker) -> Json:
    """PARTITIONED_METADATA of a missing topic, a plain one, and with auto creation switched off in the request."""
    wire = broker.wire()
    said: dict[str, Json] = {"missing": broker.say(wire.request("PARTITIONED_METADATA", topic=broker.topic()))}
    said["created by that"] = broker.topic_rest("GET", "t", "/stats").status
    said["without auto creation"] = broker.say(
        wire.request("PARTITIONED_METADATA", topic=broker.topic(), metadata_auto_creation_enabled=False)
    )
    open_producer(wire, broker.topic())
    said["existing"] = broker.say(wire.request("PARTITIONED_METADATA", topic=broker.topic()))
    said["existing, without auto creation"] = broker.say(
        wire.request("PARTITIONED_METADATA", topic=broker.topic(), metadata_auto_creation_enabled=False)
    )
    return said


@probe("2.7", "2.13")
def partition_metadata_partitioned(broker: Broker) -> Json:
    """PARTITIONED_METADATA of a partitioned topic, of its partitions and of one beyond."""
    broker.topic_rest("PUT", "t", "/partitions", 3)
    wire = broker.wire()
    names = [broker.topic(), *(f"{broker.topic()}-partition-{n}" for n in (0, 2, 3))]
    return {name: broker.say(wire.request("PARTITIONED_METADATA", topic=name)) for name in names}


@probe("2.10")
def auto_creation(broker: Broker) -> Json:
    """That PRODUCER and SUBSCRIBE create a topic, and SUBSCRIBE without force_topic_creation does not."""
    wire = broker.wire()
    return {
        "producer": broker.say(open_producer(wire, broker.topic("a"))),
        "after it": broker.topic_rest("GET", "a", "/stats").status,
        "consumer": broker.say(subscribe(wire, broker.topic("b"), consumer_id=1)),
        "after that": broker.topic_rest("GET", "b", "/stats").status,
        "without force": broker.say(subscribe(wire, broker.topic("c"), consumer_id=2, force_topic_creation=False)),
        "after this": broker.topic_rest("GET", "c", "/stats").status,
    }


@probe("2.11", "2.15", profile="strict")
def auto_creation_off(broker: Broker) -> Json:
    """Missing topics and subscriptions with automatic creation of both switched off."""
    wire = broker.wire()
    said: dict[str, Json] = {
        "LOOKUP": broker.say(wire.request("LOOKUP", topic=broker.topic())),
        "PARTITIONED_METADATA": broker.say(wire.request("PARTITIONED_METADATA", topic=broker.topic())),
        "PRODUCER": broker.say(open_producer(wire, broker.topic())),
        "SUBSCRIBE": broker.say(subscribe(wire, broker.topic())),
        "PUT": broker.topic_rest("PUT", "t", "").told(),
    }
    said["PRODUCER then"] = broker.say(open_producer(wire, broker.topic(), 2))
    said["SUBSCRIBE then"] = broker.say(subscribe(wire, broker.topic(), consumer_id=2))
    said["SUBSCRIBE non-durable"] = broker.say(subscribe(wire, broker.topic(), consumer_id=3, durable=False))
    return said


@probe("2.13")
def partition_of_nothing(broker: Broker) -> Json:
    """PRODUCER and SUBSCRIBE on `x-partition-N` where x is not partitioned."""
    wire = broker.wire()
    return {
        "PARTITIONED_METADATA": broker.say(wire.request("PARTITIONED_METADATA", topic=broker.topic("x-partition-5"))),
        "PRODUCER": broker.say(open_producer(wire, broker.topic("x-partition-5"))),
        "SUBSCRIBE": broker.say(subscribe(wire, broker.topic("y-partition-0"))),
        "x itself": broker.say(wire.request("PARTITIONED_METADATA", topic=broker.topic("x"))),
    }


@probe("2.13")
def partition_beyond_the_count(broker: Broker) -> Json:
    """PRODUCER and SUBSCRIBE on a partition within and beyond the count, and on the parent."""
    broker.topic_rest("PUT", "t", "/partitions", 2)
    wire = broker.wire()
    names = ("t-partition-1", "t-partition-2", "t")
    return {
        name: {
            "PRODUCER": broker.say(open_producer(wire, broker.topic(name), number)),
            "SUBSCRIBE": broker.say(subscribe(wire, broker.topic(name), consumer_id=number)),
        }
        for number, name in enumerate(names)
    }


@probe("2.1", "2.9")
def names_with_a_cluster(broker: Broker) -> Json:
    """Topics and namespaces of the v1 form, with a cluster between tenant and namespace."""
    wire = broker.wire()
    topic = f"persistent://public/standalone/{broker.local('ns')}/t"
    return {
        "PARTITIONED_METADATA": broker.say(wire.request("PARTITIONED_METADATA", topic=topic)),
        "LOOKUP": broker.say(wire.request("LOOKUP", topic=topic)),
        "PRODUCER": broker.say(open_producer(wire, topic)),
        "namespace": broker.rest("PUT", f"/admin/namespaces/public/standalone/{broker.local('made')}").told(),
    }
