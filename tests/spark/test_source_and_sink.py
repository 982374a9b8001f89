"""``format("pulsar")`` on real Spark against a real broker."""

from __future__ import annotations

import datetime as dt
import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from magnetar.client.bulk.checkpoint_subscription import CheckpointSubscription
from magnetar.client.lookup import Lookup
from magnetar.client.read_position import ReadPosition
from magnetar.model.errors import InvalidValueError
from magnetar.model.hashing import java_string_hash
from magnetar.spark.sink.foreach_batch import staged
from magnetar.spark.sink.sequence_ids import SequenceId
from tests.spark.conftest import PARTITIONS
from tests.support.live_broker import LiveBroker, live_broker

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
NUMBERS = itertools.count()


@pytest.fixture
def topic() -> str:
    return f"persistent://public/default/spark-{next(NUMBERS)}"


Make = Callable[..., Any]


@pytest.fixture
def fill(spark: Any, broker: LiveBroker, topic: str) -> Make:
    """Publish numbers as values and keys, through the batch sink."""

    def fill(first: int, last: int, **options: str) -> None:
        frame = spark.range(first, last).selectExpr(
            "CAST(id AS STRING) AS value", "CONCAT('k', id % 7) AS __key", "TIMESTAMP_SECONDS(id + 1) AS __eventTime"
        )
        writer = frame.write.format("pulsar").option("service.url", broker.url).option("topic", topic)
        writer.options(**options).mode("append").save()

    return fill


@pytest.fixture
def load(spark: Any, broker: LiveBroker, topic: str) -> Make:
    def load(**options: str) -> Any:
        reader = spark.read.format("pulsar").option("service.url", broker.url).option("topic", topic)
        return reader.options(**{"value": "string", **options}).load()

    return load


def numbers(frame: Any) -> list[int]:
    return sorted(int(row.value) for row in frame.select("value").collect())


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


@pytest.mark.parametrize("kind", ["NONE", "ZSTD"])
def test_batch_reads_by_offsets(fill: Make, load: Make, topic: str, kind: str) -> None:
    options = {"pulsar.producer.compressionType": kind, "pulsar.producer.batchingMaxMessages": "10"}
    fill(0, 200, **options)
    frame = load(metadata="__partition,__ledgerId,__entryId,__batchIndex")
    assert numbers(frame) == list(range(200))
    assert frame.rdd.getNumPartitions() == PARTITIONS
    assert numbers(load(minPartitions="5")) == list(range(200))
    assert load(minPartitions="5").rdd.getNumPartitions() == 5
    assert load(maxPartitions="1").rdd.getNumPartitions() == 1
    assert numbers(load(startingOffsets="latest")) == []
    # From the middle of a batch on one partition, and all of the other.
    rows = [row for row in frame.collect() if row["__partition"] == 0]
    middle = next(row for row in rows if (row["__entryId"], row["__batchIndex"]) == (2, 4))
    border = f"{middle['__ledgerId']}:2:4"
    behind = {int(row.value) for row in rows if (row["__entryId"], row["__batchIndex"]) >= (2, 4)}
    before = {int(row.value) for row in rows} - behind
    first = f"{topic}-partition-0"
    assert set(numbers(load(startingOffsets=f'{{"{first}": "{border}"}}'))) == set(range(200)) - before
    assert set(numbers(load(endingOffsets=f'{{"{first}": "{border}"}}'))) == set(range(200)) - behind


def test_mistakes_are_explained(spark: Any, broker: LiveBroker, topic: str, load: Make, fill: Make) -> None:
    with pytest.raises(Exception, match="did you mean 'startingOffsets'"):
        load(startingOffset="earliest")
    with pytest.raises(Exception, match="column 'id' is none of"):
        spark.range(1).selectExpr("id", "'x' AS value").write.format("pulsar").option("service.url", broker.url).option(
            "topic", topic
        ).mode("append").save()
    fill(0, 1)
    with pytest.raises(Exception, match="cannot be overwritten"):
        spark.sql("SELECT 'x' AS value").write.format("pulsar").option("service.url", broker.url).option(
            "topic", topic
        ).mode("overwrite").save()


