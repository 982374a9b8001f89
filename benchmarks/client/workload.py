"""One measurement in a process of its own: ``python -m benchmarks.client.workload CLIENT TASK URL TOPIC SIZE COUNT``.

It prints a line of JSON: messages per second, and CPU of the whole process (all threads) in microseconds per message.
The tasks: ``send`` without waiting, and a flush at the end; ``send-each``, where the application hears the fate of each
message (a callback; in asyncio it keeps each receipt and asks it for the id); ``receive`` and acknowledge one by one.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from typing import Any

from benchmarks.client.clock import Meter

_ROWS = 20_000
_BATCHING: dict[str, Any] = {"batching_enabled": True, "batching_max_messages": 1_000, "max_pending_messages": 10_000}


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
        producer = client.create_producer(topic, block_if_queue_full=True, **_BATCHING)
        body, stored = b"x" * size, threading.Semaphore(0)

        def done(*_: object) -> None:
            stored.release()

        heard = done if task == "send-each" else None
        meter = Meter()
        for _ in range(messages):
            producer.send_async(body, heard)
        producer.flush()
        for _ in range(messages if heard else 0):
            stored.acquire()
        return meter.over(messages)
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
        producer = await client.create_producer(topic, **_BATCHING)
        body, receipts, each = b"x" * size, list[Any](), task == "send-each"
        meter = Meter()
        for _ in range(messages):
            try:
                receipt = producer.send_nowait(body)
            except aio.QueueFullError:
                await producer.room()
                receipt = producer.send_nowait(body)
            if each:
                receipts.append(receipt)
        await producer.flush()
        assert all(one.result() for one in receipts)
        return meter.over(messages)


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
