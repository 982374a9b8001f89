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
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.client.bulk.checkpoint_subscription import CheckpointSubscription
from magnetar.client.bulk.positions import last_position
from magnetar.client.bulk.range_reader import RangeReader
from magnetar.client.errors import ClientError
from magnetar.client.lookup import Lookup
from magnetar.client.read_position import START
from magnetar.spark.options.sink_options import sink_options
from magnetar.spark.sink.task_sink import Numbering, TaskSink
from tests.spark.pipeline import SHUFFLED, SINKS
from tests.support.columns import Columns
from tests.support.live_broker import LiveBroker

PARTITIONS = 3
KEYS = 61
_CHUNK = 200
_NAMESPACE = "persistent://public/default"
_PATIENCE = 120.0
_LIVES = 3
"""How often a query may end by itself, as it does when the broker is away for too long."""


class Outcome(NamedTuple):
    expected: int
    found: int
    lost: int
    repeated: int
    disordered: int
    """Rows that stand after a later row of their key."""

    def __str__(self) -> str:
        return (
            f"{self.expected} rows: {self.found} in the target, {self.lost} lost, {self.repeated} repeated, "
            f"{self.disordered} out of order"
        )


class Feeder(threading.Thread):
    """Publishes rows in chunks, effectively once itself, until it is stopped."""

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
    """A subscription: a topic without one is trimmed when its ledger ends, as it does with the broker."""
    with Lookup(url) as lookup:
        for partition in range(lookup.partition_count(topic)):
            with CheckpointSubscription(lookup, f"{topic}-partition-{partition}", "keep") as subscription:
                subscription.hold(START)


def count(url: str, topic: str, expected: int) -> Outcome:
    """Read the target without Spark."""
    seen = [0] * expected
    found = disordered = 0
    with Lookup(url) as lookup:
        for partition in range(PARTITIONS):
            name = f"{topic}-partition-{partition}"
            columns = Columns()
            for entries in RangeReader(lookup, name, START, last_position(lookup, name)):
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


class Foreign:
    """A broker that somebody else runs, with deduplication on; topics of our own, made and removed over REST."""

    def __init__(self, url: str, admin: str) -> None:
        self.url = url
        self._topics = f"{admin.rstrip('/')}/admin/v2/persistent/public/default"
        self._made: list[str] = []

    def make(self, topic: str) -> None:
        self._ask("PUT", topic, str(PARTITIONS).encode())
        self._made.append(topic)

    def start(self) -> None:
        """It runs."""

    def end(self, number: int = signal.SIGTERM) -> None:
        """It goes on."""
        if number == signal.SIGKILL:
            raise ValueError("somebody else's broker is not killed: --broker-kills 0")
        while self._made:
            self._ask("DELETE", self._made.pop(), None)

    def _ask(self, method: str, topic: str, body: bytes | None) -> None:
        url = f"{self._topics}/{topic.rpartition('/')[2]}/partitions" + ("?force=true" if body is None else "")
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=30):
            pass


