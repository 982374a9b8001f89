"""A broker that goes away in the middle of a query; a producer name that another task holds."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pytest

from magnetar.client.bulk.checkpoint_subscription import CheckpointSubscription
from magnetar.client.errors import RefusedError
from magnetar.client.lookup import Lookup
from magnetar.client.producer import Producer
from magnetar.client.read_position import START
from magnetar.spark.options.sink_options import sink_options
from magnetar.spark.sink.task_sink import Numbering, TaskSink
from tests.support.live_broker import LiveBroker, live_broker

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
_NAMESPACE = "persistent://public/default"
_FIRST = [pa.RecordBatch.from_pydict({"value": [str(number) for number in range(100)]})]
_SECOND = [pa.RecordBatch.from_pydict({"value": [str(number) for number in range(100, 200)]})]


def test_a_query_waits_for_its_broker_then_fails_with_the_cause_and_goes_on_later(spark: Any, tmp_path: Path) -> None:
    with live_broker(tmp_path, brokerDeduplicationEnabled="true") as broker:
        options = {"service.url": broker.url, "topic": f"{_NAMESPACE}/t"}

        def start(patience_ms: int = 60_000) -> Any:
            given = {**options, "operationTimeoutMs": str(patience_ms)}
            stream = spark.readStream.format("pulsar").options(**given, subscription="s", metadata="none")
            writer = stream.option("startingOffsets", "earliest").load().writeStream.format("pulsar")
            target = {**given, "topic": f"{_NAMESPACE}/copy"}
            return writer.options(**target, checkpointLocation=str(tmp_path / "checkpoint")).start()

        def publish(batches: list[Any]) -> None:
            TaskSink(sink_options(options), None).run(iter(batches))

        def copied() -> list[int]:
            frame = spark.read.format("pulsar").options(**{**options, "topic": f"{_NAMESPACE}/copy"})
            return sorted(int(bytes(row.value)) for row in frame.option("metadata", "none").load().collect())

        with Lookup(broker.url) as lookup, CheckpointSubscription(lookup, f"{_NAMESPACE}/copy", "keep") as subscription:
            subscription.hold(START)  # a topic without a subscription is trimmed when its broker ends
        publish(_FIRST)
        query = start()
        query.processAllAvailable()
        # Away for less than operationTimeoutMs: nothing is noticed.
        broker.end()
        time.sleep(0.5)
        broker.start()
        publish(_SECOND)
        query.processAllAvailable()
        query.stop()
        assert copied() == list(range(200))
        query = start(1_000)
        query.processAllAvailable()
        broker.end()
        with pytest.raises(Exception, match=r"ConnectionLostError: .*127\.0\.0\.1"):
            query.awaitTermination(60)
        broker.start()
        publish(_FIRST)
        query = start()
        query.processAllAvailable()
        query.stop()
        assert copied() == sorted([*range(200), *range(100)])


def test_an_attempt_waits_for_a_living_one_and_takes_over_from_a_dead_one(broker: LiveBroker) -> None:
    """Dead: a connection that stays open and gives no sign of life, as that of a machine that is gone."""
    topic = f"{_NAMESPACE}/busy-partition-0"
    given = {"service.url": broker.url, "topic": topic}
    numbering = Numbering("spark.q.0", 0)
    ended = threading.Event()
    with Lookup(broker.url) as lookup, Producer(lookup, topic, "spark.q.0") as zombie:

        def live() -> None:
            while not ended.wait(0.01):
                zombie._connection.receive(0.05)

        living = threading.Thread(target=live)
        living.start()
        hasty = sink_options({**given, "operationTimeoutMs": "2000"})
        with pytest.raises(RefusedError, match=r"ProducerBusy.*another attempt of this task still writes"):
            TaskSink(hasty, numbering).run(iter(_FIRST))
        ended.set()
        living.join()
        assert TaskSink(sink_options(given), numbering).run(iter(_FIRST)).messages == 100
