"""Very many topics in one broker: joining, listing, /metrics, restart and memory, and how long others wait meanwhile.

``python -m benchmarks.many_topics 1000 10000 100000`` prints one block for each number: for each step the seconds of
CPU that the broker's main thread used, the seconds it took, and the longest stretch of CPU that stood between another
client's PING and its PONG, all from outside (``/proc/<pid>/task/<pid>/schedstat``). A topic here has one producer while
it joins, no message and no subscription.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from tools.servers import magnetar
from tools.servers.process import HOST, Server

from magnetar.protocol import codec
from magnetar.protocol import commands as c
from magnetar.testing.rawclient import RawClient

NAMESPACE: Final = "public/default"
_WINDOW: Final = 200
"""Producers that are asked for before the first of them is answered."""
_PATIENCE: Final = 600.0


def pid_of(server: Server) -> int:
    assert server.process is not None
    return server.process.pid


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of the process's main thread."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e9


def megabytes(pid: int) -> float:
    """Return the resident memory of the process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


class Other(threading.Thread):
    """Another client, which says PING again and again."""

    def __init__(self, server: Server) -> None:
        super().__init__(daemon=True)
        self._pid = pid_of(server)
        self._socket = socket.create_connection((HOST, server.broker_port), 60.0)
        self.longest = 0.0
        self.ended = False
        self._say(c.CommandConnect("bench", protocol_version=19))
        self.start()

    def _say(self, command: c.Command) -> None:
        self._socket.sendall(codec.encode(command))
        (size,) = struct.unpack(">I", self._socket.recv(4, socket.MSG_WAITALL))
        self._socket.recv(size, socket.MSG_WAITALL)

    def run(self) -> None:
        while not self.ended:
            before = cpu_seconds(self._pid)
            try:
                self._say(c.CommandPing())
                self.longest = max(self.longest, cpu_seconds(self._pid) - before)
            except OSError:
                return
            time.sleep(0.002)


async def step(server: Server, other: Other, name: str, work: Callable[[], Awaitable[object]]) -> None:
    pid = pid_of(server)
    other.longest, cpu, begun = 0.0, cpu_seconds(pid), time.monotonic()
    said = await work()
    took, spent = time.monotonic() - begun, cpu_seconds(pid) - cpu
    await asyncio.sleep(0.05)
    print(f"  {name:<28}{spent:8.2f} s CPU {took:8.2f} s   others wait {other.longest * 1000:6.1f} ms CPU   {said}")


async def join(server: Server, topics: int, clients: list[RawClient]) -> str:
    """One producer on each, over ten connections, which are added to ``clients``."""
    clients += [await RawClient.open(HOST, server.broker_port, patience_s=_PATIENCE) for _ in range(10)]
    for client in clients:
        await client.connect()

    async def some(number: int) -> None:
        waiting: set[asyncio.Task[object]] = set()
        for topic in range(number, topics, len(clients)):
            name = f"persistent://{NAMESPACE}/t{topic:06d}"
            waiting.add(asyncio.ensure_future(clients[number].producer(name)))
            if len(waiting) >= _WINDOW // len(clients):
                _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if waiting:
            await asyncio.wait(waiting)

    await asyncio.gather(*(some(number) for number in range(len(clients))))
    return ""


async def leave(clients: list[RawClient]) -> str:
    """All at once, each with a tenth of the producers."""
    for client in clients:
        await client.close()
    clients.clear()
    await asyncio.sleep(2.0)
    return ""


async def listed(server: Server, pattern: str | None) -> str:
    client = await RawClient.open(HOST, server.broker_port, patience_s=_PATIENCE)
    await client.connect()
    asked = c.CommandGetTopicsOfNamespace(client.new_id(), NAMESPACE, topics_pattern=pattern)
    answer = await client.request(asked, c.CommandGetTopicsOfNamespaceResponse)
    await client.close()
    return f"{len(answer.topics)} names"


async def fetched(server: Server, path: str) -> str:
    def fetch() -> bytes:
        with urllib.request.urlopen(f"http://{HOST}:{server.http_port}{path}", timeout=_PATIENCE) as answer:
            return bytes(answer.read())

    data = await asyncio.to_thread(fetch)
    return f"{len(json.loads(data))} names" if path.startswith("/admin") else f"{len(data) / 1e6:.1f} MB"


def restarted(server: Server, directory: Path, sign: signal.Signals, name: str) -> Server:
    assert server.process is not None
    begun = time.monotonic()
    server.process.send_signal(sign)
    server.process.wait(_PATIENCE)
    stopped = time.monotonic() - begun
    begun = time.monotonic()
    again = magnetar.start(directory)
    ready, cpu = time.monotonic() - begun, cpu_seconds(pid_of(again))
    print(f"  {name:<28}{cpu:8.2f} s CPU {ready:8.2f} s to ready, {stopped:.2f} s to stop, "
          f"{megabytes(pid_of(again)):.0f} MB")  # fmt: skip
    return again


async def measure(topics: int) -> None:
    with tempfile.TemporaryDirectory(prefix="magnetar-topics-") as place:
        directory = Path(place)
        server = magnetar.start(directory)
        try:
            empty = megabytes(pid_of(server))
            print(f"{topics} topics; {empty:.0f} MB without any")
            other, clients = Other(server), list[RawClient]()
            await step(server, other, "join: a producer on each", lambda: join(server, topics, clients))
            await step(server, other, "ten clients leave at once", lambda: leave(clients))
            loaded = megabytes(pid_of(server))
            print(f"  {'memory':<28}{loaded:8.0f} MB, {(loaded - empty) * 1000 / topics:.1f} kB for each")
            await step(server, other, "GET_TOPICS", lambda: listed(server, None))
            await step(server, other, "GET_TOPICS with a pattern", lambda: listed(server, f"{NAMESPACE}/t.*9"))
            await step(server, other, "GET the list", lambda: fetched(server, f"/admin/v2/persistent/{NAMESPACE}"))
            for _ in range(3):
                await step(server, other, "/metrics", lambda: fetched(server, "/metrics"))
            await step(server, other, "30 s of nothing", lambda: asyncio.sleep(30.0))
            other.ended = True
            server = restarted(server, directory, signal.SIGTERM, "stop and start")
            server = restarted(server, directory, signal.SIGKILL, "kill -9 and start")
            other = Other(server)
            await step(server, other, "join again", lambda: join(server, topics, clients))
            other.ended = True
        finally:
            server.stop()


def main() -> None:
    for argument in sys.argv[1:] or ["1000", "10000"]:
        asyncio.run(measure(int(argument)))


if __name__ == "__main__":
    main()
