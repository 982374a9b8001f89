"""One measurement in a process of its own: ``python -m benchmarks.client.workload CLIENT TASK URL TOPIC SIZE COUNT``.

It prints a line of JSON: messages per second, and CPU of the whole process (all threads) in microseconds per message;
of latency the percentiles from just before a message is sent until the application has it, in milliseconds.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

RATE = 1_000
"""Messages a second of the latency."""
_ROWS = 20_000


class Meter:
    """Wall and CPU time since it was made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def over(self, messages: int) -> dict[str, float]:
        """Return what so many messages took."""
        wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        return {"rate": messages / wall, "cpu": cpu / messages * 1e6}


def _percentiles(seconds: list[float]) -> dict[str, float]:
    late = sorted(seconds[len(seconds) // 5 :])  # what comes first is warm-up
    return {"p50": late[len(late) // 2] * 1e3, "p99": late[len(late) * 99 // 100] * 1e3}


def _paced(send: Callable[[bytes], object], size: int, messages: int) -> None:
    began = time.perf_counter()
    for number in range(messages):
        pause = began + number / RATE - time.perf_counter()
        if pause > 0:
            time.sleep(pause)
        send(time.perf_counter_ns().to_bytes(8, "big").ljust(size, b"x"))


def _threads(module: Any, task: str, url: str, topic: str, size: int, messages: int) -> dict[str, float]:
    """The official client, or ours for threads, with the same calls."""
    logger = {} if module.__name__ == "magnetar" else {"logger": module.ConsoleLogger(module.LoggerLevel.Error)}
    client = module.Client(url, **logger)
    try:
        if task == "receive":
            consumer = client.subscribe(
                topic, "s", consumer_type=module.ConsumerType.Shared, receiver_queue_size=10_000
            )
            consumer.acknowledge(consumer.receive())
            meter = Meter()
            for _ in range(messages - 1):
                consumer.acknowledge(consumer.receive())
            return meter.over(messages - 1)
        batching = {"batching_enabled": True, "batching_max_messages": 1_000, "block_if_queue_full": True}
        if task == "latency":
            batching = {"batching_enabled": True, "batching_max_publish_delay_ms": 1}
        producer = client.create_producer(topic, max_pending_messages=10_000, **batching)
        if task == "send":
            body, stored = b"x" * size, threading.Semaphore(0)

            def done(*_: object) -> None:
                stored.release()

            meter = Meter()
            for _ in range(messages):
                producer.send_async(body, done)
            producer.flush()
            for _ in range(messages):
                stored.acquire()
            return meter.over(messages)
        consumer = client.subscribe(topic, "s")
        sender = threading.Thread(target=_paced, args=(lambda body: producer.send_async(body, None), size, messages))
        sender.start()
        late: list[float] = []
        for _ in range(messages):
            message = consumer.receive()
            late.append((time.perf_counter_ns() - int.from_bytes(message.data()[:8], "big")) / 1e9)
            consumer.acknowledge(message)
        sender.join()
        return _percentiles(late)
    finally:
        client.close()


async def _asyncio(task: str, url: str, topic: str, size: int, messages: int) -> dict[str, float]:
    from magnetar import aio

    async with aio.Client(url) as client:
        if task == "receive":
            shared = aio.ConsumerType.Shared
            consumer = await client.subscribe(topic, "s", consumer_type=shared, receiver_queue_size=10_000)
            await consumer.acknowledge(await consumer.receive())
            meter = Meter()
            for _ in range(messages - 1):
                await consumer.acknowledge(await consumer.receive())
            return meter.over(messages - 1)
        delay = 1 if task == "latency" else 10
        producer = await client.create_producer(
            topic, max_pending_messages=10_000, batching_enabled=True, batching_max_publish_delay_ms=delay
        )
        if task == "send":
            body, meter = b"x" * size, Meter()
            for _ in range(messages):
                try:
                    _ = producer.send_nowait(body)
                except aio.QueueFullError:
                    await producer.room()
                    _ = producer.send_nowait(body)
            await producer.flush()
            return meter.over(messages)
        consumer = await client.subscribe(topic, "s")
        began = time.perf_counter()

        async def paced() -> None:
            for number in range(messages):
                pause = began + number / RATE - time.perf_counter()
                if pause > 0:
                    await asyncio.sleep(pause)
                _ = producer.send_nowait(time.perf_counter_ns().to_bytes(8, "big").ljust(size, b"x"))

        sender = asyncio.ensure_future(paced())
        late: list[float] = []
        for _ in range(messages):
            message = await consumer.receive()
            late.append((time.perf_counter_ns() - int.from_bytes(message.data()[:8], "big")) / 1e9)
            await consumer.acknowledge(message)
        await sender
        return _percentiles(late)


async def _columns(task: str, url: str, topic: str, size: int, messages: int) -> dict[str, float]:
    import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

    from magnetar import aio

    async with aio.Client(url) as client:
        if task == "send":
            table = pa.table({"value": pa.array([b"x" * size] * messages)})
            producer = await client.create_producer(topic)
            await producer.send_table(table.slice(0, 1))  # kernels are loaded
            meter = Meter()
            await producer.send_table(table)
            return meter.over(messages)
        shared = aio.ConsumerType.Shared
        consumer = await client.subscribe(topic, "s", consumer_type=shared, receiver_queue_size=10_000)
        await consumer.acknowledge_table(await consumer.receive_table(1, 10))
        meter, seen = Meter(), 1
        while seen < messages:
            found = await consumer.receive_table(min(_ROWS, messages - seen), 10)
            await consumer.acknowledge_table(found)
            seen += found.num_rows
        return meter.over(messages - 1)


def main() -> None:
    """Measure what the arguments say."""
    name, task, url, topic, size, messages = sys.argv[1:]
    given = task, url, topic, int(size), int(messages)
    if name == "columns":
        found = asyncio.run(_columns(*given))
    elif name == "asyncio":
        found = asyncio.run(_asyncio(*given))
    else:
        import pulsar  # type: ignore[import-untyped]  # publishes no types

        import magnetar

        found = _threads(pulsar if name == "official" else magnetar, *given)
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