class Experiment:
    """One query through all its lives."""

    def __init__(
        self,
        directory: Path,
        variant: str,
        seed: int,
        say: Callable[[str], None],
        foreign: Foreign | None = None,
    ) -> None:
        self.batches = 0
        self.refusal = ""
        """The error with which the variant ``refused`` ended."""
        self._directory = directory
        self._variant = variant
        self._rng = random.Random(seed)
        self._say = say
        self._broker: LiveBroker | Foreign = foreign or LiveBroker(
            directory,
            allowAutoTopicCreationType="partitioned",
            defaultNumPartitions=PARTITIONS,
            brokerDeduplicationEnabled="true",
        )
        suffix = f"{seed}-{os.getpid()}"
        self._source, self._target = f"{_NAMESPACE}/source-{suffix}", f"{_NAMESPACE}/target-{suffix}"
        if foreign is not None:
            foreign.make(self._source)
            foreign.make(self._target)
        self._driver: Driver | None = None
        self._lives = 0

    def run(self, driver_kills: int, broker_kills: int, seconds: float) -> Outcome:
        """Accidents in any order, then to the end of the source."""
        self._broker.start()
        try:
            keep(self._broker.url, self._target)
            feeder = Feeder(self._broker.url, self._source, 0.1)
            feeder.start()
            if self._variant == "refused":
                self._refused()
                return count(self._broker.url, self._target, feeder.finish())
            accidents = ["driver"] * (driver_kills - 1) + ["broker"] * broker_kills
            self._rng.shuffle(accidents)
            for accident in accidents:
                self._batch()
                time.sleep(self._rng.uniform(0.0, 1.5))
                self._accident(accident)
            time.sleep(seconds)
            self._batch()
            self._accident("driver")
            expected = feeder.finish()
            self._finish()
            return count(self._broker.url, self._target, expected)
        finally:
            self._kill_driver()
            self._broker.end()

    def _start(self, *more: str) -> Driver:
        arguments = ["--url", self._broker.url, "--source", self._source, "--target", self._target]
        arguments += ["--variant", self._variant, "--checkpoint", str(self._directory / "checkpoint"), *more]
        if self._variant in SHUFFLED:
            # The number of tasks changes with every life.
            self._lives += 1
            arguments += ["--adaptive", "true" if self._lives % 2 else "false"]
        self._driver = Driver(arguments, self._directory / "driver.log")
        return self._driver

    def _batch(self) -> None:
        """Wait for a micro-batch, starting the query (again) if it has to be."""
        for _ in range(_LIVES):
            driver = self._driver if self._driver is not None else self._start()
            if line := driver.read():
                self._say(line)
                self.batches += 1
                return
            self._say("the driver ended by itself")
            driver.wait()
            self._driver = None
        self._ended()

    def _ended(self) -> None:
        """The query ended by itself too often."""
        if self._variant in ("ours", "staged"):
            raise AssertionError(self._log())

    def _refused(self) -> None:
        driver = self._start()
        assert not driver.read(), "a micro-batch was written"
        driver.wait()
        self._driver = None
        log = (self._directory / "driver.log").read_text()
        self.refusal = next((line for line in log.splitlines() if "UnreplayableError: " in line), "")

    def _accident(self, victim: str) -> None:
        self._say(f"kill the {victim}")
        if victim == "driver":
            self._kill_driver()
            return
        self._broker.end(signal.SIGKILL)
        time.sleep(self._rng.uniform(0.0, 1.0))
        self._broker.start()

    def _finish(self) -> None:
        for _ in range(_LIVES):
            driver = self._start("--finish")
            while line := driver.read():
                self._say(line)
                self.batches += 1
            code, self._driver = driver.wait(), None
            if not code:
                return
        self._ended()

    def _kill_driver(self) -> None:
        if self._driver is not None:
            self._driver.kill()
            self._driver = None

    def _log(self) -> str:
        return (self._directory / "driver.log").read_text()[-4000:]


def say(line: str) -> None:
    """Print the line with the time, at once."""
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {line}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variant", default="ours", choices=list(SINKS))
    parser.add_argument("--url", help="somebody else's broker, which is not killed; with --admin")
    parser.add_argument("--admin", help="its REST address, http://host:port, to make partitioned topics")
    parser.add_argument("--driver-kills", type=int, default=5)
    parser.add_argument("--broker-kills", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0, help="how long to go on after the last accident")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    say(f"seed {arguments.seed}")
    if (arguments.url is None) != (arguments.admin is None) or (arguments.url and arguments.broker_kills):
        parser.error("--url and --admin belong together, and want --broker-kills 0")
    foreign = Foreign(arguments.url, arguments.admin) if arguments.url else None
    with tempfile.TemporaryDirectory() as directory:
        experiment = Experiment(Path(directory), arguments.variant, arguments.seed, say, foreign)
        outcome = experiment.run(arguments.driver_kills, arguments.broker_kills, arguments.seconds)
    say(f"{arguments.variant}, {experiment.batches} micro-batches seen; {outcome}")
    if arguments.variant == "refused":
        say(f"refused: {experiment.refusal or 'no'}")
        sys.exit(not experiment.refusal or bool(outcome.found))
    sys.exit(bool(outcome.lost or outcome.repeated or outcome.disordered))


if __name__ == "__main__":
    main()
