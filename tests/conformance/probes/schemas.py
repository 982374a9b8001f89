"""The schema registry through its commands: versions, strategies, consumers, deletion."""

from __future__ import annotations

import json
import re
import struct

from tests.conformance.answers import Json
from tests.conformance.probe import Broker, probe
from tests.conformance.wire import ClosedError, SilentError

STRATEGIES = (
    "ALWAYS_INCOMPATIBLE",
    "ALWAYS_COMPATIBLE",
    "BACKWARD",
    "FORWARD",
    "FULL",
    "BACKWARD_TRANSITIVE",
    "FORWARD_TRANSITIVE",
    "FULL_TRANSITIVE",
)
# The reason in our own words follows these beginnings; Apache Pulsar prints whole schemas or Java's exceptions there.
REASONS = (
    re.compile(r"(Unable to read schema: ).*?(?= caused by org\.apache\.pulsar\.broker|\Z)", re.DOTALL),
    re.compile(
        r"((?:Invalid schema definition data for \w+ schema|deserialize ProtobufNative Schema failed)) .*", re.S
    ),
)


def record(*fields: tuple[str, Json] | tuple[str, Json, Json]) -> str:
    """An Avro record R; a field with three parts has a default."""
    return json.dumps(
        {
            "type": "record",
            "name": "R",
            "fields": [
                {"name": field[0], "type": field[1], **({"default": field[2]} if len(field) > 2 else {})}
                for field in fields
            ],
        }
    )


A = record(("a", "string"))
A_B = record(("a", "string"), ("b", "int"))
A_B_DEFAULT = record(("a", "string"), ("b", "int", 0))


def schema(kind: str, data: str | bytes = "", **properties: str) -> Json:
    """The Schema message."""
    return {
        "name": "s",
        "type": kind,
        "schema_data": data.encode() if isinstance(data, str) else data,
        "properties": [{"key": key.replace("_", "."), "value": value} for key, value in properties.items()],
    }


def without_reasons(said: Json) -> Json:
    """Return the answer without the free part of its texts."""
    if isinstance(said, dict):
        return {key: without_reasons(value) for key, value in said.items()}
    if isinstance(said, list):
        return [without_reasons(value) for value in said]
    if isinstance(said, str):
        for pattern in REASONS:
            said = pattern.sub(r"\1<reason>", said)
    return said


class Asker:
    """Sends one command after the other, each with ids of its own; a connection that is closed is made again."""

    def __init__(self, broker: Broker, namespace: str = "public/default") -> None:
        self.broker = broker
        self.namespace = namespace
        self.wire = broker.wire()
        self.ids = 0

    def topic(self, name: str = "t") -> str:
        topic = f"persistent://{self.namespace}/{self.broker.local(name)}"
        self.wire.request("LOOKUP", topic=topic)
        return topic

    def ask(self, kind: str, **fields: Json) -> Json:
        try:
            return without_reasons(self.broker.say(self.wire.request(kind, **fields)))
        except ClosedError:
            self.wire = self.broker.wire()
            return "closed"
        except SilentError:
            return "silent"

    def produce(self, name: str, given: Json = None, **fields: Json) -> Json:
        self.ids += 1
        known = {} if given is None else {"schema": given}
        return self.ask("PRODUCER", topic=self.topic(name), producer_id=self.ids, **known, **fields)

    def subscribe(self, name: str, given: Json = None, subscription: str = "s") -> Json:
        self.ids += 1
        known = {} if given is None else {"schema": given}
        return self.ask(
            "SUBSCRIBE",
            topic=self.topic(name),
            consumer_id=self.ids,
            subscription=subscription,
            subType="Shared",
            **known,
        )

    def get(self, name: str, version: int | bytes | None = None) -> Json:
        fields: dict[str, Json] = {"topic": self.topic(name)}
        if version is not None:
            fields["schema_version"] = struct.pack(">q", version) if isinstance(version, int) else version
        return self.ask("GET_SCHEMA", **fields)

    def get_or_create(self, name: str, given: Json) -> Json:
        return self.ask("GET_OR_CREATE_SCHEMA", topic=self.topic(name), schema=given)


