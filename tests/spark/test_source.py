"""``format("pulsar")`` as a source on real Spark against a real broker."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from magnetar.client.bulk.checkpoint_subscription import CheckpointSubscription
from magnetar.client.lookup import Lookup
from magnetar.client.read_position import ReadPosition
from magnetar.model.errors import InvalidValueError
from tests.spark.conftest import PARTITIONS
from tests.spark.numbered_topic import Make, numbers, run
from tests.support.live_broker import LiveBroker

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
    after = {int(row.value) for row in rows if (row["__entryId"], row["__batchIndex"]) >= (2, 4)}
    before = {int(row.value) for row in rows} - after
    first = f"{topic}-partition-0"
    assert set(numbers(load(startingOffsets=f'{{"{first}": "{border}"}}'))) == set(range(200)) - before
    assert set(numbers(load(endingOffsets=f'{{"{first}": "{border}"}}'))) == set(range(200)) - after


def test_a_batch_read_that_reaches_a_topic_twice_gives_each_row_once(
    spark: Any, broker: LiveBroker, fill: Make, topic: str
) -> None:
    """As a stream with the same options does, which knows topics by name."""
    fill(0, 20)
    local = topic.rpartition("/")[2]
    reader = spark.read.format("pulsar").option("service.url", broker.url).option("value", "string")
    assert numbers(reader.option("topics", f"{topic},{local},{local}-partition-1").load()) == list(range(20))


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
                with CheckpointSubscription(lookup, f"{topic}-partition-{index}", "spark") as subscription:
                    found.append(subscription.hold(None))
            return found

    fill(0, 40)
    run(stream(startingOffsets="earliest"), tmp_path, write)
    after_first = stands()
    fill(40, 80)
    run(stream(startingOffsets="earliest"), tmp_path, write)
    assert all(now > then for now, then in zip(stands(), after_first, strict=True))


def test_a_stream_needs_a_subscription(spark: Any, stream: Make, broker: LiveBroker, topic: str) -> None:
    """`load` raises it, in this process, without a trace of Java's."""
    with pytest.raises(InvalidValueError, match=r"^option 'subscription' is missing"):
        stream(subscription="")
    reader = spark.readStream.format("pulsar").option("service.url", broker.url).option("topic", topic)
    with pytest.raises(InvalidValueError, match="'startingOfsets' is not known; did you mean 'startingOffsets'"):
        reader.option("subscription", "s").option("startingOfsets", "earliest").load()


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
            with CheckpointSubscription(lookup, name, "spark") as subscription:
                assert subscription.hold(None) == subscription.last()


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
