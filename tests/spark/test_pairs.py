"""KEY_VALUE as a task writes it: read by our source and the official client, judged by the registry; once by Spark."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pytest

from magnetar.model.errors import InvalidValueError
from magnetar.spark.options.sink_options import sink_options
from magnetar.spark.options.source_options import source_options
from magnetar.spark.sink.task_sink import TaskSink
from magnetar.spark.source.reading.batch_reader import BatchReader
from magnetar.spark.source.reading.value_schemas import resolved
from tests.support.live_broker import LiveBroker

pulsar = pytest.importorskip("pulsar")

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
RECORD = pa.struct([("id", pa.int64()), ("name", pa.string())])
KEYS = ["a", "b", "a"]
VALUES = [{"id": 1, "name": "x"}, None, {"id": 2, "name": None}]
AVRO = {b"\2\2\2\2x": VALUES[0], b"": None, b"\2\4\0": VALUES[2]}
"""What the official client gets for them, by Avro's specification."""


def topic_of(encoding: str) -> str:
    return f"persistent://public/default/pairs-{encoding}"


def save(broker: LiveBroker, keys: Any, values: Any, **options: str) -> None:
    checked = sink_options({"service.url": broker.url, **options})
    TaskSink(checked, None).run(iter([pa.RecordBatch.from_pydict({"key": keys, "value": values})]))


def load(broker: LiveBroker, topic: str) -> list[Any]:
    given = {"service.url": broker.url, "topic": topic, "value": "auto", "metadata": "none"}
    reader = BatchReader(resolved(source_options(given)), None)
    rows: Iterator[Any] = (rows for task in reader.partitions() for rows in reader.read(task))
    return [(row["key"], row["value"]) for found in rows for row in found.to_pylist()]


def received(client: Any, topic: str, count: int) -> list[tuple[str, bytes]]:
    consumer = client.subscribe(topic, "s", initial_position=pulsar.InitialPosition.Earliest)
    return [(one.partition_key(), one.data()) for one in (consumer.receive(120_000) for _ in range(count))]


def taken_apart(data: bytes) -> tuple[bytes, bytes]:
    """Sizes, each with its bytes; -1 is null."""
    (size,) = struct.unpack_from(">i", data)
    (rest,) = struct.unpack_from(">i", data, 4 + size)
    value = data[8 + size :]
    assert rest == (len(value) or -1)
    return data[4 : 4 + size], value


@pytest.mark.parametrize("encoding", ["INLINE", "SEPARATED"])
def test_pairs_inside_and_beside(broker: LiveBroker, encoding: str) -> None:
    topic, keys, values = topic_of(encoding), pa.array(KEYS), pa.array(VALUES, RECORD)
    save(broker, keys, values, topic=topic, schema="keyvalue", **{"keyvalue.encoding": encoding})
    # The same again, by what the topic has by then.
    save(broker, keys, values, topic=topic, schema="auto")
    expected = sorted(2 * list(zip(KEYS, VALUES, strict=True)), key=str)
    assert sorted(load(broker, topic), key=str) == expected
    client = pulsar.Client(broker.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    try:
        found = received(client, topic, len(expected))
    finally:
        client.close()
    if encoding == "INLINE":
        assert {key for key, _ in found} == {""}
        pairs = [taken_apart(data) for _, data in found]
    else:
        pairs = [(base64.b64decode(key), data) for key, data in found]
    assert sorted(((key.decode(), AVRO[value]) for key, value in pairs), key=str) == expected
    with pytest.raises(InvalidValueError, match=r"refuses the schema .* Against version 0: value: .*field id"):
        other = pa.array([{"id": "x"}], pa.struct([("id", pa.string())]))
        save(broker, keys[:1], other, topic=topic, schema="keyvalue", **{"keyvalue.encoding": encoding})


def test_columns_of_spark(spark: Any, broker: LiveBroker) -> None:
    options = {"service.url": broker.url, "topic": topic_of("spark")}
    frame = spark.sql("SELECT struct(1 AS a) AS key, 2.5D AS value UNION ALL SELECT NULL, NULL").coalesce(1)
    frame.write.format("pulsar").options(**options, schema="keyvalue").mode("append").save()
    found = spark.read.format("pulsar").options(**options, value="auto", metadata="none").load()
    assert found.dtypes == [("key", "struct<a:int>"), ("value", "double")]
    assert sorted(map(str, found.collect())) == ["Row(key=None, value=None)", "Row(key=Row(a=1), value=2.5)"]