def own_namespace(broker: Broker, name: str, **policies: Json) -> str:
    namespace = f"public/{broker.local(name)}"
    broker.rest("PUT", f"namespaces/{namespace}", policies)
    return namespace


@probe("10.3", "10.4", "10.9")
def schema_versions(broker: Broker) -> Json:
    """Producers with the same schema, another one and none; GET_SCHEMA of each version."""
    ask = Asker(broker)
    return {
        "first": ask.produce("t", schema("Avro", A)),
        "same": ask.produce("t", schema("Avro", json.dumps(json.loads(A), indent=1))),
        "incompatible": ask.produce("t", schema("Avro", A_B)),
        "compatible": ask.produce("t", schema("Avro", A_B_DEFAULT)),
        "first again": ask.produce("t", schema("Avro", A)),
        "none": ask.produce("t"),
        "latest": ask.get("t"),
        "0": ask.get("t", 0),
        "1": ask.get("t", 1),
        "2": ask.get("t", 2),
        "-1": ask.get("t", -1),
        "empty": ask.get("t", b""),
        "four bytes": ask.get("t", b"\0\0\0\1"),
        "no topic": ask.get("other"),
        "bad name": ask.ask("GET_SCHEMA", topic="bad://x"),
    }


@probe("10.1", "10.3")
def schema_types(broker: Broker) -> Json:
    """Each schema type with and without data, on a topic of its own."""
    ask = Asker(broker)
    kinds = ["None", "String", "Bool", "Int8", "Int16", "Int32", "Int64", "Float", "Double", "Date", "Time"]
    kinds += ["Timestamp", "Instant", "LocalDate", "LocalTime", "LocalDateTime", "AutoConsume", "Avro", "Protobuf"]
    kinds += ["ProtobufNative", "Json"]
    return {
        kind: [ask.produce(f"{kind}-without", schema(kind)), ask.produce(f"{kind}-with", schema(kind, "abc"))]
        for kind in kinds
    }


@probe("10.1")
def schema_invalid(broker: Broker) -> Json:
    """Definitions that their own type cannot read."""
    ask = Asker(broker)
    given = {
        "not json": "{bad",
        "union": '["null","string"]',
        "no fields": '{"type":"record","name":"R"}',
        "unknown type": record(("a", "nope")),
        "bad name": record(("a b", "int")),
        "field twice": record(("a", "int"), ("a", "int")),
        "wrong default": record(("a", "int", "x")),
        "wrong default of double": record(("a", "double", "x")),
        "symbol twice": '{"type":"enum","name":"E","symbols":["A","A"]}',
        "type in type": '{"type":{"type":"string"}}',
        "a primitive": '"string"',
        "a number": "5",
    }
    return {
        name: [ask.produce(f"avro-{index}", schema("Avro", text)), ask.produce(f"json-{index}", schema("Json", text))]
        for index, (name, text) in enumerate(given.items())
    }


@probe("10.1", "10.14")
def schema_of_python(broker: Broker) -> Json:
    """The official Python client sends the text null with a STRING schema; others send nothing."""
    ask = Asker(broker)
    said = [ask.produce("t", schema("String", data)) for data in ("", "null", "")]
    return [*said, ask.subscribe("t", schema("String", "null")), ask.produce("n", schema("Int8", "null"))]


@probe("10.14")
def schema_of_old_clients(broker: Broker) -> Json:
    """JSON schemas in the form before protocol version 13: the first, another of its id, one described by Avro."""
    ask = Asker(broker)
    old = '{"type":"object","id":"urn:x","properties":%s}'
    return {
        "first": ask.produce("t", schema("Json", old % "{}")),
        "again": ask.produce("t", schema("Json", old % "{}")),
        "same id": ask.produce("t", schema("Json", old % '{"a":{"type":"string"}}')),
        "by avro": ask.produce("t", schema("Json", A)),
    }


@probe("10.7")
def schema_invalid_of_consumer(broker: Broker) -> Json:
    """SUBSCRIBE to an idle topic with a definition that its own type cannot read."""
    ask = Asker(broker)
    return [ask.subscribe("t", schema("Avro", "{")), ask.get("t")]


