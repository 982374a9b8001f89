"""The journal's scheduling: nothing that joined a group may wait for ever."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest

from magnetar.model.errors import PersistenceError
from magnetar.runtime.clock import SystemClock
from magnetar.storage.backends.files import OsFileSystem
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.log.write_group import PendingExtent, WriteTimes
from magnetar.storage.store_settings import StoreSettings
from tests.support.held_writes import held_store


def test_an_unawaited_ack_that_rode_along_does_not_stop_later_writes(tmp_path: Path) -> None:
    """Regression: the ack's timer fired during a write and left the journal marked as scheduled with nothing to do."""

    async def main() -> None:
        store, waiting = held_store(tmp_path, StoreSettings(ack_delay_seconds=0.01))
        managed = store.open_log("a")
        cursor = managed.open_cursor("s", 0)
        await store.journal.drain()  # the segment's first group goes another way

        managed.append(b"x", 1, None)
        await asyncio.sleep(0)
        cursor.acknowledge((0,))  # while the entry is being written: its timer starts
        waiting.pop()(None)  # the acknowledgement's group follows at once
        await asyncio.sleep(0.05)  # its timer fires while that is being written
        waiting.pop()(None)
        assert managed.end == 1
        managed.append(b"y", 1, None)
        await asyncio.sleep(0)
        assert len(waiting) == 1, "the second entry was never written"
        waiting.pop()(None)
        assert managed.end == 2
        await store.close()

    asyncio.run(main())


def test_it_counts_each_group_that_was_written_and_no_other(tmp_path: Path) -> None:
    """From 0 on: groups, their entries and their bytes; what waits is counted until it is decided, either way."""

    async def main() -> None:
        store, waiting = held_store(tmp_path)
        journal = store.journal

        def counted() -> tuple[int, int, int, int]:
            return journal.writes, journal.latency.entries, journal.pending_bytes, journal.moved_bytes

        assert (counted(), journal.bytes_written, journal.length, journal.pending_bytes) == ((0, 0, 0, 0), 0, 0, 0)
        managed = store.open_log("a")
        managed.on_failed = lambda extent, error: None
        await journal.drain()
        assert counted() == (1, 0, 0, 0)
        before = journal.bytes_written
        assert 0 < before <= journal.length
        for number, sizes in enumerate(((10,), (20, 30), (1,)), 2):
            for size in sizes:
                managed.append(bytes(size), 1, None)
            assert counted() == (number - 1, managed.end, sum(sizes), 0)
            await asyncio.sleep(0)
            waiting.pop()(None)
            await asyncio.sleep(0)  # latencies are counted after the receipts
            assert counted() == (number, managed.end, 0, 0)
            assert journal.bytes_written > before + sum(sizes)
            before = journal.bytes_written
        managed.append(bytes(40), 1, None)
        await asyncio.sleep(0)
        waiting.pop()(OSError("refused"))
        assert counted() == (4, 4, 0, 0)
        assert journal.bytes_written == before
        await store.close()

    asyncio.run(main())


@pytest.mark.parametrize("logs", [1, 15, 16, 17, 40])
def test_whoever_waits_for_the_end_is_told_however_many_logs_are_in_a_group(tmp_path: Path, logs: int) -> None:
    """Many extents go another way than few, and all of them are durable, numbered and answered."""

    async def main() -> None:
        store = LocalLedgerStore(OsFileSystem(str(tmp_path)), SystemClock(), StoreSettings())
        store.open()
        many = [store.open_log(f"log {number}") for number in range(logs)]
        told: list[int] = []
        for number, managed in enumerate(many):
            managed.on_durable = partial(lambda number, extent: told.append(number), number)
        async with asyncio.timeout(60):
            await store.journal.drain()
            for entries in (1, 2):
                told.clear()
                for managed in many:
                    managed.append(b"x", 1, None)
                await store.journal.drain()
                assert sorted(told) == list(range(logs))
                assert [managed.end for managed in many] == [entries] * logs
                assert store.journal.pending_bytes == 0
            await store.close()

    asyncio.run(main())


def test_what_was_put_into_outboxes_is_written_before_the_group_is_counted(tmp_path: Path) -> None:
    """Nobody's receipt waits for statistics, and nobody's statistics are lost by another's mistake."""

    async def main() -> None:
        store, waiting = held_store(tmp_path)
        managed = store.open_log("a")
        await store.journal.drain()
        seen: list[object] = []
        loop = asyncio.get_running_loop()

        def mistake(extent: PendingExtent, times: WriteTimes) -> None:
            seen.append((len(extent.entries), times.wrote_ms > 0, times.waited_ms >= times.wrote_ms))
            raise ValueError

        def result(extent: PendingExtent) -> None:
            seen.append("result")
            loop.call_soon(seen.append, "written")  # as a connection's outbox writes the receipts of one wake-up

        managed.on_durable = result
        managed.on_counted = mistake
        for count in (3, 1):
            for _ in range(count):
                managed.append(b"x", 1, None)
            await asyncio.sleep(0)
            waiting.pop()(None)
            assert seen == ["result"]
            await asyncio.sleep(0)
            assert seen == ["result", "written", (count, True, True)]
            seen.clear()
        assert (store.journal.latency.entries, store.journal.latency.summary.count) == (4, 4)
        await store.close()

    asyncio.run(main())


