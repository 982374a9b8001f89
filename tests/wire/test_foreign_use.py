"""A transaction of another client, and a client on another loop, are refused before anything is done."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator

import pytest

import magnetar
from magnetar import aio
from magnetar.client.errors import ArgumentError, ForeignLoopError
from tests.support.live_broker import LiveBroker, free_port, live_broker


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    directory = tmp_path_factory.mktemp("foreign")
    with live_broker(directory, webServicePort=free_port(), transactionCoordinatorEnabled="true") as started:
        yield started


def test_a_transaction_of_another_client_is_refused(broker: LiveBroker) -> None:
    """Its coordinator may be of another cluster: nothing is sent, and it can be ended as it is."""

    async def main() -> None:
        async with asyncio.timeout(60), aio.Client(broker.url) as client, aio.Client(broker.url) as other:
            producer, consumer = await client.create_producer("a"), await client.subscribe("a", "s")
            await producer.send(b"1")
            message = await consumer.receive()
            txn = await other.new_transaction()
            for use in (
                lambda: producer.send(b"2", txn=txn),
                lambda: consumer.acknowledge(message, txn=txn),
                lambda: consumer.acknowledge_cumulative(message, txn=txn),
            ):
                with pytest.raises(ArgumentError, match="was begun by another client: begin it with the client of"):
                    await use()
            await txn.commit()
            assert (await producer.send(b"3")).entry_id() == message.message_id().entry_id() + 1

    asyncio.run(main())


def test_threads_are_told_the_same(broker: LiveBroker) -> None:
    with magnetar.Client(broker.url) as client, magnetar.Client(broker.url) as other:
        producer, txn = client.create_producer("b"), other.new_transaction()
        with pytest.raises(ValueError, match="was begun by another client"):
            producer.send(b"1", txn=txn)
        txn.abort()


def test_another_loop_is_refused(broker: LiveBroker) -> None:
    """That of another thread, while the client goes on; and that of a second asyncio.run, where its own is closed."""
    client = aio.Client(broker.url)

    async def refused(*calls: Callable[[], Awaitable[object]]) -> None:
        for call in calls:
            with pytest.raises(ForeignLoopError, match=r"belongs to another event loop, of another asyncio.run or"):
                await call()

    async def main() -> None:
        producer, consumer = await client.create_producer("c"), await client.subscribe("c", "s")
        uses: list[Callable[[], Awaitable[object]]] = [
            lambda: producer.send(b"1"), producer.flush, consumer.receive, consumer.batch_receive,
            lambda: client.create_producer("c"), lambda: client.subscribe("c", "t"), client.new_transaction,
            lambda: client.get_topic_partitions("c"), lambda: client.create_reader("c", aio.MessageId.earliest),
            client.close,
        ]  # fmt: skip
        thread = threading.Thread(target=lambda: asyncio.run(refused(*uses)))
        thread.start()
        await asyncio.to_thread(thread.join)
        await producer.send(b"2")
        assert (await consumer.receive()).data() == b"2"
        await client.close()

    failures: list[object] = []
    hook, threading.excepthook = threading.excepthook, lambda found: failures.append(found.exc_value)
    try:
        asyncio.run(main())
    finally:
        threading.excepthook = hook
    assert failures == []

    left = aio.Client(broker.url)

    async def use() -> None:
        await left.get_topic_partitions("c")

    with asyncio.Runner() as its_own:
        its_own.run(use())
        asyncio.run(refused(use, left.close))
        its_own.run(left.close())