@probe("10.5")
def schema_type_change(broker: Broker) -> Json:
    """Another type than the topic's, on each command that brings a schema."""
    ask = Asker(broker)
    said: dict[str, Json] = {"first": ask.produce("t", schema("Avro", A))}
    for kind, data in (("Json", A), ("String", ""), ("None", ""), ("AutoConsume", "")):
        other = schema(kind, data)
        said[kind] = [ask.produce("t", other), ask.subscribe("t", other), ask.get_or_create("t", other)]
    said["on none"] = [ask.produce("n", schema("None")), ask.produce("n", schema("String"))]
    return said


@probe("10.6", "10.7")
def schema_strategies(broker: Broker) -> Json:
    """Under each strategy: a field added with and without default, one removed, another type; consumers likewise."""
    said: dict[str, Json] = {}
    for strategy in STRATEGIES:
        ask = Asker(broker, own_namespace(broker, strategy, schema_compatibility_strategy=strategy))
        said[strategy] = {
            "first": ask.produce("t", schema("Avro", A)),
            "again": ask.produce("t", schema("Avro", A)),
            "consumer": ask.subscribe("t", schema("Avro", A)),
            "consumer wants more": ask.subscribe("t", schema("Avro", A_B), "s2"),
            "more": ask.produce("t", schema("Avro", A_B)),
            "consumer after more": ask.subscribe("t", schema("Avro", A), "s3"),
            "more with default": ask.produce("t", schema("Avro", A_B_DEFAULT)),
            "less": ask.produce("t", schema("Avro", record(("b", "int")))),
            "other type": ask.produce("t", schema("String")),
            "consumer of other type": ask.subscribe("t", schema("Int8"), "s4"),
            "latest": ask.get("t"),
            "string": [ask.produce("s", schema("String")), ask.produce("s", schema("String"))],
            "string consumer": ask.subscribe("s", schema("String")),
        }
    return said


@probe("10.7", "10.8")
def schema_of_consumers(broker: Broker) -> Json:
    """SUBSCRIBE with a schema on topics that are idle, in use without schema, or have one."""
    ask = Asker(broker)
    return {
        "idle": [ask.subscribe("idle", schema("Avro", A)), ask.get("idle")],
        "idle, none": [ask.subscribe("idle-none", schema("None")), ask.get("idle-none")],
        "with producer": [ask.produce("p"), ask.subscribe("p", schema("String")), ask.produce("p", schema("String"))],
        "now": [ask.subscribe("p", schema("String")), ask.subscribe("p", schema("Int8"), "s2")],
        "with consumer": [ask.subscribe("c"), ask.subscribe("c", schema("String"), "s2")],
        "with auto consumer": [
            ask.subscribe("a", schema("AutoConsume")),
            ask.get("a"),
            ask.subscribe("a", schema("String"), "s2"),
            ask.get("a"),
        ],
        "without schema": [ask.produce("w", schema("String")), ask.subscribe("w")],
    }


@probe("10.10", "1.3.14")
def schema_get_or_create(broker: Broker) -> Json:
    """GET_OR_CREATE_SCHEMA with and without topic, for schemas old and new."""
    ask = Asker(broker)
    return {
        "no topic": ask.get_or_create("t", schema("Avro", A)),
        "topic": ask.produce("t"),
        "new": ask.get_or_create("t", schema("Avro", A)),
        "same": ask.get_or_create("t", schema("Avro", A)),
        "second": ask.get_or_create("t", schema("Avro", A_B_DEFAULT)),
        "incompatible": ask.get_or_create("t", schema("Avro", record(("z", "int")))),
        "type none": ask.get_or_create("t", schema("None")),
        "invalid": ask.get_or_create("t", schema("Avro", "{")),
    }


