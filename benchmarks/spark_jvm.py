"""Runs the workloads of `benchmarks.spark_rows` with StreamNative's connector on Apache Pulsar, for paired runs.

Runs in an environment of its own, since that connector does not load with today's pyspark: Spark 3.4.1 for Scala 2.13
(PyPI's pyspark 3.4.1 with the jars of Maven's spark-sql_2.13 in place of its own, and jackson-annotations 2.17.2, which
the connector's shaded Jackson wants), the connector built from its sources, Java 17. Nothing of magnetar is imported,
and the topic must be there: `benchmarks.spark_rows --fill URL` makes it.

    OTHER/bin/python benchmarks/spark_jvm.py --jar CONNECTOR.jar --url pulsar://... --admin http://... --workloads read
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
import urllib.request
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

OPENED = ("java.lang", "java.lang.invoke", "java.net", "java.nio", "java.util", "java.util.concurrent", "sun.nio.ch")


class Bench:
    """Workloads of one session."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._number = 0
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        opens = " ".join(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED)
        self._spark = (
            SparkSession.builder.master("local[2]")
            .config("spark.jars", options.jar)
            .config("spark.driver.memory", "2g")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.extraJavaOptions", opens)
            .getOrCreate()
        )
        self._spark.sparkContext.setLogLevel("ERROR")

    def _connected(self, one: Any, topic: str) -> Any:
        return (
            one.option("service.url", self._options.url).option("admin.url", self._options.admin).option("topic", topic)
        )

    def _new_topic(self) -> str:
        self._number += 1
        name = f"{self._options.topic}-{os.getpid()}-{self._number}"
        address = f"{self._options.admin}/admin/v2/persistent/public/default/{name}/partitions"
        kind = {"Content-Type": "application/json"}
        urllib.request.urlopen(urllib.request.Request(address, data=b"2", method="PUT", headers=kind))
        return name

    def _stream(self, sink: Callable[[Any], Any], *columns: str) -> None:
        checkpoint = tempfile.mkdtemp()
        loaded = self._connected(self._spark.readStream.format("pulsar"), self._options.topic)
        frame = loaded.option("startingOffsets", "earliest").load()
        writing = (frame.select(*columns) if columns else frame).writeStream.trigger(availableNow=True)
        sink(writing.option("checkpointLocation", checkpoint)).start().awaitTermination()
        shutil.rmtree(checkpoint, ignore_errors=True)

    def read(self) -> None:
        """Batch mode; this connector always gives its six metadata columns."""
        frame = self._connected(self._spark.read.format("pulsar"), self._options.topic).load()
        frame.write.format("noop").mode("overwrite").save()

    def stream_noop(self) -> None:
        """AvailableNow to nowhere."""
        self._stream(lambda writing: writing.format("noop"))

    def stream_parquet(self) -> None:
        """AvailableNow to Parquet files."""
        with tempfile.TemporaryDirectory() as directory:
            self._stream(lambda writing: writing.format("parquet").option("path", directory))

    def stream_topic(self) -> None:
        """AvailableNow to another topic, at least once."""
        target = self._new_topic()
        self._stream(lambda writing: self._connected(writing.format("pulsar"), target), "__key", "value")

    def write(self) -> None:
        """A DataFrame of Spark's own to a topic."""
        target = self._new_topic()
        rows = self._spark.range(0, self._options.rows, 1, 2)
        frame = rows.selectExpr(f"CAST(repeat('x', {self._options.size}) AS BINARY) AS value")
        self._connected(frame.write.format("pulsar").mode("append"), target).save()


WORKLOADS: dict[str, Callable[[Bench], None]] = {
    "read": Bench.read,
    "stream-noop": Bench.stream_noop,
    "stream-parquet": Bench.stream_parquet,
    "stream-topic": Bench.stream_topic,
    "write": Bench.write,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("jar", "url", "admin", "topic"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    options = parser.parse_args()
    bench = Bench(options)
    for name in options.workloads.split(","):
        rates = []
        for _ in range(options.runs):
            begun = time.perf_counter()
            WORKLOADS[name](bench)
            rates.append(options.rows / (time.perf_counter() - begun))
        found = {"who": "jvm", "workload": name, "size": options.size, "cold": rates[0], "warm": max(rates[1:])}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
