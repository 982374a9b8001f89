"""Effectively once, counted: rows go from topic to topic through real Spark while everything fails.

``make once ARGS="--driver-kills 5 --broker-kills 3"`` or ``python -m tests.spark.rounds``. A feeder publishes numbered
rows all the time; a quarter of the task attempts fail (`pipeline`); the driver and its Java process get SIGKILL, the
broker gets SIGKILL and starts again. In the end the target is read and every row counted: lost, repeated, and rows of
one key that stand in another order than they were published. Exit 1 unless all three are 0.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.client.anchor import Anchor
from magnetar.client.errors import ClientError
from magnetar.client.lookup import Lookup
from magnetar.client.place import START
from magnetar.client.reader import RangeReader, last_place
from magnetar.protocol.columns import Columns
from magnetar.spark.options import sink_options
from magnetar.spark.publish import Numbering, TaskSink
from tests.live_broker import LiveBroker

PARTITIONS = 3
KEYS = 61
_CHUNK = 400
_NAMESPACE = "persistent://public/default"
_PATIENCE = 120.0


class Outcome(NamedTuple):
    expected: int
    found: int
    lost: int
    repeated: int
    disordered: int
    """Rows that stand behind a later row of their key."""

    def __str__(self) -> str:
        return (
            f"{self.expected} rows: {self.found} in the target, {self.lost} lost, {self.repeated} repeated, "
            f"{self.disordered} out of order"
        )


class Feeder(threading.Thread):
    """Publishes rows in chunks, effectively once itself, until told to stop."""

    def __init__(self, url: str, topic: str, pause: float) -> None:
        super().__init__(daemon=True)
        self._options = sink_options({"service.url": url, "topic": topic, "operationTimeoutMs": "2000"})
        self._pause = pause
        self._ended = threading.Event()
        self.rows = 0

    def run(self) -> None:
        number = 0
        while not self._ended.wait(self._pause):
            ids = range(self.rows, self.rows + _CHUNK)
            batch = pa.RecordBatch.from_pydict({"value": list(map(str, ids)), "__key": [f"k{i % KEYS}" for i in ids]})
            while True:
                try:
                    TaskSink(self._options, Numbering("feeder", number)).run(iter([batch]))
                    break
                except ClientError:
                    time.sleep(0.1)
            self.rows += _CHUNK
            number += 1

    def finish(self) -> int:
        """How many rows there are now, and will be."""
        self._ended.set()
        self.join()
        return self.rows


class Driver:
    """One life of the query."""

    def __init__(self, arguments: list[str], log: Path) -> None:
        self._log = log.open("a")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.pipeline", *arguments],
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            cwd=Path(__file__).parents[2],
            start_new_session=True,
        )

    def read(self) -> str:
        """Its next line, empty when it has ended."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def kill(self) -> None:
        """Python and Java at once."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self.wait()

    def wait(self) -> int:
        assert self._process.stdout is not None
        code = self._process.wait(_PATIENCE)
        self._process.stdout.close()
        self._log.close()
        return code


def keep(url: str, topic: str) -> None:
    """A subscription: a topic that nobody reads is trimmed when its ledger ends, as it does with the broker."""
    with Lookup(url) as lookup:
        for partition in range(lookup.partition_count(topic)):
            with Anchor(lookup, f"{topic}-partition-{partition}", "keep") as anchor:
                anchor.hold(START)


def count(url: str, topic: str, expected: int) -> Outcome:
    """Read the target without Spark."""
    seen = [0] * expected
    found = disordered = 0
    with Lookup(url) as lookup:
        for partition in range(PARTITIONS):
            name = f"{topic}-partition-{partition}"
            columns = Columns()
            for entries in RangeReader(lookup, name, START, last_place(lookup, name)):
                for entry in entries:
                    columns.add(*entry)
            latest: dict[Any, int] = {}
            for value, key in zip(columns.values, columns.keys, strict=True):
                assert value is not None
                row = int(value)
                found += 1
                disordered += not seen[row] and row < latest.get(key, -1)
                latest[key] = max(row, latest.get(key, -1))
                seen[row] += 1
    lost = sum(not times for times in seen)
    return Outcome(expected, found, lost, found - (expected - lost), disordered)


def _standing(directory: Path) -> LiveBroker:
    """A broker with deduplication, which is what the sink builds on."""
    broker = LiveBroker(
        directory,
        allowAutoTopicCreationType="partitioned",
        defaultNumPartitions=PARTITIONS,
        brokerDeduplicationEnabled="true",
    )
    broker.start()
    return broker


def play(
    directory: Path,
    *,
    variant: str,
    driver_kills: int,
    broker_kills: int,
    seed: int,
    seconds: float = 0.0,
    say: Callable[[str], None] = lambda _: None,
) -> tuple[Outcome, int]:
    """One experiment; what came of it and how many micro-batches were seen."""
    rng = random.Random(seed)
    broker = _standing(directory)
    source, target = f"{_NAMESPACE}/source", f"{_NAMESPACE}/target"
    arguments = ["--url", broker.url, "--source", source, "--target", target, "--variant", variant]
    arguments += ["--checkpoint", str(directory / "checkpoint")]
    keep(broker.url, target)
    feeder = Feeder(broker.url, source, 0.1)
    batches = 0
    driver: Driver | None = None
    try:
        feeder.start()
        accidents = ["driver"] * (driver_kills - 1) + ["broker"] * broker_kills
        rng.shuffle(accidents)
        while accidents:
            driver = driver if driver is not None else Driver(arguments, directory / "driver.log")
            line = driver.read()
            if not line:
                say("the driver ended")
                driver.wait()
                driver = None
                if variant == "ours" and not broker_kills:
                    raise AssertionError((directory / "driver.log").read_text()[-4000:])
                continue
            batches += 1
            say(line)
            time.sleep(rng.uniform(0.0, 1.5))
            accident = accidents.pop()
            say(f"kill the {accident}")
            if accident == "driver":
                driver.kill()
                driver = None
            else:
                broker.end(signal.SIGKILL)
                time.sleep(rng.uniform(0.0, 1.0))
                broker.start()
        time.sleep(seconds)
        driver = driver if driver is not None else Driver(arguments, directory / "driver.log")
        driver.read()
        say("kill the driver for the last time")
        driver.kill()
        expected = feeder.finish()
        for _ in range(3):
            driver = Driver([*arguments, "--finish"], directory / "driver.log")
            while line := driver.read():
                say(line)
                batches += line.startswith("batch")
            code, driver = driver.wait(), None
            if not code:
                break
        else:
            if variant == "ours":
                raise AssertionError((directory / "driver.log").read_text()[-4000:])
        return count(broker.url, target, expected), batches
    finally:
        if driver is not None:
            driver.kill()
        broker.end()


def say(line: str) -> None:
    """With the time, at once."""
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {line}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variant", default="ours", choices=["ours", "random-names", "no-resume"])
    parser.add_argument("--driver-kills", type=int, default=5)
    parser.add_argument("--broker-kills", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0, help="how long to go on after the last accident")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    say(f"seed {arguments.seed}")
    with tempfile.TemporaryDirectory() as directory:
        outcome, batches = play(
            Path(directory),
            variant=arguments.variant,
            driver_kills=arguments.driver_kills,
            broker_kills=arguments.broker_kills,
            seed=arguments.seed,
            seconds=arguments.seconds,
            say=say,
        )
    say(f"{arguments.variant}, {batches} micro-batches seen; {outcome}")
    sys.exit(bool(outcome.lost or outcome.repeated or outcome.disordered))


if __name__ == "__main__":
    main()