@probe("10.4", "10.12", "3.1.10")
def schema_policies(broker: Broker) -> Json:
    """is_allow_auto_update_schema false; schema_validation_enforced true."""
    fixed = Asker(broker, own_namespace(broker, "fixed", is_allow_auto_update_schema=False))
    strict = Asker(broker, own_namespace(broker, "strict", schema_validation_enforced=True))
    path = f"schemas/{fixed.namespace}/{broker.local('t')}/schema"
    return {
        "producer": fixed.produce("t", schema("Avro", A)),
        "idle consumer": fixed.subscribe("c", schema("Avro", A)),
        "rest": broker.rest("POST", path, {"type": "AVRO", "schema": A, "properties": {}}).told(),
        "same": fixed.produce("t", schema("Avro", A)),
        "other": fixed.produce("t", schema("Avro", A_B_DEFAULT)),
        "get or create": fixed.get_or_create("t", schema("Avro", A_B_DEFAULT)),
        "strict": {
            "with": strict.produce("t", schema("Avro", A)),
            "without": strict.produce("t"),
            "type none": strict.produce("t", schema("None")),
            "consumer without": strict.subscribe("t"),
            "get or create none": strict.get_or_create("t", schema("None")),
            "without, no schema there": strict.produce("plain"),
        },
    }


def key_value(key: bytes | None, value: bytes) -> bytes:
    size = -1 if key is None else len(key)
    return b"".join((struct.pack(">i", size), key or b"", struct.pack(">i", len(value)), value))


@probe("10.13")
def schema_key_value(broker: Broker) -> Json:
    """Pairs: each part compared for itself; what is no pair."""
    ask = Asker(broker)
    types = {"key_schema_type": "STRING", "value_schema_type": "AVRO"}
    kind = "KeyValue"
    return {
        "first": ask.produce("t", schema(kind, key_value(b"", A.encode()), **types)),
        "second": ask.produce("t", schema(kind, key_value(b"", A_B_DEFAULT.encode()), **types)),
        "incompatible value": ask.produce("t", schema(kind, key_value(b"", record(("q", "int")).encode()), **types)),
        "same bytes, other key type": ask.produce(
            "t", schema(kind, key_value(b"", A.encode()), **{**types, "key_schema_type": "INT32"})
        ),
        "length -1": ask.produce("minus", schema(kind, key_value(None, A.encode()), **types)),
        "no properties": ask.produce("bare", schema(kind, key_value(b"", A.encode()))),
        "bad value": ask.produce("bad", schema(kind, key_value(b"", b"{"), **types)),
    }


@probe("10.11")
def schema_deletion(broker: Broker) -> Json:
    """DELETE with and without force, of the topic, and what comes after."""
    ask = Asker(broker)
    path = f"schemas/public/default/{broker.local('t')}/schema"
    said: dict[str, Json] = {
        "two": [ask.produce("t", schema("Avro", A)), ask.produce("t", schema("Avro", A_B_DEFAULT))]
    }
    said["delete"] = broker.rest("DELETE", path).told()
    said["after"] = [ask.get("t"), ask.get("t", 0), ask.get("t", 2)]
    said["next"] = [ask.produce("t", schema("String")), ask.get("t", 0), ask.get("t", 3)]
    said["force"] = broker.rest("DELETE", f"{path}?force=true").told()
    said["after force"] = [ask.get("t"), ask.produce("t", schema("Bool")), ask.get("t", 0)]
    said["topic"] = broker.topic_rest("DELETE", "t", "?force=true").told()
    said["after topic"] = [ask.get("t"), ask.get("t", 0)]
    return said


@probe("10.2")
def schema_of_partitions(broker: Broker) -> Json:
    """One schema for all partitions; deleting one of them keeps it."""
    ask = Asker(broker)
    said: dict[str, Json] = {"create": broker.topic_rest("PUT", "t", "/partitions", 2).told()}
    said["partition 0"] = ask.produce("t-partition-0", schema("Avro", A))
    said["partition 1"] = ask.produce("t-partition-1", schema("Avro", A_B))
    said["get"] = [ask.get("t"), ask.get("t-partition-1")]
    said["delete partition"] = broker.topic_rest("DELETE", "t-partition-0", "?force=true").told()
    said["then"] = ask.get("t")
    said["delete all"] = broker.topic_rest("DELETE", "t", "/partitions?force=true").told()
    said["at last"] = ask.get("t")
    return said
