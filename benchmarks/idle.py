"""Thousands of connections that do nothing: how soon they are in, what each costs, and what they cost together.

    python -m benchmarks.idle --connections 1000,5000

Each connects, says CONNECT, and from then on only answers PINGs (every three seconds here, so that the broker's
keep-alive is seen at work; with its default of 30 it costs a tenth). In a second round each has a consumer on one of a
hundred topics. For each step a fresh broker; memory and CPU are those of all its processes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path

from tools.servers import magnetar
from tools.servers.process import Server

from benchmarks.brokers import Broker, Kind
from magnetar.protocol import codec
from magnetar.protocol import commands as c
from magnetar.testing.rawclient import RawClient

KEEP_ALIVE_SECONDS = 3
REST_SECONDS = 4
"""The REST interface is built meanwhile."""
TOPICS = 100
AT_ONCE = 200


async def crowd(broker: Broker, count: int, *, consumers: bool, seconds: float) -> dict[str, float]:
    """Connect, look, wait, look again."""
    host, port, *_ = broker.address
    before, began = broker.resident_bytes(), time.perf_counter()
    cpu = -broker.cpu_seconds()
    clients: list[RawClient] = []
    for start in range(0, count, AT_ONCE):
        some = range(start, min(start + AT_ONCE, count))
        clients += await asyncio.gather(*(join(host, port, i, consumers=consumers) for i in some))
    joining = time.perf_counter() - began
    cpu += broker.cpu_seconds()
    await asyncio.sleep(1)
    after = broker.resident_bytes()
    idle = -broker.cpu_seconds()
    slowest = 0.0
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        asked = time.perf_counter()
        clients[0].say(c.CommandPing())
        await clients[0].hear(c.CommandPong)
        slowest = max(slowest, time.perf_counter() - asked)
        await asyncio.sleep(0.1)
    idle += broker.cpu_seconds()
    lost = sum(client.lost.done() for client in clients)
    leaving = time.perf_counter()
    for client in clients:
        client.transport.abort()
    await asyncio.sleep(8)
    host_client = await RawClient.open(host, port)
    await host_client.connect()
    left = broker.resident_bytes()
    await host_client.close()
    return {
        "connections": count,
        "consumers": float(consumers),
        "joining_seconds": joining,
        "joining_cpu_us_each": cpu / count * 1e6,
        "bytes_each": (after - before) / count,
        "idle_cpu_percent": idle / seconds * 100,
        "slowest_ping_ms": slowest * 1e3,
        "lost": lost,
        "resident_before": before,
        "resident_with": after,
        "resident_after": left,
        "gone_after_seconds": time.perf_counter() - leaving,
    }


async def join(host: str, port: int, number: int, *, consumers: bool) -> RawClient:
    client = await RawClient.open(host, port, patience_s=60)
    await client.connect()
    if consumers:
        topic = f"persistent://public/default/idle-{number % TOPICS}"
        await client.subscribe(topic, "s", c.SubType.Shared)
    return client


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", default="1000,5000")
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    assert len(codec.encode(c.CommandPing())) < 20
    found = []
    for consumers in (False, True):
        for count in map(int, options.connections.split(",")):
            with tempfile.TemporaryDirectory() as directory:
                kind = Kind("magnetar", "fsync", start)
                broker = Broker(kind, Path(directory))
                broker.start()
                time.sleep(REST_SECONDS)
                try:
                    found.append(asyncio.run(crowd(broker, count, consumers=consumers, seconds=options.seconds)))
                finally:
                    broker.stop()
            print({key: round(value, 2) for key, value in found[-1].items()}, flush=True)
    if options.out:
        options.out.write_text(json.dumps(found, indent=1))


def start(directory: Path) -> Server:
    return magnetar.start(directory, settings={"keepAliveIntervalSeconds": str(KEEP_ALIVE_SECONDS)})


if __name__ == "__main__":
    main()
