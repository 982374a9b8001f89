"""Two partitions with a watermark: what is admitted by publish time is not dropped as late.

The wrong variant has the same messages with publish times that say nothing, so that admission takes one partition after
the other; it shows that the harness sees what alignment is for.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from magnetar.client.lookup import Lookup
from magnetar.client.producer import Producer
from magnetar.spark.progress import SourceProgress, watch
from tests.support.batch_writer import BatchWriter
from tests.support.live_broker import LiveBroker

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
SECONDS = 100
START_MS = 1_700_000_000_000


def publish(url: str, topic: str, *, telling: bool) -> None:
    """One message a second in both partitions; ``telling``: published when they happened."""
    for partition in range(2):
        with Lookup(url, timeout=10) as lookup:
            lookup.partition_count(topic, create=True)
            with Producer(lookup, f"{topic}-partition-{partition}") as producer:
                writer = BatchWriter(producer.name, max_messages=1)
                for second in range(SECONDS):
                    at = START_MS + second * 1000
                    for packed in writer.pack(at if telling else START_MS, [b"x"], [second], event_times=[at]):
                        producer.send(*packed)
                producer.flush()


@pytest.mark.parametrize(("telling", "all_counted"), [(True, True), (False, False)])
def test_rows_of_a_lagging_partition_are_not_dropped_as_late(
    spark: Any, broker: LiveBroker, tmp_path: Path, telling: bool, all_counted: bool
) -> None:
    topic = f"persistent://public/default/skewed-{telling}"
    publish(broker.url, topic, telling=telling)
    options = {"service.url": broker.url, "topic": topic, "subscription": "s", "startingOffsets": "earliest"}
    rows = spark.readStream.format("pulsar").options(**options, metadata="__eventTime", maxMessagesPerTrigger="70")
    windows = rows.load().withWatermark("__eventTime", "20 seconds").groupBy("__eventTime").count()
    counted: dict[Any, int] = {}

    def keep(batch: Any, number: int) -> None:
        counted.update({row["__eventTime"]: row["count"] for row in batch.collect()})

    reported: list[SourceProgress] = []
    listener = watch(spark, reported.append)
    query = (
        windows.writeStream.outputMode("update")
        .foreachBatch(keep)
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(120)
    assert query.exception() is None
    # Listeners hear of a micro-batch some time after it.
    deadline = time.monotonic() + 20
    while sum(one.rows for one in reported) < 2 * SECONDS and time.monotonic() < deadline:
        time.sleep(0.05)
    spark.streams.removeListener(listener)
    assert sum(one.rows for one in reported) == 2 * SECONDS
    assert [len(one.topics) for one in reported] == [2] * len(reported)
    assert (bool(reported[0].behind), reported[-1].behind) == (True, ())
    assert (sum(counted.values()) == 2 * SECONDS) == all_counted
    dropped = sum(one["numRowsDroppedByWatermark"] for p in query.recentProgress for one in p["stateOperators"])
    assert (dropped == 0) == all_counted
