"""The clients in alternation against one broker, and a table of medians: ``python -m benchmarks.client.run``.

In each round each client has its turn with each task, in an order that turns from round to round, in a process of its
own. What is received was written before, by ``send_table``, in batches of up to 1,000 messages. Takes less than four
minutes on two cores.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
from tools.servers import magnetar as broker

from benchmarks.report import machine
from magnetar import aio

CLIENTS = ("official", "asyncio", "blocking", "columns")
MESSAGES = {"official": 60_000, "asyncio": 300_000, "blocking": 150_000, "columns": 1_000_000}
"""Of 100 bytes that one turn sends; it receives 300,000, in columns 1,000,000. Of larger messages there are fewer."""
_RECEIVED = 300_000
_LATENCY = 3_000
_PATIENCE = 120


def _one(client: str, task: str, url: str, topic: str, size: int, messages: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.client.workload", client, task, url, topic, str(size), str(messages)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    if done.returncode:
        raise SystemExit(f"{client} {task}: {done.stderr[-800:]}")
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


async def _backlog(url: str, topic: str, size: int, messages: int) -> None:
    async with aio.Client(url) as client:
        shared, first = aio.ConsumerType.Shared, aio.InitialPosition.Earliest
        consumer = await client.subscribe(topic, "s", consumer_type=shared, initial_position=first)
        await consumer.close()
        producer = await client.create_producer(topic, batching_max_allowed_size_in_bytes=1 << 20)
        await producer.send_table(pa.table({"value": pa.array([b"x" * size] * messages)}))


def _share(messages: int, size: int) -> int:
    return messages if size <= 100 else messages // 5


def main() -> None:
    """Run all and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", default=",".join(CLIENTS))
    parser.add_argument("--tasks", default="send,receive,latency")
    parser.add_argument("--sizes", default="100,1024")
    given = parser.parse_args()
    clients, tasks = given.clients.split(","), given.tasks.split(",")
    found: dict[tuple[str, int, str], list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as directory, broker.start(Path(directory)) as server:
        url = server.broker_url
        for turn in range(given.rounds):
            order = clients[turn % len(clients) :] + clients[: turn % len(clients)]
            for task in tasks:
                for size in [int(one) for one in given.sizes.split(",")]:
                    for client in order:
                        if task == "latency" and (client == "columns" or size > 100):
                            continue
                        topic = f"{task}-{size}-{client}-{turn}"
                        messages = _share(MESSAGES[client], size)
                        if task == "receive":
                            messages = _share(MESSAGES[client] if client == "columns" else _RECEIVED, size)
                            asyncio.run(_backlog(url, topic, size, messages))
                        if task == "latency":
                            messages = _LATENCY
                        os.sync()
                        found.setdefault((task, size, client), []).append(
                            _one(client, task, url, topic, size, messages)
                        )
    say = sys.stdout.write
    say(", ".join(f"{name} {value}" for name, value in machine().items()) + "\n\n")
    say("| task | bytes | client | messages/s | CPU µs/message | p50 ms | p99 ms |\n|---|---|---|---|---|---|---|\n")
    for (task, size, client), samples in sorted(found.items(), key=lambda one: (tasks.index(one[0][0]), one[0][1])):
        cells = [
            f"{statistics.median(one[name] for one in samples):,.{digits}f}" if name in samples[0] else ""
            for name, digits in (("rate", 0), ("cpu", 2), ("p50", 2), ("p99", 2))
        ]
        say(f"| {task} | {size} | {client} | {' | '.join(cells)} |\n")


if __name__ == "__main__":
    main()
