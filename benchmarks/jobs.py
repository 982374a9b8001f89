"""`python -m benchmarks.jobs`: wall-clock rates and memory of the maintenance jobs, and of reading, on a filled broker.

One broker and one topic: messages of ``--size`` bytes, each an entry of its own or in batches (``--batch``), a tenth
as many keys as messages. Every job runs in a process of its own with a new Spark session (``local[2]``), once: what a
user who types the command waits for. ``job`` is from the plan to the result, ``all`` with Python's and Spark's start.
``compare`` reads the topic as both sides, so twice the entries.

    python -m benchmarks.jobs --messages 2000000 --size 100
    python -m benchmarks.jobs --messages 5000000 --size 1024 --batch 1000 --jobs read,stream,audit,compact,offload
    python -m benchmarks.jobs --messages 2000000 --data DIR      fill DIR once, measure several times
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
from tests.support.live_broker import LiveBroker, free_port

from benchmarks.resident import Watch
from magnetar.client.lookup import Lookup
from magnetar.client.producer import Producer
from magnetar.client.rest import Rest, path_of
from magnetar.columnar.entries.message_columns import message_columns
from magnetar.columnar.entries.packer import Packer
from magnetar.jobs.reader.unit_reader import Access, units
from magnetar.protocol.entries import EntryMetadata, build_entry
from magnetar.spark.session import end_session, local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC = "persistent://public/default/filled"
STEP = 10_000
TIMEOUT = 1800.0


@dataclass(frozen=True, slots=True)
class Where:
    """The broker."""

    url: str
    rest: str
    data: str

    def access(self) -> Access:
        """Sealed ledgers directly, the open one by protocol."""
        return Access(url=self.url, directory=self.data)


# what is measured ------------------------------------------------------------------------------------------------


def audit(spark: SparkSession, where: Where) -> int:
    from magnetar.jobs.verification.audit import audit as look

    found = look(spark, where.access(), units(where.access(), TOPIC, least=2))
    if found.counts:
        raise AssertionError(found.counts)
    return found.messages


def compare(spark: SparkSession, where: Where) -> int:
    from magnetar.jobs.verification.comparison import Side
    from magnetar.jobs.verification.comparison import compare as differences

    side = Side(TOPIC, where.access(), units(where.access(), TOPIC, least=2))
    found = differences(spark, side, side)
    if found.differing:
        raise AssertionError(found)
    return found.messages_a + found.messages_b


def compact(spark: SparkSession, where: Where) -> int:
    from magnetar.jobs.compaction import job as compaction

    plan = compaction.plan(Rest(where.rest), Path(where.data), TOPIC)
    if plan is None:
        raise AssertionError("compacted before: fill again")
    return compaction.compact(spark, plan).messages


def offload(spark: SparkSession, where: Where) -> int:
    from magnetar.jobs import offload as job

    work, left = job.plan(Rest(where.rest), Path(where.data), [TOPIC])
    done = job.offload(spark, work)
    refused = [one for one in [*done, *left] if one.refused]
    if refused or not done:
        raise AssertionError(refused or "offloaded before: fill again")
    return sum(one.info.messages for one in work)


def read(spark: SparkSession, where: Where) -> int:
    frame = spark.read.format("pulsar").option("service.url", where.url).option("topic", TOPIC)
    frame.option("metadata", "none").load().write.format("noop").mode("overwrite").save()
    return -1


def stream(spark: SparkSession, where: Where) -> int:
    """Limited to 64 MB a micro-batch, as a stream that catches up with a backlog should be."""
    frame = spark.readStream.format("pulsar").option("service.url", where.url).option("topic", TOPIC)
    frame = frame.option("subscription", "bench").option("metadata", "none").option("startingOffsets", "earliest")
    frame = frame.option("maxBytesPerTrigger", 64 << 20)
    with tempfile.TemporaryDirectory() as checkpoint:
        writing = frame.load().writeStream.trigger(availableNow=True).option("checkpointLocation", checkpoint)
        writing.format("noop").start().awaitTermination()
    return -1


JOBS: dict[str, Callable[[SparkSession, Where], int]] = {
    "read": read,
    "stream": stream,
    "audit": audit,
    "compare": compare,
    "compact": compact,
    "offload": offload,
}


def run_one(name: str, where: Where, memory: str) -> None:
    """Run it in a process of its own: seconds and messages as JSON, the last line on standard output."""
    begun = time.perf_counter()
    spark = local_session(name, cores=2, memory=memory, brief=name not in ("read", "stream"))
    started = time.perf_counter()
    try:
        messages = JOBS[name](spark, where)
        ended = time.perf_counter()
    finally:
        end_session(spark)
    print(json.dumps({"session": started - begun, "job": ended - started, "messages": messages}), flush=True)


def measured(name: str, where: Where, memory: str) -> dict[str, Any]:
    """Seconds, messages and peaks of memory of one job."""
    command = [sys.executable, "-m", "benchmarks.jobs", "--one", name, "--memory", memory]
    command += ["--where", json.dumps([where.url, where.rest, where.data])]
    begun = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    with Watch(child.pid) as watch:
        out = child.communicate(timeout=TIMEOUT)[0]
    if child.returncode:
        raise SystemExit(f"{name} failed")
    return {
        "name": name,
        **json.loads(out.splitlines()[-1]),
        "all": time.perf_counter() - begun,
        **watch.peaks,
        "cpu": watch.cpu,
    }


# what it is measured on ------------------------------------------------------------------------------------------


def entries_of(messages: int, size: int, batch: int, name: str) -> Iterator[tuple[bytes, int, int, int]]:
    """Yield entries as `Producer.send` takes them. Values are letters that zstd halves; a lone one says its size."""
    keys = max(messages // 10, 1)
    random = np.random.default_rng(7)
    packer = Packer(name, max_messages=batch, max_bytes=1 << 21)
    now = int(time.time() * 1000)
    for first in range(0, messages, STEP):
        count = min(STEP, messages - first)
        letters = random.integers(97, 113, count * size, np.uint8).tobytes()
        if batch > 1:
            ends = pa.py_buffer(np.arange(0, (count + 1) * size, size, dtype=np.int32))
            values = pa.Array.from_buffers(pa.binary(), count, [None, ends, pa.py_buffer(letters)])
            texts = pa.array([f"key-{number % keys}" for number in range(first, first + count)])
            rows = message_columns(values, texts)
            for one in packer.pack(now, rows, np.arange(count), np.arange(first, first + count)):
                yield one.entry, one.messages, one.sequence_id, one.highest_sequence_id
            continue
        for at in range(count):
            number = first + at
            metadata = EntryMetadata(
                name, number, now + number // 100, partition_key=f"key-{number % keys}", uncompressed_size=size
            )
            yield build_entry(metadata, letters[at * size : (at + 1) * size]), 1, number, number


def fill(where: Where, messages: int, size: int, batch: int) -> None:
    """Everything sealed: the topic's last ledger is closed."""
    with Lookup(where.url) as lookup, Producer(lookup, TOPIC) as producer:
        for one in entries_of(messages, size, batch, producer.name):
            producer.send(*one)
        producer.flush()
    Rest(where.rest).ask("PUT", f"{path_of(TOPIC)}/unload")


