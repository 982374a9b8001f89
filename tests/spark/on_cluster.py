"""A driver on a standalone cluster: the demo's job on a slice of its data, and a stream from topic to topic.

Started by `test_cluster` as a process of its own, since a process has one Spark session. Says what it found.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path
from typing import Any

from examples.demo import flights, run
from rich.console import Console

from magnetar.spark.java.options import option
from magnetar.spark.session import end_session, local_session

FLIGHTS = 2_000
_NAMESPACE = "persistent://public/default"


def run_demo(spark: Any, url: str, directory: Path) -> bool:
    """Topic to delays per hour, compared with the data set."""
    table = flights.load().slice(0, FLIGHTS)
    stage = run.DemoRun(url, f"{_NAMESPACE}/flights", f"{_NAMESPACE}/delays", directory)
    with Console(file=io.StringIO()) as console:
        steps = run.Steps(console)
        with steps.step("publishing") as task:
            run.publish(stage, flights.messages(table), steps, task)
        with steps.step("streaming") as task:
            run.stream(spark, stage, steps, task)
        return run.show(console, flights.expected(table), run.read_back(spark, stage))


def copy(spark: Any, url: str, directory: Path) -> tuple[int, int]:
    """Effectively once from topic to topic, in executors; messages and different ones in the copy."""
    options = {"service.url": url, "topic": f"{_NAMESPACE}/flights"}
    target = {**options, "topic": f"{_NAMESPACE}/copy"}
    stream = spark.readStream.format("pulsar").options(**options, subscription="copy", metadata="__key")
    query = (
        stream.option("startingOffsets", "earliest")
        .load()
        .writeStream.format("pulsar")
        .options(**target, checkpointLocation=str(directory / "copy"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    copied = spark.read.format("pulsar").options(**target, metadata="__producerName,__sequenceId").load()
    return copied.count(), copied.distinct().count()


def processes(directory: Path) -> tuple[int, int]:
    """How many processes of Java workers and executors are, and how many of them have mapped the archive of classes."""
    archive = option().partition("=")[2].split(" ")[0]
    found, mapped = 0, 0
    for one in Path("/proc").glob("[0-9]*"):
        try:
            words = (one / "cmdline").read_text().split("\0")
            worker = "--work-dir" in words and Path(words[words.index("--work-dir") + 1]).is_relative_to(directory)
            executor = words[0].endswith("java") and (one / "cwd").resolve().is_relative_to(directory)
            if not (worker or executor):
                continue
            found += 1
            mapped += archive in (one / "maps").read_text()
        except OSError:
            continue  # another's, or ended meanwhile
    return found, mapped


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("master", "url", "directory"):
        parser.add_argument(f"--{name}", required=True)
    arguments = parser.parse_args()
    directory = Path(arguments.directory)
    settings = {"spark.master": arguments.master, "spark.executor.memory": "512m"}
    spark = local_session("cluster", brief=True, memory="512m", settings=settings)
    found = [f"demo {run_demo(spark, arguments.url, directory)}"]
    found.append("copy {} {}".format(*copy(spark, arguments.url, directory)))
    found.append("processes {}, with the archive {}".format(*processes(directory)))
    found.append(f"executors {spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1}")
    sys.stdout.write("\n".join(found) + "\n")
    end_session(spark)


if __name__ == "__main__":
    main()