def test_a_group_of_many_logs_is_handed_out_log_by_log(tmp_path: Path) -> None:
    """Each log has its results, its notice and its statistics, once, whatever another one's callbacks do."""

    async def main() -> None:
        store, waiting = held_store(tmp_path)
        logs = [store.open_log(f"log-{number}") for number in range(40)]
        await store.journal.drain()
        seen: list[tuple[int, str]] = []

        def mistake(*_: object) -> None:
            raise ZeroDivisionError

        def durable(number: int, extent: PendingExtent) -> None:
            seen.append((number, f"{len(extent.entries)} entries"))

        def note(number: int, what: str, *_: object) -> None:
            seen.append((number, what))

        for number, managed in enumerate(logs):
            managed.on_durable = partial(durable, number)
            managed.on_counted = partial(note, number, "counted")
            managed.on_group = partial(note, number, "notice")
        logs[3].on_durable = logs[3].on_group = logs[5].on_counted = mistake
        for managed in reversed(logs):
            managed.append(b"x" * (300 << 10 if managed is logs[7] else 1), 1, None)
            managed.append(b"y", 1, None)
        assert store.journal.pending_bytes == (300 << 10) + 39 + 40
        await asyncio.sleep(0)
        waiting.pop()(None)
        wanted = [(number, what) for number in range(40) for what in ("2 entries", "counted", "notice")]
        wanted[7 * 3 : 8 * 3] = [(7, "1 entries"), (7, "counted")] * 2 + [(7, "notice")]
        for gone in ((3, "2 entries"), (3, "counted"), (3, "notice"), (5, "counted")):
            wanted.remove(gone)
        assert seen == wanted
        assert store.journal.pending_bytes == 0
        assert [managed.end for managed in logs] == [2] * 40
        assert store.journal.latency.entries == 80
        await store.close()

    asyncio.run(main())


def test_what_was_not_written_when_it_was_closed_is_never_written(tmp_path: Path) -> None:
    """A store that could not be opened gives its directory back, and another one may have it by then."""

    async def main() -> None:
        store = LocalLedgerStore(OsFileSystem(str(tmp_path)), SystemClock())
        store.open()
        managed = store.open_log("a")
        await store.journal.drain()
        writes = store.journal.writes
        managed.append(b"x", 1, None)
        store.journal.close()
        await asyncio.sleep(0.01)
        assert store.journal._writing is None
        assert store.journal.writes == writes

    asyncio.run(main())


async def with_an_entry(path: Path) -> tuple[LocalLedgerStore, ManagedLedger]:
    store = LocalLedgerStore(OsFileSystem(str(path)), SystemClock())
    store.open()
    managed = store.open_log("a")
    managed.append(b"x", 1, None)
    await store.journal.drain()
    return store, managed


def test_a_group_of_which_all_is_refused_is_no_group(tmp_path: Path) -> None:
    """On a full disk each entry would cost a block without anything in it."""

    async def main() -> None:
        store, managed = await with_an_entry(tmp_path)
        refused: list[object] = []
        managed.on_failed = lambda extent, error: refused.append(error)
        writes, store.journal.full = store.journal.writes, PersistenceError("full")
        managed.append(b"y", 1, None)
        await asyncio.sleep(0.01)
        assert refused == [store.journal.full]
        await asyncio.sleep(0.01)
        assert store.journal.writes == writes
        store.journal.full = None
        managed.append(b"z", 1, None)
        await store.journal.drain()
        assert managed.end == 2
        await store.close()

    asyncio.run(main())


def test_what_is_published_again_at_a_refusal_is_refused_in_its_turn(tmp_path: Path) -> None:
    """Nothing is written of it while the disk is full."""

    async def main() -> None:
        store, managed = await with_an_entry(tmp_path)
        refused: list[object] = []

        def again(extent: PendingExtent, error: PersistenceError) -> None:
            refused.append(error)
            if len(refused) < 3:
                managed.append(b"again", 1, None)

        managed.on_failed = again
        store.journal.full = PersistenceError("full")
        managed.append(b"y", 1, None)
        await asyncio.sleep(0.05)
        assert refused == [store.journal.full] * 3
        assert managed.end == 1
        await store.close()

    asyncio.run(main())


def test_a_closed_journal_has_no_timer_left(tmp_path: Path) -> None:
    async def main() -> None:
        store = LocalLedgerStore(OsFileSystem(str(tmp_path)), SystemClock(), StoreSettings(ack_delay_seconds=60))
        store.open()
        managed = store.open_log("a")
        cursor = managed.open_cursor("s", 0)
        managed.append(b"x", 1, None)
        await store.journal.drain()
        cursor.acknowledge((0,))
        timer = store.journal._lazy
        assert timer is not None
        assert not timer.cancelled()
        store.journal.close()
        assert timer.cancelled()
        assert store.journal._lazy is None

    asyncio.run(main())