@pytest.fixture
def stream(spark: Any, broker: LiveBroker, topic: str) -> Make:
    def stream(**options: str) -> Any:
        reader = spark.readStream.format("pulsar").option("service.url", broker.url).option("topic", topic)
        return reader.options(**{"value": "string", "subscription": "spark", "metadata": "none", **options}).load()

    return stream


def run(frame: Any, directory: Path, write: Callable[[Any, int], None]) -> Any:
    query = (
        frame.writeStream.foreachBatch(write)
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(120)
    return query


def test_stream_reads_each_message_once_over_restarts(fill: Make, stream: Make, tmp_path: Path) -> None:
    got: list[tuple[int, list[int]]] = []

    def write(batch: Any, number: int) -> None:
        got.append((number, numbers(batch)))

    fill(0, 50)
    first = run(stream(startingOffsets="earliest"), tmp_path, write)
    assert first.lastProgress.numInputRows == 50
    fill(50, 80)
    run(stream(startingOffsets="earliest"), tmp_path, write)
    run(stream(startingOffsets="earliest"), tmp_path, write)
    assert [batch for batch in got if batch[1]] == [(0, list(range(50))), (1, list(range(50, 80)))]


def test_nothing_is_lost_when_the_first_batch_fails_and_the_topic_grows(
    fill: Make, stream: Make, tmp_path: Path
) -> None:
    """Batch 0's start is asked for again; an answer that moved with the head would lose 100 to 109."""
    got: list[int] = []

    def fail(batch: Any, number: int) -> None:
        raise RuntimeError("on purpose")

    def write(batch: Any, number: int) -> None:
        got.extend(numbers(batch))

    fill(0, 100)
    # The stream starts at the end: its subscription is made here, with nothing to read yet.
    assert run(stream(startingOffsets="latest"), tmp_path / "none", write).exception() is None
    assert got == []
    fill(100, 110)
    with pytest.raises(Exception, match="on purpose"):
        run(stream(startingOffsets="latest"), tmp_path, fail)
    fill(110, 120)
    run(stream(startingOffsets="latest"), tmp_path, write)
    assert sorted(got) == list(range(100, 120))


def test_the_subscription_follows_what_was_committed(
    fill: Make, stream: Make, broker: LiveBroker, topic: str, tmp_path: Path
) -> None:
    def write(batch: Any, number: int) -> None:
        batch.count()

    def stands() -> list[ReadPosition]:
        with Lookup(broker.url) as lookup:
            found = []
            for index in range(PARTITIONS):
                with CheckpointSubscription(lookup, f"{topic}-partition-{index}", "spark") as anchor:
                    found.append(anchor.hold(None))
            return found

    fill(0, 40)
    run(stream(startingOffsets="earliest"), tmp_path, write)
    after_first = stands()
    fill(40, 80)
    run(stream(startingOffsets="earliest"), tmp_path, write)
    assert all(now > then for now, then in zip(stands(), after_first, strict=True))


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
    """Of each micro-batch the rows that have changed, once, also if Spark repeats it."""
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


def test_a_stream_needs_a_subscription(spark: Any, stream: Make, broker: LiveBroker, topic: str) -> None:
    """Told by `load`, in this process, without a trace of Java's."""
    with pytest.raises(InvalidValueError, match=r"^option 'subscription' is missing"):
        stream(subscription="")
    reader = spark.readStream.format("pulsar").option("service.url", broker.url).option("topic", topic)
    with pytest.raises(InvalidValueError, match="'startingOfsets' is not known; did you mean 'startingOffsets'"):
        reader.option("subscription", "s").option("startingOfsets", "earliest").load()


@pytest.fixture(autouse=True)
def no_queries_left(spark: Any) -> Iterator[None]:
    yield
    for query in spark.streams.active:
        query.stop()


def test_limits_are_exact_whatever_the_batches(fill: Make, stream: Make, tmp_path: Path) -> None:
    """Half an entry, then the rest: entries have 100 messages, micro-batches 130; also with AvailableNow."""
    got: list[list[int]] = []
    fill(0, 600, **{"pulsar.producer.batchingMaxMessages": "100"})
    limited = stream(startingOffsets="earliest", maxMessagesPerTrigger="130")
    run(limited, tmp_path, lambda batch, number: got.append(numbers(batch)))
    assert [len(one) for one in got] == [130] * 4 + [80]
    assert sorted(itertools.chain(*got)) == list(range(600))


def test_bytes_are_limited_and_few_messages_wait(spark: Any, fill: Make, stream: Make, tmp_path: Path) -> None:
    got: list[list[int]] = []
    fill(0, 1_000, **{"pulsar.producer.batchingMaxMessages": "50"})
    limited = stream(startingOffsets="earliest", maxBytesPerTrigger="8000")
    run(limited, tmp_path / "bytes", lambda batch, number: got.append(numbers(batch)))
    assert len(got) > 2
    assert sorted(itertools.chain(*got)) == list(range(1_000))
    got.clear()
    waiting = stream(
        startingOffsets="earliest", subscription="waiting", minMessagesPerTrigger="1500", maxTriggerDelayMs="60000"
    )
    query = (
        waiting.writeStream.foreachBatch(lambda batch, number: got.append(numbers(batch)))
        .option("checkpointLocation", str(tmp_path / "waiting"))
        .start()
    )
    query.processAllAvailable()
    assert sum(map(len, got)) == 0
    fill(1_000, 1_600)
    deadline = time.monotonic() + 60
    while not any(got) and time.monotonic() < deadline:
        time.sleep(0.1)
    query.stop()
    assert [one for one in got if one] == [list(range(1_600))]


def test_topics_by_pattern_and_partitions_by_assignment(fill: Make, load: Make, topic: str) -> None:
    fill(0, 100)
    name = topic.rsplit("/", 1)[1]
    everything = load(topic="", topicsPattern=f"public/default/{name}|no-such", metadata="__partition")
    assert numbers(everything) == list(range(100))
    first = load(topic="", assign=f'{{"{topic}": [1]}}', metadata="__partition")
    assert {row["__partition"] for row in first.collect()} == {1}
    with pytest.raises(Exception, match=r"names partition 2 of .*, which has partitions 0 to 1"):
        load(topic="", assign=f'{{"{topic}": [2]}}').count()
    with pytest.raises(Exception, match=f"did you mean {topic}-partition-"):
        load(startingOffsets=f'{{"{topic}-partiton-1": "latest"}}').count()


def test_offsets_by_time(fill: Make, load: Make) -> None:
    fill(0, 10)
    time.sleep(0.05)
    between = int(time.time() * 1000)
    time.sleep(0.05)
    fill(10, 30)
    assert numbers(load(startingTime=str(between))) == list(range(10, 30))
    assert numbers(load(endingTime=str(between))) == list(range(10))


def test_an_idle_query_shows_no_backlog_and_a_batch_read_leaves_nothing(
    fill: Make, stream: Make, load: Make, broker: LiveBroker, topic: str, tmp_path: Path
) -> None:
    fill(0, 40)
    assert len(load().collect()) == 40
    run(stream(startingOffsets="earliest"), tmp_path, lambda batch, number: None)
    with Lookup(broker.url) as lookup:
        for index in range(PARTITIONS):
            name = f"{topic}-partition-{index}"
            with CheckpointSubscription(lookup, name, "spark") as anchor:
                assert anchor.hold(None) == anchor.last()


def test_new_partitions_and_a_topic_that_is_gone(
    spark: Any, broker: LiveBroker, stream: Make, fill: Make, topic: str, tmp_path: Path
) -> None:
    """Offsets of a topic that the source does not find any more are a loss, unless that may be."""
    fill(0, 10)
    got: list[list[int]] = []
    other = f"{topic}-other"
    both = {"topic": "", "topics": f"{topic},{other}", "startingOffsets": "earliest"}
    run(stream(startingOffsets="earliest"), tmp_path, lambda batch, number: got.append(numbers(batch)))
    writer = spark.sql("SELECT '10' AS value").write.format("pulsar").option("service.url", broker.url)
    writer.option("topic", other).mode("append").save()
    # From the same checkpoint, with one topic more: it is read from its beginning.
    run(stream(**both), tmp_path, lambda batch, number: got.append(numbers(batch)))
    assert got == [list(range(10)), [10]]
    with pytest.raises(Exception, match=f"not there any more.*{other}-partition-0 .read up to"):
        run(stream(startingOffsets="earliest"), tmp_path, lambda batch, number: None)
    run(stream(startingOffsets="earliest", failOnDataLoss="false"), tmp_path, lambda batch, number: None)
