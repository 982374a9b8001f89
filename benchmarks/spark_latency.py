"""Latency from publishing to a row in the sink's topic, through a stream with trigger 0 s, at a steady 20 messages a
second.

Each message carries when it was sent; a consumer on the sink's topic notes when it came. The first seconds are left
out: the query is warming up.

    python -m benchmarks.spark_latency --seconds 30 --rate 20
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pulsar  # type: ignore[import-untyped]  # publishes no types
from tests.support.live_broker import live_broker

from magnetar.spark.session import end_session, local_session

WARM_UP = 25.0
PATIENCE_MS = 5_000


def publish(client: pulsar.Client, rate: float, until: float) -> None:
    """One message at a time, each acknowledged by the broker on its own."""
    producer = client.create_producer("in", batching_enabled=False)
    due = time.time()
    while due < until:
        time.sleep(max(due - time.time(), 0))
        producer.send_async(repr(time.time()).encode(), lambda *_: None)
        due += 1 / rate
    producer.flush()


def receive(consumer: pulsar.Consumer, since: float, found: list[float], sent_all: threading.Event) -> None:
    """Seconds that each message took, for those sent after ``since``; ends when no more are to come."""
    while True:
        try:
            message = consumer.receive(PATIENCE_MS)
        except pulsar.Timeout:
            if sent_all.is_set():
                return
            continue
        now, sent = time.time(), float(message.data())
        if sent > since:
            found.append(now - sent)
        consumer.acknowledge(message)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rate", type=float, default=20.0, help="messages per second")
    options = parser.parse_args()
    settings = {"allowAutoTopicCreationType": "partitioned", "defaultNumPartitions": 2}
    with (
        tempfile.TemporaryDirectory() as directory,
        live_broker(Path(directory), brokerDeduplicationEnabled="true", **settings) as broker,
    ):
        spark = local_session("latency", memory="1g")
        client = pulsar.Client(broker.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
        consumer = client.subscribe("out", "bench")
        source = spark.readStream.format("pulsar").option("service.url", broker.url).option("topic", "in")
        query = (
            source.options(subscription="bench", startingOffsets="earliest", metadata="none")
            .load()
            .writeStream.format("pulsar")
            .option("service.url", broker.url)
            .option("topic", "out")
            .option("checkpointLocation", f"{directory}/checkpoint")
            .trigger(processingTime="0 seconds")
            .start()
        )
        found: list[float] = []
        sent_all = threading.Event()
        since = time.time() + WARM_UP
        receiving = threading.Thread(target=receive, args=(consumer, since, found, sent_all))
        receiving.start()
        publish(client, options.rate, since + options.seconds)
        sent_all.set()
        receiving.join()
        batches = [one.durationMs["triggerExecution"] for one in query.recentProgress if one.numInputRows]
        query.stop()
        client.close()
        end_session(spark)
    half, nine, most = np.percentile(np.array(found) * 1000, [50, 90, 99]).tolist()
    print(f"{len(found)} messages at {options.rate:g}/s: p50 {half:.0f} ms, p90 {nine:.0f} ms, p99 {most:.0f} ms")
    print(f"micro-batches with rows, the last {len(batches)}: p50 {np.percentile(batches, 50):.0f} ms")


if __name__ == "__main__":
    main()
