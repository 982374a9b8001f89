"""Consumers that read compacted and were there before the view was (rule 5.9.13)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from magnetar.model.subscription_types import SubType
from magnetar.protocol.entries import payload_of
from magnetar.runtime.clock import SystemClock
from magnetar.storage.backends.files import OsFileSystem
from magnetar.storage.local_store import LocalLedgerStore
from tests.support.compacted_topic import compact, loaded, publish
from tests.support.entry_connection import EntryConnection, until


@pytest.mark.parametrize("stays", [False, True], ids=["it has left", "it has no permits"])
@pytest.mark.parametrize("sub_type", [SubType.Exclusive, SubType.Failover])
def test_what_was_compacted_before_it_was_wanted_is_read_from_the_view(
    tmp_path: Path, sub_type: SubType, stays: bool
) -> None:
    """What arrives for no one, or for a consumer that takes nothing yet, does not decide what is read."""

    async def story() -> None:
        store = LocalLedgerStore(OsFileSystem(str(tmp_path)), SystemClock())
        store.open()
        topic = loaded(store)
        topic.create_subscription("s", 0)
        subscription = topic.subscriptions["s"]

        def join() -> EntryConnection:
            topic.read_by(subscription, compacted=True)
            connection = EntryConnection()
            subscription.add_consumer(connection, name="c", consumer_id=1, sub_type=sub_type)
            return connection

        connection = join()
        if not stays:
            subscription.remove_consumer(subscription.consumers[0])
        for value in ("0", "1"):
            await publish(topic, ("k", value))
            subscription.pump.turn()
        await compact(topic)
        if not stays:
            connection = join()
        subscription.flow(subscription.consumers[0], 10)
        await until(connection, 1)
        assert [payload_of(entry) for entry in connection.entries] == [b"1"]
        topic.close()
        await store.close()

    async def bounded() -> None:
        async with asyncio.timeout(30):
            await story()

    asyncio.run(bounded())


def test_who_comes_back_after_a_compaction_reads_the_view(tmp_path: Path) -> None:
    """What the consumers before it were sent and did not acknowledge is read anew, as the view has it now."""

    async def story() -> None:
        store = LocalLedgerStore(OsFileSystem(str(tmp_path)), SystemClock())
        store.open()
        topic = loaded(store)
        topic.create_subscription("s", 0)
        subscription = topic.subscriptions["s"]

        async def received(count: int) -> list[bytes]:
            topic.read_by(subscription, compacted=True)
            connection = EntryConnection()
            consumer = subscription.add_consumer(connection, name="c", consumer_id=1, sub_type=SubType.Exclusive)
            subscription.flow(consumer, 10)
            await until(connection, count)
            subscription.remove_consumer(consumer)
            return [payload_of(entry) for entry in connection.entries]

        for value in ("0", "1", "2"):
            await publish(topic, ("k", value))
        assert await received(3) == [b"0", b"1", b"2"]
        await compact(topic)
        await publish(topic, ("k", "3"))
        assert await received(2) == [b"2", b"3"]
        topic.close()
        await store.close()

    async def bounded() -> None:
        async with asyncio.timeout(30):
            await story()

    asyncio.run(bounded())


@pytest.mark.parametrize("way", ["the next one takes over", "it asks again", "a seek"])
def test_what_is_read_again_is_read_from_the_view(tmp_path: Path, way: str) -> None:
    """Also for a consumer that has waited: what was compacted after it had been sent is not sent once more."""

    async def story() -> None:
        store = LocalLedgerStore(OsFileSystem(str(tmp_path)), SystemClock())
        store.open()
        topic = loaded(store)
        topic.create_subscription("s", 0)
        subscription = topic.subscriptions["s"]
        connections = []
        for number, name in enumerate("ab"):
            topic.read_by(subscription, compacted=True)
            connections.append(EntryConnection())
            consumer = subscription.add_consumer(
                connections[-1], name=name, consumer_id=number, sub_type=SubType.Failover
            )
            subscription.flow(consumer, 10)
        active = subscription.active_consumer
        assert active is not None
        connections.sort(key=lambda one: one is not active.connection)
        for value in ("0", "1", "2"):
            await publish(topic, ("k", value))
            subscription.pump.turn()
        await until(connections[0], 3)
        await compact(topic)
        await publish(topic, ("k", "3"))
        subscription.pump.turn()
        await until(connections[0], 4)
        reads = connections[1]
        if way == "it asks again":
            reads = connections[0]
            reads.entries.clear()
            reads.got.clear()
            subscription.flow(active, 10)
            subscription.redeliver(active, None)
        elif way == "a seek":
            subscription.seek_to(0)
        else:
            subscription.remove_consumer(active)
        await until(reads, 2)
        assert [payload_of(entry) for entry in reads.entries][:2] == [b"2", b"3"]
        topic.close()
        await store.close()

    async def bounded() -> None:
        async with asyncio.timeout(30):
            await story()

    asyncio.run(bounded())
