"""The memory that messages without a receipt may use, of all producers of a client (rule 6.10.6)."""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import Any

import pytest
from tools.servers.process import Server

import magnetar
from magnetar import aio
from magnetar.client.machines.outgoing.pending_bytes import PendingBytes

SIZE = 1_000
LIMIT = 5_000
ONE_MORE = LIMIT + SIZE + 200
"""One message more than the limit, with what stands before it."""


@pytest.fixture
def peak(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The most bytes that were counted when some were released, which is when there were most."""
    found = [0]
    release = PendingBytes.release

    def released(memory: PendingBytes, size: int) -> None:
        found[0] = max(found[0], memory.used)
        release(memory, size)

    monkeypatch.setattr(PendingBytes, "release", released)
    return found


@pytest.mark.parametrize("batching", [False, True])
def test_producers_of_an_asyncio_client_share_it(server: Server, topic: str, batching: bool, peak: list[int]) -> None:
    async def main() -> None:
        async with asyncio.timeout(30), aio.Client(server.broker_url, memory_limit_bytes=LIMIT) as client:
            refusing = await client.create_producer(f"{topic}-1", batching_enabled=batching)
            waiting = await client.create_producer(f"{topic}-2", batching_enabled=batching, block_if_queue_full=True)
            memory, sent = refusing.memory, 0
            with pytest.raises(magnetar.MemoryBufferIsFull, match="memory_limit_bytes 5000 of the client") as caught:
                while True:
                    _ = refusing.send_nowait(b"x" * SIZE)
                    sent += 1
            assert caught.value.error() == magnetar.Result.MemoryBufferIsFull.value
            assert LIMIT // (SIZE + 200) <= sent <= LIMIT // SIZE + 1
            assert len(refusing.send_many_nowait([b"x"] * 3)) == 0
            other = asyncio.ensure_future(waiting.send(b"y" * SIZE))
            await asyncio.sleep(0)
            assert not other.done()
            await other
            await refusing.flush()
            assert memory.used == 0
            await asyncio.gather(*(waiting.send(b"z" * SIZE) for _ in range(50)))
            assert memory.used == 0
            assert LIMIT <= peak[0] <= ONE_MORE

    asyncio.run(main())


def test_a_closed_producer_gives_it_back(server: Server, topic: str) -> None:
    async def main() -> None:
        async with asyncio.timeout(30), aio.Client(server.broker_url, memory_limit_bytes=LIMIT) as client:
            first = await client.create_producer(topic)
            second = await client.create_producer(topic, block_if_queue_full=True)
            receipts = [first.send_nowait(b"x" * LIMIT)]
            waits = asyncio.ensure_future(second.send(b"y"))
            await asyncio.sleep(0)
            await first.close()
            await waits
            await asyncio.gather(*receipts, return_exceptions=True)
            assert first.memory.used == 0

    asyncio.run(main())


@pytest.mark.parametrize("batching", [False, True])
def test_threads_wait_for_it(server: Server, topic: str, batching: bool, peak: list[int]) -> None:
    """Each thread may let one message in when there is room for one alone."""
    threads, done = 3, list[Any]()
    with magnetar.Client(server.broker_url, memory_limit_bytes=LIMIT) as client:
        producers = [
            client.create_producer(f"{topic}-{number}", batching_enabled=batching, block_if_queue_full=True)
            for number in range(2)
        ]

        def work(number: int) -> None:
            producer = producers[number % 2]
            for turn in range(60):
                producer.send_async(b"x" * SIZE, (lambda *fate: done.append(fate)) if turn % 2 else None)
            producer.send(b"x" * SIZE)

        workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
        for one in workers:
            one.start()
        for one in workers:
            one.join(60)
        for producer in producers:
            producer.flush()
        memory = producers[0].twin.memory
        assert [result for result, _ in done] == [magnetar.Result.Ok] * (30 * threads)
        assert (memory.used, memory.crossing) == (0, memory.crossed)
        assert 0 < peak[0] <= ONE_MORE + (threads - 1) * (SIZE + 100)


def test_a_thread_that_does_not_wait_is_told(server: Server, topic: str) -> None:
    with magnetar.Client(server.broker_url, memory_limit_bytes=LIMIT) as client:
        producer = client.create_producer(topic)
        memory, told = producer.twin.memory, list[Any]()
        memory.crossing += LIMIT  # as if another thread had handed that over
        with pytest.raises(magnetar.MemoryBufferIsFull):
            producer.send(b"x")
        producer.send_async(b"x", lambda result, _: told.append(result))
        assert told == [magnetar.Result.MemoryBufferIsFull]
        memory.crossing -= LIMIT
        producer.send(b"x")


def test_none_is_no_limit(server: Server, topic: str) -> None:
    with magnetar.Client(server.broker_url, memory_limit_bytes=0) as client:
        memory = client.create_producer(topic).twin.memory
        memory.free -= 1 << 40
        assert not memory.full


def test_threads_that_send_at_the_same_moment_are_all_counted(server: Server, topic: str) -> None:
    """A thread that is put aside while it counts would take back what another one counted meanwhile."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with magnetar.Client(server.broker_url) as client:
            producer = client.create_producer(topic, batching_enabled=True, max_pending_messages=0)

            def send() -> None:
                for _ in range(4_000):
                    producer.send_async(b"xyz", lambda *_: None)

            threads = [threading.Thread(target=send) for _ in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            producer.flush()
            memory = producer._queue._memory
            assert memory.crossing == memory.crossed == 6 * 4_000 * 3
    finally:
        sys.setswitchinterval(interval)