@contextmanager
def broker(directory: Path) -> Iterator[Where]:
    """Keeps what is published, and has a place to offload to."""
    port = free_port()
    live = LiveBroker(
        directory,
        webServicePort=port,
        defaultRetentionTimeInMinutes=-1,
        defaultRetentionSizeInMB=-1,
        brokerDeleteInactiveTopicsEnabled="false",
        offloadUrl=f"file://{directory}/copies",
    )
    live.start()
    try:
        yield Where(live.url, f"http://127.0.0.1:{port}", str(directory / "data"))
    finally:
        live.end()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=2_000_000)
    parser.add_argument("--size", type=int, default=100, help="bytes of a value")
    parser.add_argument("--batch", type=int, default=1, help="messages in an entry")
    parser.add_argument("--jobs", default="audit,compare,compact,offload", help=f"comma list of {', '.join(JOBS)}")
    parser.add_argument("--memory", default="1g", help="of Spark's Java process")
    parser.add_argument("--data", type=Path, help="a directory that is filled, or was filled before")
    parser.add_argument("--out", type=Path, help="JSON file")
    parser.add_argument("--one", choices=JOBS, help=argparse.SUPPRESS)
    parser.add_argument("--where", help=argparse.SUPPRESS)
    return parser.parse_args()


def show(row: dict[str, Any], messages: int, entries: int) -> None:
    """One line."""
    sides = 2 if row["name"] == "compare" else 1
    if row["messages"] not in (-1, sides * messages):
        raise SystemExit(f"{row['name']} saw {row['messages']} messages of {sides * messages}")
    row["entries"], row["messages"] = sides * entries, sides * messages
    rates = [f"{row[what] / row[span] / 1e6:6.3f}" for span in ("job", "all") for what in ("entries", "messages")]
    print(
        f"{row['name']:8} session {row['session']:5.1f} s  job {row['job']:6.1f} s: {rates[0]} M entries/s, {rates[1]} "
        f"M messages/s  all {row['all']:6.1f} s: {rates[2]}, {rates[3]}  driver {row['driver']:5.0f} MB  "
        f"java {row['java']:5.0f} MB  workers {row['workers']:5.0f} MB  CPU s "
        + ", ".join(f"{kind} {seconds:.1f}" for kind, seconds in row["cpu"].items()),
        flush=True,
    )


def main() -> None:
    options = arguments()
    if options.one:
        run_one(options.one, Where(*json.loads(options.where)), options.memory)
        return
    found = []
    with tempfile.TemporaryDirectory(prefix="magnetar-jobs-") as own:
        directory = options.data or Path(own)
        directory.mkdir(parents=True, exist_ok=True)
        fresh = not (directory / "data").exists()
        with broker(directory) as where:
            if fresh:
                begun = time.perf_counter()
                fill(where, options.messages, options.size, options.batch)
                print(f"filled in {time.perf_counter() - begun:.0f} s", flush=True)
            for name in options.jobs.split(","):
                row = measured(name, where, options.memory)
                show(row, options.messages, -(-options.messages // options.batch))
                found.append({"size": options.size, "batch": options.batch, **row})
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
