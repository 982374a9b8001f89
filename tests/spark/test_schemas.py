"""Typed values on real Spark, written by the official client under several schema versions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.live_broker import LiveBroker

pulsar = pytest.importorskip("pulsar")
schema = pytest.importorskip("pulsar.schema")

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


class Inner(schema.Record):  # type: ignore[misc,name-defined]  # the client publishes no types
    x = schema.Integer()


class Old(schema.Record):  # type: ignore[misc,name-defined]  # the same
    _avro_namespace = "tests"
    name = schema.String(required=True)
    count = schema.Integer(required=True)


class New(schema.Record):  # type: ignore[misc,name-defined]  # the same
    """Follows `Old`: one more field, and another order."""

    _avro_namespace = "tests"
    count = schema.Integer(required=True)
    name = schema.String(required=True)
    inner = Inner(default=None, required_default=True)
    tags = schema.Array(schema.String(), default=None, required_default=True)


Produce = Callable[..., None]


@pytest.fixture
def produce(broker: LiveBroker) -> Any:
    client = pulsar.Client(broker.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))

    def produce(topic: str, kind: Any, *records: Any) -> None:
        producer = client.create_producer(topic, schema=kind, batching_enabled=True)
        for record in records:
            producer.send(record)
        producer.close()

    yield produce
    client.close()


def load(spark: Any, broker: LiveBroker, **options: str) -> Any:
    reader = spark.read.format("pulsar").option("service.url", broker.url)
    return reader.options(**{"metadata": "none", **options}).load()


def test_avro_of_two_versions_is_read_and_what_does_not_fit_is_refused(
    spark: Any, broker: LiveBroker, produce: Produce
) -> None:
    topic = "persistent://public/default/typed-avro"
    produce(topic, schema.AvroSchema(Old), Old(name="a", count=1))
    produce(topic, schema.AvroSchema(New), New(name="b", count=2, inner=Inner(x=3), tags=["t"]))
    rows = {row["name"]: row for row in load(spark, broker, topic=topic, value="auto").collect()}
    assert (rows["a"]["count"], rows["a"].inner, rows["a"].tags) == (1, None, None)
    assert (rows["b"]["count"], rows["b"].inner.x, rows["b"].tags) == (2, 3, ["t"])
    old = load(spark, broker, topic=topic, value="avro", schemaVersion="0")
    assert old.dtypes == [("name", "string"), ("count", "int")]
    assert sorted(map(tuple, old.collect())) == [("a", 1), ("b", 2)]
    # Bytes without a schema are no record: by default that is an error which says where, else a row.
    produce(topic, schema.BytesSchema(), b"\xff")
    with pytest.raises(
        Exception, match=r"typed-avro-partition-\d, message \d+:\d+:0: does not fit Avro schema .*field "
    ):
        load(spark, broker, topic=topic, value="auto").collect()
    shown = load(spark, broker, topic=topic, value="auto", onDecodeError="column").collect()
    (bad,) = [row for row in shown if row["__decodeError"]]
    assert (bad["name"], bytes(bad["__rawValue"])) == (None, b"\xff")
    assert len(shown) == 3


def test_columns_are_written_under_a_schema(spark: Any, broker: LiveBroker) -> None:
    topic = "persistent://public/default/typed-sink"
    frame = spark.sql("SELECT 1L AS id, 'a' AS name, ARRAY(1.5D) AS xs, CAST('k' AS BINARY) AS __key")
    rows = frame.unionAll(spark.sql("SELECT NULL, NULL, NULL, CAST('gone' AS BINARY)"))

    def save(frame: Any, **options: str) -> None:
        writer = frame.coalesce(1).write.format("pulsar").option("service.url", broker.url).option("topic", topic)
        writer.options(**options).mode("append").save()

    save(rows, schema="avro")
    found = load(spark, broker, topic=topic, value="auto", metadata="__key,__schemaVersion").collect()
    by_key = {bytes(row["__key"]): row for row in found}
    assert tuple(by_key[b"k"])[:3] == (1, "a", [1.5])
    assert tuple(by_key[b"gone"])[:3] == (None, None, None)
    assert {bytes(row["__schemaVersion"]) for row in found} == {bytes(8)}
    save(spark.sql("SELECT 2L AS id, 'b' AS name"), schema="auto")
    assert sorted(row.id for row in load(spark, broker, topic=topic, value="auto").collect() if row.id) == [1, 2]
    with pytest.raises(Exception, match=r"refuses the schema .* Against version 0: .*field id: .*rule: a reader"):
        save(spark.sql("SELECT 'x' AS id"), schema="avro")
    with pytest.raises(Exception, match=r"takes one column 'value', these are id"):
        save(frame.select("id"), schema="int64")


def test_json_of_two_versions_and_topics_that_differ(spark: Any, broker: LiveBroker, produce: Produce) -> None:
    topic, other = (f"persistent://public/default/typed-{name}" for name in ("json", "text"))
    produce(topic, schema.JsonSchema(Old), Old(name="a", count=1))
    produce(topic, schema.JsonSchema(New), New(name="b", count=2, inner=Inner(x=3), tags=["t"]))
    frame = load(spark, broker, topic=topic, value="auto")
    rows = sorted((row["name"], row["count"], row.inner and row.inner.x, row.tags) for row in frame.collect())
    assert rows == [("a", 1, None, None), ("b", 2, 3, ["t"])]
    produce(other, schema.StringSchema(), "plain")
    assert load(spark, broker, topic=other, value="auto").collect()[0].value == "plain"
    with pytest.raises(Exception, match=r"have different schemas; read them one by one"):
        load(spark, broker, topics=f"{topic},{other}", value="auto")
    with pytest.raises(Exception, match=r"has a schema of type STRING, option 'value' is 'avro'"):
        load(spark, broker, topic=other, value="avro")
