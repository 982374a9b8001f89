"""`make bench-spark`: the rows per second that Spark reads and writes, workload by workload (docs/decisions/010).

One broker, a topic of two partitions, batches of 1,000 messages, `local[2]`, all on this machine. Each workload runs
``--runs`` times in one Spark session; the first is "cold", the best of the others "warm". Who is measured is a name in
`CONNECTORS`: what it takes to name source and sink, so that another connector can stand beside ours.

    make bench-spark ARGS="--rows 2000000 --size 100"
    make bench-spark ARGS="--workloads read,stream-noop --runs 3 --out /tmp/rows.json"
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
from tests.support.live_broker import live_broker

from magnetar.client.bulk.checkpoint_subscription import CheckpointSubscription
from magnetar.client.lookup import Lookup
from magnetar.client.producer import Producer
from magnetar.client.read_position import START
from magnetar.columnar.entries.message_columns import message_columns
from magnetar.columnar.entries.packer import Packer
from magnetar.spark.session import end_session, local_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOPIC = "rows"
STEP = 10_000
EIGHT = "__key,__topic,__messageId,__publishTime,__eventTime,__partition,__sequenceId,__producerName"


@dataclass(frozen=True, slots=True)
class Connector:
    """A connector's name and its options."""

    format: str
    value_only: dict[str, str]
    eight: dict[str, str]

    def stream(self, number: int) -> dict[str, str]:
        """Options of a stream of its own."""
        return {**self.value_only, "subscription": f"bench-{number}", "startingOffsets": "earliest"}


CONNECTORS = {"magnetar": Connector("pulsar", {"metadata": "none"}, {"metadata": EIGHT})}


def fill(url: str, rows: int, size: int, batch: int) -> None:
    """The topic, half of the rows in each partition."""
    values = message_columns(
        pa.array([b"x" * size] * STEP, pa.binary()), pa.array([f"k{n % 100}" for n in range(STEP)])
    )
    with Lookup(url) as lookup:
        lookup.partition_count(TOPIC)
        for partition in range(2):
            name = f"persistent://public/default/{TOPIC}-partition-{partition}"
            with CheckpointSubscription(lookup, name, "keep") as anchor:
                anchor.hold(START)
            with Producer(lookup, name) as producer:
                packer = Packer(producer.name, max_messages=batch, max_bytes=1 << 20)
                for first in range(0, rows // 2, STEP):
                    count = min(STEP, rows // 2 - first)
                    ids = np.arange(first, first + count)
                    for one in packer.pack(int(time.time() * 1000), values, np.arange(count), ids):
                        producer.send(*one)
                producer.flush()


class Bench:
    """Workloads on one broker and one session."""

    def __init__(self, who: Connector, url: str, spark: SparkSession, rows: int, size: int) -> None:
        self._who = who
        self._url = url
        self._spark = spark
        self._rows = rows
        self._size = size
        self._number = 0

    def _read(self, options: dict[str, str]) -> None:
        frame = self._spark.read.format(self._who.format).option("service.url", self._url).option("topic", TOPIC)
        frame.options(**options).load().write.format("noop").mode("overwrite").save()

    def read_value(self) -> None:
        """Batch mode, value only."""
        self._read(self._who.value_only)

    def read_eight(self) -> None:
        """Batch mode, value and eight metadata columns."""
        self._read(self._who.eight)

    def _stream(self, sink: Callable[[Any], Any]) -> None:
        self._number += 1
        frame = self._spark.readStream.format(self._who.format).option("service.url", self._url).option("topic", TOPIC)
        loaded = frame.options(**self._who.stream(self._number)).load()
        with tempfile.TemporaryDirectory() as checkpoint:
            writing = loaded.writeStream.trigger(availableNow=True).option("checkpointLocation", checkpoint)
            query = sink(writing).start()
            query.awaitTermination()

    def stream_noop(self) -> None:
        """AvailableNow to nowhere."""
        self._stream(lambda writing: writing.format("noop"))

    def stream_parquet(self) -> None:
        """AvailableNow to Parquet files."""
        with tempfile.TemporaryDirectory() as directory:
            self._stream(lambda writing: writing.format("parquet").option("path", directory))

    def stream_topic(self) -> None:
        """AvailableNow to another topic, effectively once."""
        target = f"out{self._number}"
        self._stream(
            lambda writing: writing.format(self._who.format).option("service.url", self._url).option("topic", target)
        )

    def write(self) -> None:
        """A DataFrame of Spark's own to a topic."""
        self._number += 1
        frame: DataFrame = self._spark.range(0, self._rows, 1, 2).selectExpr(f"repeat('x', {self._size}) AS value")
        writing = frame.write.format(self._who.format).option("service.url", self._url).mode("append")
        writing.option("topic", f"written{self._number}").option("delivery", "at-least-once").save()


WORKLOADS: dict[str, Callable[[Bench], None]] = {
    "read": Bench.read_value,
    "read-8": Bench.read_eight,
    "stream-noop": Bench.stream_noop,
    "stream-parquet": Bench.stream_parquet,
    "stream-topic": Bench.stream_topic,
    "write": Bench.write,
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--who", default="magnetar", choices=CONNECTORS)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--size", type=int, default=100, help="bytes of a value")
    parser.add_argument("--batch", type=int, default=1_000, help="messages in a batch of the topic")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--workloads", default=",".join(WORKLOADS), help=f"comma list of {', '.join(WORKLOADS)}")
    parser.add_argument("--out", type=Path, help="JSON file")
    parser.add_argument("--fill", metavar="URL", help="only make the topic of the workloads on this broker, and end")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    if options.fill:
        fill(options.fill, options.rows, options.size, options.batch)
        return
    found = []
    settings = {"allowAutoTopicCreationType": "partitioned", "defaultNumPartitions": 2}
    with (
        tempfile.TemporaryDirectory() as directory,
        live_broker(Path(directory), brokerDeduplicationEnabled="true", **settings) as broker,
    ):
        fill(broker.url, options.rows, options.size, options.batch)
        spark = local_session("bench", memory="2g")
        bench = Bench(CONNECTORS[options.who], broker.url, spark, options.rows, options.size)
        try:
            for name in options.workloads.split(","):
                rates = []
                for _ in range(options.runs):
                    begun = time.perf_counter()
                    WORKLOADS[name](bench)
                    rates.append(options.rows / (time.perf_counter() - begun))
                warm = max(rates[1:], default=0.0)
                row = {"who": options.who, "workload": name, "size": options.size, "cold": rates[0], "warm": warm}
                found.append(row)
                print(
                    f"{options.who:10} {name:15} {options.size:5} B  cold {rates[0] / 1e6:6.3f}  "
                    f"warm {warm / 1e6:6.3f} M rows/s  {warm * options.size / 1e6:6.0f} MB/s",
                    flush=True,
                )
        finally:
            end_session(spark)
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
