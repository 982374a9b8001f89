"""A subscription on the real store: disk reads, cursors that survive, trimming under a reader."""

from __future__ import annotations

import asyncio
from pathlib import Path

from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.broker.topic.dispatch.dispatcher_choice import TopicIdentity
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.model.subscription_types import SubType
from magnetar.protocol.sticky_key import sticky_keys
from magnetar.runtime.clock import SystemClock
from magnetar.storage.backends.files import OsFileSystem
from magnetar.storage.ledgers.cursor import Cursor
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.store import LedgerStore
from magnetar.storage.store_settings import StoreSettings
from tests.support.entry_connection import EntryConnection, until

SMALL = StoreSettings(segment_bytes=8192, cache_bytes=1, ledger_entries_max=64, ledger_min_rollover_ms=0)


def opened(path: Path) -> LedgerStore:
    store = LocalLedgerStore(OsFileSystem(str(path)), SystemClock(), SMALL)
    store.open()
    return store


def subscription(log: ManagedLedger, cursor: Cursor) -> Subscription:
    return Subscription(TopicIdentity("t"), "s", log, cursor, DispatchSettings(), SystemClock(), sticky_keys)


def test_catch_up_from_disk_and_holes_after_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        store = opened(tmp_path)
        log = store.open_log("t")
        cursor = log.open_cursor("s", 0)
        for i in range(500):
            log.append(b"%0100d" % i, 1, None)
            if i % 50 == 0:
                await store.journal.drain()
        await store.journal.drain()
        sub, connection = subscription(log, cursor), EntryConnection()
        consumer = sub.add_consumer(connection, name="c", consumer_id=1, sub_type=SubType.Shared)
        sub.flow(consumer, 1000)
        await until(connection, 500)
        assert connection.entries == [b"%0100d" % i for i in range(500)]
        durable = asyncio.Event()
        sub.acks.take(consumer, [i for i in range(500) if i % 3], durable.set)
        await asyncio.wait_for(durable.wait(), 20)
        sub.close()
        await store.close()

        store = opened(tmp_path)
        log = store.open_log("t")
        sub, connection = subscription(log, log.cursors["s"]), EntryConnection()
        assert sub.stats().backlog_entries == 167
        sub.flow(sub.add_consumer(connection, name="c", consumer_id=1, sub_type=SubType.Exclusive), 1000)
        await until(connection, 167)
        assert connection.ordinals == list(range(0, 500, 3))
        sub.close()
        await store.close()

    asyncio.run(main())


def test_reader_behind_a_trim_jumps(tmp_path: Path) -> None:
    """A reader under which the log was trimmed continues at the first entry (rule 4.3.2)."""

    async def main() -> None:
        store = opened(tmp_path)
        log = store.open_log("t")
        cursor = log.open_cursor("reader", 0, durable=False)
        for i in range(200):
            log.append(b"%d" % i, 1, None)
        await store.journal.drain()
        sub, connection = subscription(log, cursor), EntryConnection()
        consumer = sub.add_consumer(connection, name="c", consumer_id=1, sub_type=SubType.Exclusive)
        sub.flow(consumer, 10)
        await until(connection, 10)
        assert log.trim(150) == 2
        sub.flow(consumer, 1000)
        await until(connection, 10 + 200 - 128)
        assert connection.ordinals == [*range(10), *range(128, 200)]
        assert cursor.mark_delete == 127
        assert cursor.jumped == 128
        sub.close()
        await store.close()

    asyncio.run(main())
