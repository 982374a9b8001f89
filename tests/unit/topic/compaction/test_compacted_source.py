"""Reading a compacted topic on the real store: gaps, positions of trimmed ledgers, views that are replaced."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from magnetar.broker.topic.cleanup.expiry import expire
from magnetar.broker.topic.compaction.compacted_source import CompactedSource
from magnetar.model.errors import ConflictError, PersistenceError
from magnetar.model.ids import EARLIEST, Position
from magnetar.model.subscription_types import SubType
from magnetar.model.system_topics import COMPACTION_SUBSCRIPTION
from magnetar.runtime.clock import SystemClock
from magnetar.storage.backends.files import OsFileSystem
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.store import LedgerStore
from magnetar.storage.store_settings import StoreSettings
from tests.support.compacted_topic import all_of, compact, drained, loaded, logs, publish
from tests.support.entry_connection import EntryConnection, until
from tests.support.subscription_fakes import FakeConnection
from tests.support.tombstones import deletion

SMALL = StoreSettings(segment_bytes=8192, cache_bytes=1, ledger_entries_max=10, ledger_min_rollover_ms=0)
Story = Callable[[LedgerStore], Coroutine[Any, Any, None]]


@pytest.fixture
def tell(tmp_path: Path) -> Callable[[Story], None]:
    """Runs a story on a store, always the same one."""

    def run(story: Story) -> None:
        async def on_a_store() -> None:
            store = LocalLedgerStore(OsFileSystem(str(tmp_path)), SystemClock(), SMALL)
            store.open()
            try:
                async with asyncio.timeout(30):
                    await story(store)
            finally:
                await store.close()

        asyncio.run(on_a_store())

    return run


def test_a_view_survives_trimming_and_a_restart(tell: Callable[[Story], None]) -> None:
    first = [(f"k{i % 7}", f"{i}") for i in range(95)]
    kept = [(88 + i, f"{88 + i}") for i in range(7)]

    async def before(store: LedgerStore) -> None:
        topic = loaded(store)
        await publish(topic, *first)
        compactor = await compact(topic)
        positions = [topic.log.position(ordinal) for ordinal, _ in kept]
        await publish(topic, ("k0", "new"), ("late", "1"))
        topic.log.open_ledger()
        assert topic.trim() > 0
        assert topic.log.first > 80, "the cursor of compaction holds back only what is behind the horizon"
        source = compactor.detached_source()
        assert await all_of(source) == [*kept, (95, "new"), (96, "1")]
        assert [source.exact_ordinal(position) for position in positions] == [ordinal for ordinal, _ in kept]
        assert source.ordinal(EARLIEST) == 0
        assert source.ordinal(Position(positions[0].ledger, 0)) <= 88
        await drained(topic)
        topic.close()

    async def after(store: LedgerStore) -> None:
        topic = loaded(store)
        source = topic.compaction().detached_source()
        assert await all_of(source) == [*kept, (95, "new"), (96, "1")]
        assert await all_of(source, 90) == [*kept[2:], (95, "new"), (96, "1")]
        assert topic.compaction().status == "NOT_RUN"
        await compact(topic)
        newest = [(ordinal, value) for ordinal, value in kept if ordinal % 7]
        assert await all_of(topic.compaction().detached_source()) == [*newest, (95, "new"), (96, "1")]
        topic.close()

    tell(before)
    tell(after)


async def last_of(source: CompactedSource) -> Any:
    found: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    return await found if source.last_compacted(source.log.end - 1, found.set_result) else None


def test_the_last_message_and_when_there_is_none(tell: Callable[[Story], None]) -> None:
    """GET_LAST_MESSAGE_ID of a compacted reader (rule 5.9.12)."""

    async def story(store: LedgerStore) -> None:
        topic = loaded(store)
        await publish(topic, ("a", "1"), ("b", "1"))
        topic.log.append(deletion("b"), 1, None)
        await drained(topic)
        source = topic.compaction().detached_source()
        assert await last_of(source) is None
        await compact(topic)
        assert await all_of(source) == [(0, "1")]
        assert await last_of(source) == (topic.log.position(0), -1)
        topic.log.append(deletion("a"), 1, None)
        await drained(topic)
        assert await last_of(source) is None, "not compacted yet"
        await compact(topic)
        assert await all_of(source) == []
        assert await last_of(source) == (EARLIEST, -1)
        assert (topic.compaction().view or pytest.fail()).entries == 0
        topic.close()

    tell(story)


def test_the_last_message_is_the_views_when_the_log_is_trimmed_behind_it(tell: Callable[[Story], None]) -> None:
    """What was published after the horizon is gone, what the view keeps can be read: that is what is announced."""

    async def story(store: LedgerStore) -> None:
        topic = loaded(store)
        await publish(topic, ("a", "1"), ("b", "1"))
        await compact(topic)
        kept = topic.log.position(1)
        await publish(topic, ("a", "2"))
        topic.log.open_ledger()
        topic.trim_to(topic.log.end, 0)
        await drained(topic)
        source = topic.compaction().detached_source()
        assert (topic.last_visible(), await all_of(source)) == (2, [(0, "1"), (1, "1")])
        assert await last_of(source) == (kept, -1)
        await publish(topic, ("c", "1"))
        assert await last_of(source) is None, "the log has one again"
        topic.close()

    tell(story)


def test_time_is_searched_in_both(tell: Callable[[Story], None]) -> None:
    async def story(store: LedgerStore) -> None:
        topic = loaded(store)
        await publish(topic, *[(f"k{i % 3}", f"{i}") for i in range(30)])
        compactor = await compact(topic)
        await publish(topic, ("k0", "x"), ("k1", "y"))

        async def since(time_ms: int) -> int:
            found: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            compactor.detached_source().since(time_ms, found.set_result)
            return int(await found)

        assert [await since(1000 + i) for i in (0, 27, 28, 30, 31, 32)] == [27, 27, 28, 30, 31, 32]
        topic.close()

    tell(story)


def test_a_reader_finishes_the_view_it_began(tell: Callable[[Story], None]) -> None:
    """Otherwise it would have a, and never hear that a was deleted: the new view says nothing of it."""

    async def story(store: LedgerStore) -> None:
        topic = loaded(store)
        await publish(topic, ("a", "1"), ("b", "1"), ("c", "1"))
        compactor = await compact(topic)
        source = compactor.detached_source()
        assert await all_of(source, 0, 1, step=1) == [(0, "1")]
        topic.log.append(deletion("a"), 1, None)
        await publish(topic, ("b", "2"))
        await compact(topic)
        assert len(logs(store)) == 2, "the old view is kept for its reader"
        assert [ordinal for ordinal, _ in await all_of(source, 1)] == [1, 2, 3, 4], "the deletion included"
        assert len(logs(store)) == 1
        assert await all_of(source, 0) == [(2, "1"), (4, "2")], "who goes back begins with the new one"
        assert await all_of(source, 5) == []
        await publish(topic, ("d", "1"))
        await compact(topic)
        assert await all_of(source, 5) == [(5, "1")]
        topic.close()

    tell(story)


@pytest.mark.parametrize("step", [1, 3, 5, 7, 100])
def test_a_view_in_memory_is_read_from_there_once_its_place_is_found(tmp_path: Path, step: int) -> None:
    """The place is searched once and follows from what was read last; the end of the view is known without a read."""

    async def story() -> None:
        store = LocalLedgerStore(OsFileSystem(str(tmp_path)), SystemClock(), replace(SMALL, cache_bytes=1 << 20))
        store.open()
        topic = loaded(store)
        await publish(topic, *[(f"k{i % 7}", f"{i}") for i in range(21)])
        source = (await compact(topic)).detached_source()
        await publish(topic, ("k1", "x"), ("k2", "y"))
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        assert source.cached(0, step, 1 << 20) is None, "where 0 lies in the view is not known yet"
        source.read(0, step, 1 << 20, answer.set_result)
        assert (await answer).entries == []
        got: list[int] = []
        at = 0
        while at < source.end:
            run = source.cached(at, step, 1 << 20)
            assert run is not None, at
            got += range(run.first, run.first + len(run.entries))
            at = run.first + len(run.entries)
        assert got == list(range(14, 23))
        topic.close()
        await store.close()

    asyncio.run(story())


def test_trimming_and_expiry_leave_compacted_readers_alone(tell: Callable[[Story], None]) -> None:
    """A plain non-durable cursor jumps over what was trimmed; a compacted one still has the view to read."""

    async def story(store: LedgerStore) -> None:
        topic = loaded(store)
        await publish(topic, *[(f"k{i % 3}", f"{i}") for i in range(60)])
        compactor = await compact(topic)
        mark = topic.subscriptions[COMPACTION_SUBSCRIPTION].cursor.mark_delete
        reader = topic.subscription("r", durable=False, ordinal=lambda: 0, properties={}, done=lambda: None)
        topic.read_by(reader, compacted=True)
        connection = EntryConnection()
        consumer = reader.add_consumer(connection, name="c", consumer_id=1, sub_type=SubType.Exclusive)
        topic.log.open_ledger()
        assert topic.trim() > 0
        assert topic.log.first > 50
        assert reader.cursor.mark_delete == -1
        await publish(topic, ("new", "60"))
        assert await expire(topic.subscriptions[COMPACTION_SUBSCRIPTION], 1 << 60) == 0
        assert topic.subscriptions[COMPACTION_SUBSCRIPTION].cursor.mark_delete == mark
        reader.flow(consumer, 100)
        await until(connection, 4)
        assert [got[0] for got in connection.got] == [57, 58, 59, 60]
        assert await expire(reader, 1 << 60) > 0, "its backlog is that of the log"
        assert compactor.view is not None
        topic.close()

    tell(story)


def test_leftovers_are_removed_when_the_topic_is_loaded(tell: Callable[[Story], None]) -> None:
    async def before(store: LedgerStore) -> None:
        topic = loaded(store)
        await publish(topic, ("a", "1"))
        compactor = await compact(topic)
        store.open_log(compactor._name(2))  # a run that was broken off
        await drained(topic)
        assert len(logs(store)) == 2
        topic.close()

    async def after(store: LedgerStore) -> None:
        topic = loaded(store)
        assert len(logs(store)) == 1
        assert await all_of(topic.compaction().detached_source()) == [(0, "1")]
        topic.delete_subscription(COMPACTION_SUBSCRIPTION, lambda: None)
        assert not logs(store)
        assert topic.compaction().view is None
        await compact(topic)
        assert len(logs(store)) == 1
        topic.close()

    tell(before)
    tell(after)


def test_a_view_whose_cursor_is_gone_is_replaced_and_not_added_to(tell: Callable[[Story], None]) -> None:
    """Damage may take the cursor, and with it all that is known of the view."""

    async def before(store: LedgerStore) -> None:
        topic = loaded(store)
        await publish(topic, ("a", "1"), ("b", "1"))
        await compact(topic)
        topic.log.delete_cursor(COMPACTION_SUBSCRIPTION)
        await drained(topic)
        topic.close()

    async def after(store: LedgerStore) -> None:
        topic = loaded(store)
        await publish(topic, ("a", "2"))
        compactor = await compact(topic)
        assert (compactor.view or pytest.fail()).entries == 2
        assert await all_of(compactor.detached_source()) == [(1, "1"), (2, "2")]
        topic.close()

    tell(before)
    tell(after)


def test_one_run_at_a_time_and_the_status_of_one_that_ends_early(tell: Callable[[Story], None]) -> None:
    async def story(store: LedgerStore) -> None:
        topic = loaded(store)
        await publish(topic, ("a", "1"))
        compactor = topic.compaction()
        compactor.begin(retain_keyless=False)
        assert compactor.status == "RUNNING"
        with pytest.raises(ConflictError, match="Compaction already in progress"):
            compactor.begin(retain_keyless=False)
        topic.delete_subscription(COMPACTION_SUBSCRIPTION, lambda: None)
        await compactor.wait()
        assert compactor.status == "ERROR"
        assert not logs(store)
        topic.close()

    tell(story)


def test_a_run_that_finds_nothing_new_makes_no_view(tell: Callable[[Story], None]) -> None:
    """It succeeds at once, and what is there is not written again."""

    async def story(store: LedgerStore) -> None:
        topic = loaded(store)
        compactor = await compact(topic)
        assert compactor.view is None and not logs(store), "nothing was published yet"
        await publish(topic, ("a", "1"), ("b", "1"))
        view, names = (await compact(topic)).view, logs(store)
        assert view is not None
        await compact(topic)
        assert compactor.view is view and logs(store) == names
        assert compactor.stats.successes == 3
        topic.close()

    tell(story)


def test_a_disk_that_refuses_leaves_the_old_view(
    tell: Callable[[Story], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(store: LedgerStore) -> None:
        topic = loaded(store)
        await publish(topic, ("a", "1"))
        compactor = await compact(topic)
        await publish(topic, ("a", "2"))
        barrier = ManagedLedger.barrier

        def refusing(self: ManagedLedger, done: Any, failed: Any = None) -> None:
            if self.name.startswith("internal://compacted/"):
                failed(PersistenceError("the disk is full"))
            else:
                barrier(self, done, failed)

        with monkeypatch.context() as wrong:
            wrong.setattr(ManagedLedger, "barrier", refusing)
            compactor.begin(retain_keyless=False)
            await compactor.wait()
        assert (compactor.status, compactor.last_error) == ("ERROR", "the disk is full")
        assert compactor.stats.failures == 1
        assert len(logs(store)) == 1
        assert await all_of(compactor.detached_source()) == [(0, "1"), (1, "2")]
        assert (await compact(topic)).stats.successes == 2
        assert await all_of(compactor.detached_source()) == [(1, "2")]
        topic.close()

    tell(story)


def test_a_subscription_reads_compacted_while_its_consumers_do(tell: Callable[[Story], None]) -> None:
    async def story(store: LedgerStore) -> None:
        topic = loaded(store)
        await publish(topic, *[(f"k{i % 2}", f"{i}") for i in range(40)])
        await compact(topic)
        topic.create_subscription("s", 0)
        subscription = topic.subscriptions["s"]
        topic.read_by(subscription, compacted=True)
        connection = EntryConnection()
        consumer = subscription.add_consumer(connection, name="c", consumer_id=1, sub_type=SubType.Exclusive)
        subscription.flow(consumer, 100)
        await until(connection, 2)
        assert [got[0] for got in connection.got] == [38, 39]
        topic.read_by(subscription, compacted=False)
        assert isinstance(subscription.log, CompactedSource), "not under a consumer's feet"
        subscription.remove_consumer(consumer)
        topic.read_by(subscription, compacted=False)
        plain = EntryConnection()
        consumer = subscription.add_consumer(plain, name="c", consumer_id=1, sub_type=SubType.Exclusive)
        subscription.flow(consumer, 100)
        await until(plain, 40)
        assert [got[0] for got in plain.got] == list(range(40))
        assert isinstance(plain, FakeConnection)
        topic.close()

    tell(story)
