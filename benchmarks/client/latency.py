"""End-to-end latency at a steady rate, in turns: ``python -m benchmarks.client.latency CLIENT URL TOPIC``.

The process opens a producer and an exclusive consumer on one topic, warms up, and prints a line. Then for each line it
reads, a number of messages, it sends as many at `RATE`, receives and acknowledges each one, and prints a line of JSON:
CPU per message, and of each message in milliseconds how long the application had to wait for it, from just before it
was sent (``sent``) and from when the schedule wanted it sent (``due``). Several such processes stand ready side by side
and take turns of a second, so that all of them meet the same disk.

Threads: one sends and one receives, in the official client and in ours alike. asyncio: a task for each, in one thread.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from benchmarks.client.clock import Meter

RATE = 1_000
"""Messages a second."""
SIZE = 100
WARM_UP = 1_000
BATCHING: dict[str, Any] = {
    "batching_enabled": True,
    "batching_max_publish_delay_ms": 1,
    "max_pending_messages": 10_000,
}


class Turn:
    """The messages of one turn: when they are due, and how late they were."""

    def __init__(self, messages: int) -> None:
        self.messages = messages
        self.sent: list[float] = []
        self.due: list[float] = []
        self._meter = Meter()
        self._began = time.perf_counter_ns()

    def pause(self, number: int) -> float:
        """Seconds until a message is due."""
        return (self._due(number) - time.perf_counter_ns()) / 1e9

    def _due(self, number: int) -> int:
        return self._began + number * 1_000_000_000 // RATE

    def content(self, number: int) -> bytes:
        """What to send: the number and the time."""
        return (number.to_bytes(8, "big") + time.perf_counter_ns().to_bytes(8, "big")).ljust(SIZE, b"x")

    def arrived(self, data: bytes) -> None:
        """Note a message that the application has."""
        now = time.perf_counter_ns()
        self.sent.append((now - int.from_bytes(data[8:16], "big")) / 1e6)
        self.due.append((now - self._due(int.from_bytes(data[:8], "big"))) / 1e6)

    def report(self) -> dict[str, Any]:
        """Return what is printed."""
        cpu = self._meter.over(self.messages)["cpu"]
        return {"cpu": cpu, **{name: [round(one, 3) for one in getattr(self, name)] for name in ("sent", "due")}}


def _say(found: object) -> None:
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()


def _paced(turn: Turn, send: Callable[[bytes], object]) -> None:
    for number in range(turn.messages):
        pause = turn.pause(number)
        if pause > 0:
            time.sleep(pause)
        send(turn.content(number))


def threads(module: Any, url: str, topic: str) -> None:
    """The official client, or ours for threads, with the same calls."""
    logger = {} if module.__name__ == "magnetar" else {"logger": module.ConsoleLogger(module.LoggerLevel.Error)}
    client = module.Client(url, **logger)
    producer = client.create_producer(topic, block_if_queue_full=True, **BATCHING)
    consumer = client.subscribe(topic, "s")

    def run(messages: int) -> dict[str, Any]:
        turn = Turn(messages)
        sender = threading.Thread(target=_paced, args=(turn, lambda body: producer.send_async(body, None)))
        sender.start()
        for _ in range(messages):
            message = consumer.receive()
            turn.arrived(message.data())
            consumer.acknowledge(message)
        sender.join()
        return turn.report()

    run(WARM_UP)
    _say("ready")
    for line in sys.stdin:
        _say(run(int(line)))
    client.close()


async def tasks(module: Any, url: str, topic: str) -> None:
    """Ours for asyncio."""
    loop = asyncio.get_running_loop()
    async with module.Client(url) as client:
        producer = await client.create_producer(topic, **BATCHING)
        consumer = await client.subscribe(topic, "s")

        async def paced(turn: Turn) -> None:
            for number in range(turn.messages):
                pause = turn.pause(number)
                if pause > 0:
                    await asyncio.sleep(pause)
                _ = producer.send_nowait(turn.content(number))

        async def run(messages: int) -> dict[str, Any]:
            turn = Turn(messages)
            sender = asyncio.ensure_future(paced(turn))
            for _ in range(messages):
                message = await consumer.receive()
                turn.arrived(message.data())
                await consumer.acknowledge(message)
            await sender
            return turn.report()

        await run(WARM_UP)
        _say("ready")
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            _say(await run(int(line)))


def main() -> None:
    """Open the client that the arguments say, and take turns until the input ends."""
    name, *where = sys.argv[1:]
    if name == "official":
        import pulsar  # type: ignore[import-untyped]  # publishes no types

        threads(pulsar, *where)
    elif name == "blocking":
        import magnetar

        threads(magnetar, *where)
    else:
        from magnetar import aio

        asyncio.run(tasks(aio, *where))


if __name__ == "__main__":
    main()
