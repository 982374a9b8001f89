"""``format("pulsar")`` as a sink on real Spark against a real broker."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from magnetar.model.hashing import java_string_hash
from magnetar.spark.sink.foreach_batch import staged
from magnetar.spark.sink.sequence_ids import SequenceId
from tests.spark.conftest import PARTITIONS
from tests.spark.numbered_topic import Make, numbers, run
from tests.support.live_broker import LiveBroker, live_broker

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(autouse=True)
def no_queries_left(spark: Any) -> Iterator[None]:
    yield
    for query in spark.streams.active:
        query.stop()


def test_written_rows_are_read_back_with_everything(spark: Any, broker: LiveBroker, topic: str, load: Make) -> None:
    frame = spark.sql(
        "SELECT CAST('v' AS BINARY) AS value, CAST('key' AS BINARY) AS __key, "
        "TIMESTAMP '2013-01-01 10:15:00.123' AS __eventTime, MAP('a', '1') AS __messageProperties "
        "UNION ALL SELECT NULL, NULL, NULL, NULL"
    )
    writer = frame.coalesce(1).write.format("pulsar").option("service.url", broker.url).option("topic", topic)
    writer.option("pulsar.producer.compressionType", "LZ4").mode("append").save()
    rows = {row.value: row for row in load(metadata="all").collect()}
    assert len(rows) == 2
    row = rows["v"]
    assert (bytes(row["__key"]), row["__messageProperties"]) == (b"key", {"a": "1"})
    assert row["__partition"] == java_string_hash("key") % PARTITIONS
    assert row["__topic"] == f"{topic}-partition-{row['__partition']}"
    # The session's zone is UTC; collect() gives this machine's local time.
    moment = dt.datetime(2013, 1, 1, 10, 15, 0, 123_000, dt.UTC)
    assert row["__eventTime"].astimezone(dt.UTC) == moment
    assert abs(row["__publishTime"].timestamp() - dt.datetime.now().timestamp()) < 600
    tombstone = rows[None]
    assert (tombstone["__key"], tombstone["__eventTime"], tombstone["__messageProperties"]) == (None, None, {})


def test_stream_to_stream(spark: Any, fill: Make, stream: Make, broker: LiveBroker, topic: str, tmp_path: Path) -> None:
    """The streaming sink, with stable names and sequence ids."""
    target = f"{topic}-copy"
    fill(0, 300)

    def copy() -> None:
        (
            stream(startingOffsets="earliest", metadata="__key,__eventTime")
            .writeStream.format("pulsar")
            .option("service.url", broker.url)
            .option("topic", target)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
            .awaitTermination(120)
        )

    copy()
    fill(300, 400)
    copy()
    found = (
        spark.read.format("pulsar")
        .option("service.url", broker.url)
        .option("topic", target)
        .option("value", "string")
        .option("metadata", "all")
        .load()
        .collect()
    )
    assert sorted(int(row.value) for row in found) == list(range(400))
    for row in found:
        key = bytes(row["__key"]).decode()
        assert key == f"k{int(row.value) % 7}"
        assert row["__partition"] == java_string_hash(key) % PARTITIONS
        assert row["__eventTime"].timestamp() == int(row.value) + 1
    names = {row["__producerName"] for row in found}
    assert all(name.startswith("spark.") and name.rsplit(".", 1)[1].isdecimal() for name in names)
    assert {SequenceId.of(row["__sequenceId"]).batch for row in found} == {0, 1}


def test_rows_say_their_partition_ordering_key_and_time(
    spark: Any, broker: LiveBroker, topic: str, load: Make, fill: Make
) -> None:
    fill(0, 0)
    frame = spark.sql(
        "SELECT 'a' AS value, 'k' AS __key, 1 AS __partition, 'o' AS __orderingKey, CAST(NULL AS TIMESTAMP) "
        "AS __deliverAt UNION ALL SELECT NULL, 'k', NULL, NULL, TIMESTAMP '2013-01-01 00:00:00'"
    )
    writer = frame.coalesce(1).write.format("pulsar").option("service.url", broker.url).option("topic", topic)
    writer.mode("append").save()
    rows = {row.value: row for row in load(metadata="all").collect()}
    assert (rows["a"]["__partition"], bytes(rows["a"]["__orderingKey"])) == (1, b"o")
    assert rows[None]["__partition"] == java_string_hash("k") % PARTITIONS
    assert rows[None]["__orderingKey"] is None
    with pytest.raises(Exception, match=r"'__partition' is 2; .* has partitions 0 to 1"):
        spark.sql("SELECT 'a' AS value, 2 AS __partition").write.format("pulsar").option(
            "service.url", broker.url
        ).option("topic", topic).mode("append").save()


def test_a_batch_write_with_an_identity_is_kept_once(
    spark: Any, broker: LiveBroker, topic: str, load: Make, fill: Make
) -> None:
    for version in ("1", "1", "2", "2"):
        fill(0, 100, txnAppId="nightly", txnVersion=version)
    assert numbers(load()) == sorted([*range(100), *range(100)])
    with pytest.raises(Exception, match="an earlier attempt of micro-batch 2 has stored rows"):
        fill(1, 101, txnAppId="nightly", txnVersion="2")
    with pytest.raises(Exception, match="needs 'txnAppId' and 'txnVersion'"):
        fill(0, 1, delivery="effectively-once")


def test_a_shuffle_is_staged(
    spark: Any, fill: Make, stream: Make, broker: LiveBroker, topic: str, tmp_path: Path
) -> None:
    """The micro-batch fails after it was sent in part; its repetition has another layout and is sent from the files."""
    target = f"{topic}-staged"
    fill(0, 500)
    send = staged(str(tmp_path / "stage"), {"service.url": broker.url, "topic": target})
    calls = []

    def write(batch: Any, number: int) -> None:
        calls.append(number)
        shuffled = batch.repartition(3 if len(calls) == 1 else 1).selectExpr("value", "value AS __key")
        send(shuffled, number)
        if len(calls) == 1:
            raise RuntimeError("on purpose")

    with pytest.raises(Exception, match="on purpose"):
        run(stream(startingOffsets="earliest"), tmp_path, write)
    run(stream(startingOffsets="earliest"), tmp_path, write)
    assert calls[:2] == [0, 0]
    reader = spark.read.format("pulsar").option("service.url", broker.url).option("topic", target)
    assert numbers(reader.option("value", "string").load()) == list(range(500))


def test_updates_are_appended_to_a_topic(
    spark: Any, fill: Make, stream: Make, broker: LiveBroker, topic: str, tmp_path: Path
) -> None:
    """The rows of each micro-batch that have changed are appended once, also if Spark repeats it."""
    target = f"{topic}-updates"

    def count() -> None:
        numbers = stream(startingOffsets="earliest").selectExpr("int(value) % 3 AS k")
        counted = numbers.groupBy("k").count().selectExpr("string(k) AS __key", "string(count) AS value")
        writer = counted.writeStream.format("pulsar").option("service.url", broker.url).option("topic", target)
        writer = writer.option("staging", str(tmp_path / "stage")).option("checkpointLocation", str(tmp_path / "work"))
        assert writer.outputMode("update").trigger(availableNow=True).start().awaitTermination(60)

    def rows() -> list[tuple[str, str]]:
        reader = spark.read.format("pulsar").option("service.url", broker.url).option("topic", target)
        found = reader.option("value", "string").option("metadata", "__key").load().collect()
        return sorted((bytes(row["__key"]).decode(), row.value) for row in found)

    fill(0, 6)
    count()
    assert rows() == [("0", "2"), ("1", "2"), ("2", "2")]
    fill(6, 7)
    count()
    expected = [("0", "2"), ("0", "3"), ("1", "2"), ("2", "2")]
    assert rows() == expected
    last = max(int(path.name) for path in (tmp_path / "work" / "commits").iterdir() if path.name.isdecimal())
    for name in (f"{last}", f".{last}.crc"):
        (tmp_path / "work" / "commits" / name).unlink()
    count()
    assert rows() == expected


def test_without_deduplication_the_way_out_is_named(
    spark: Any, fill: Make, topic: str, broker: LiveBroker, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with live_broker(tmp_path_factory.mktemp("plain")) as plain:
        writer = spark.sql("SELECT 'a' AS value").write.format("pulsar").option("service.url", plain.url)
        with pytest.raises(Exception, match="set-deduplication --enable public/default"):
            writer.options(topic="t", txnAppId="a", txnVersion="1").mode("append").save()
