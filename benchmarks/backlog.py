"""A large backlog: what it costs to start on it, and to catch up with it (`python -m benchmarks.backlog --gb 5`).

Publishes batches of 100 messages of 1 KB to one topic with a subscription that no client reads, kills the broker with
SIGKILL, starts it again on the same directory (time to the first receipt), then reads and acknowledges everything while
its memory is watched.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import time
from pathlib import Path

from benchmarks.brokers import BROKERS, Broker
from benchmarks.load.connection import Connection
from benchmarks.load.entries import Shape
from benchmarks.load.loop import drive
from benchmarks.load.produce import ProduceLoad
from benchmarks.workloads import Consumers, Meter, Workload, catch_up, fresh_topic, produced, subscribed_once

ENTRY = Shape(message_bytes=1024, batch=100)
WINDOW = 64


def first_receipt(broker: Broker) -> float:
    """Seconds from starting the process to the first receipt of a message."""
    started = time.perf_counter()
    broker.start()
    connection = Connection(broker.address)
    try:
        connection.producer(fresh_topic(), 1)
        load = ProduceLoad(connection, Shape(message_bytes=100), 1, 1)
        connection.start()
        load.start()
        drive([connection], lambda: load.done, lambda: "no receipt")
    finally:
        connection.close()
    return time.perf_counter() - started


def megabytes(size: int) -> str:
    return f"{size / 1e6:.0f} MB"


def measure(directory: Path, gigabytes: float) -> None:
    broker = Broker(BROKERS["magnetar"], directory)
    broker.pausing = False
    print(f"start on an empty directory to first receipt  {first_receipt(broker):.2f} s")
    print(f"resident then, sync process included          {megabytes(broker.resident_bytes())}")
    workload = Workload("backlog", 0, ENTRY, WINDOW, catch_up)
    count = int(gigabytes * 1e9 / ENTRY.payload_bytes)
    topic = fresh_topic()
    subscribed_once(broker.address, topic, workload.subscription)
    started = time.perf_counter()
    produced(workload, broker.address, count, topic, None)
    seconds = time.perf_counter() - started
    print(f"published {gigabytes:g} GB                              {gigabytes * 1e3 / seconds:.0f} MB/s")
    for pid in broker.pids():
        os.kill(pid, signal.SIGKILL)
    broker.stop()
    broker = Broker(BROKERS["magnetar"], directory)
    broker.pausing = False
    print(f"start after SIGKILL to first receipt          {first_receipt(broker):.2f} s")
    broker.reset_peak()
    meter = Meter()
    consumers = Consumers(workload, broker.address, count, topic)
    try:
        meter.start()
        for load in consumers.loads:
            load.start()
        arrivals = consumers.arrivals
        drive(consumers.connections, lambda: arrivals.done, lambda: f"{arrivals.count} of {count} messages")
        consumers.settle([])
        meter.stop()
    finally:
        consumers.close()
    print(f"caught up                                     {gigabytes * 1e3 / meter.seconds:.0f} MB/s")
    print(f"highest resident while catching up            {megabytes(broker.peak_bytes())}")
    broker.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gb", type=float, default=5.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="magnetar-backlog-") as folder:
        measure(Path(folder), given.gb)


if __name__ == "__main__":
    main()
