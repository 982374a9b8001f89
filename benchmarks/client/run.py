"""The clients in alternation against one broker, and what must show: ``python -m benchmarks.client.run``.

In each round each client has its turn with each task, in an order that turns from round to round, in a process of its
own; then processes that are ready take turns of a second with the latency. What is received was written before, by
``send_table``, in batches of up to 1,000 messages. The table has medians, and ratios of what was measured side by side;
``--json FILE`` keeps every sample. A round takes about two minutes on two cores.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
from tools.servers import magnetar as broker

from benchmarks.client.bars import Key, Sample, table, verdicts
from benchmarks.client.clock import percentile
from benchmarks.report import machine
from magnetar import aio

CLIENTS = ("official", "asyncio", "blocking", "columns")
TASKS = ("send", "send-each", "receive", "latency")
MESSAGES = {"official": 60_000, "asyncio": 300_000, "blocking": 150_000, "columns": 1_000_000}
"""Of 100 bytes that one turn sends; it receives 300,000, in columns 1,000,000. Of larger messages there are fewer."""
_RECEIVED = 300_000
_PATIENCE = 120
_TURN = 1_000
"""Messages in one turn of the latency, which is a second."""


def _one(client: str, task: str, url: str, topic: str, size: int, messages: int) -> Sample:
    command = [sys.executable, "-m", "benchmarks.client.workload", client, task, url, topic, str(size), str(messages)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    if done.returncode:
        raise SystemExit(f"{client} {task}: {done.stderr[-800:]}")
    found: Sample = json.loads(done.stdout.strip().splitlines()[-1])
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


def _throughput(url: str, task: str, size: int, client: str, turn: int) -> Sample:
    topic = f"{task}-{size}-{client}-{turn}"
    messages = _share(MESSAGES[client], size)
    if task == "receive":
        messages = _share(MESSAGES[client] if client == "columns" else _RECEIVED, size)
        asyncio.run(_backlog(url, topic, size, messages))
    os.sync()
    return _one(client, task, url, topic, size, messages)


def _latency(url: str, clients: list[str], turn: int, turns: int) -> dict[str, list[Sample]]:
    """Have the clients take turns, and return a sample of each turn of each."""
    ready: dict[str, subprocess.Popen[str]] = {}
    try:
        for client in clients:
            command = [sys.executable, "-m", "benchmarks.client.latency", client, url, f"latency-{client}-{turn}"]
            ready[client] = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for client in clients:
            _ask(ready[client], None)
        found: dict[str, list[Sample]] = {client: [] for client in clients}
        for number in range(turns):
            at = number % len(clients)
            for client in clients[at:] + clients[:at]:
                found[client].append(_measured(_ask(ready[client], _TURN)))
        return found
    finally:
        for process in ready.values():
            process.communicate(timeout=_PATIENCE)


def _ask(process: subprocess.Popen[str], messages: int | None) -> Any:
    assert process.stdin is not None and process.stdout is not None
    if messages is not None:
        process.stdin.write(f"{messages}\n")
        process.stdin.flush()
    said = process.stdout.readline()
    if not said:
        raise SystemExit(f"a client ended in the middle of the latency: {process.args!r}")
    return json.loads(said)


def _measured(said: dict[str, Any]) -> Sample:
    sent, due = said["sent"], said["due"]
    return {
        "cpu": said["cpu"],
        "p50": percentile(sent, 0.5), "p90": percentile(sent, 0.9), "p99": percentile(sent, 0.99),
        "due_p50": percentile(due, 0.5), "due_p99": percentile(due, 0.99), "max": max(sent),
    }  # fmt: skip


def main() -> None:
    """Run all and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", default=",".join(CLIENTS))
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--sizes", default="100,1024")
    parser.add_argument("--turns", type=int, default=16, help="of the latency, of each client in each round")
    parser.add_argument("--json", type=Path, help="keep every sample in this file")
    given = parser.parse_args()
    clients, tasks = given.clients.split(","), given.tasks.split(",")
    found: dict[Key, list[Sample]] = {}
    latencies: dict[str, list[Sample]] = {}
    about: dict[str, Any] = machine()
    with tempfile.TemporaryDirectory() as directory, broker.start(Path(directory)) as server:
        for turn in range(given.rounds):
            order = clients[turn % len(clients) :] + clients[: turn % len(clients)]
            for task in tasks:
                if task == "latency":
                    alone = [client for client in order if client != "columns"]
                    for client, samples in _latency(server.broker_url, alone, turn, given.turns).items():
                        latencies.setdefault(client, []).extend(samples)
                    continue
                for size in [int(one) for one in given.sizes.split(",")]:
                    for client in order:
                        if task == "send-each" and client == "columns":
                            continue  # a table's rows have no receipts
                        sample = _throughput(server.broker_url, task, size, client, turn)
                        found.setdefault((task, size, client), []).append(sample)
    about["load_average_at_end"] = os.getloadavg()[0]
    rows = list(verdicts(found, latencies))
    sys.stdout.write(", ".join(f"{name} {value}" for name, value in about.items()) + "\n\n" + table(rows) + "\n")
    if given.json is not None:
        each: list[dict[str, Any]] = [
            {"task": task, "size": size, "client": client, "rounds": of} for (task, size, client), of in found.items()
        ]
        kept = {"machine": about, "throughput": each, "latency": latencies, "table": [one._asdict() for one in rows]}
        given.json.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
