"""Writes that fail: nothing answered is undone, nothing that must not be lost is forgotten, writing goes on."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from magnetar.model.errors import PersistenceError, QuotaExceededError
from magnetar.runtime.clock import SystemClock
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.log.write_group import PendingExtent
from magnetar.testing.kit.virtual_loop import InlineExecutor
from tests.support.loop_turns import settled
from tests.support.simulated_store import Disk, publish, simulated
from tests.support.store_lives import (
    SMALL,
    append,
    disk,
    killed,
    numbered,
    opened,
    read,
    run,
)


def test_a_delete_a_trim_and_a_cursor_delete_survive_a_failed_write() -> None:
    async def main() -> None:
        files = disk()
        store = opened(files)
        gone, kept = store.open_log("gone"), store.open_log("kept")
        cursor = kept.open_cursor("old", 0)
        await append(store, gone, *numbered(0, 5))
        await append(store, kept, *numbered(0, 25))
        cursor.acknowledge_until(24)
        await store.journal.drain()
        answered: list[str] = []
        files.fail("sync")
        store.delete_log("gone", lambda: answered.append("log"))
        kept.delete_cursor("old", lambda: answered.append("cursor"))
        assert kept.trim(20) == 2
        await settled()
        assert answered == []
        await append(store, kept, *numbered(25, 26))
        assert answered == ["log", "cursor"]
        store = opened(await killed(store, files))
        assert store.names() == ["kept"]
        again = store.open_log("kept")
        assert again.cursors == {}
        assert again.first == 20
        assert await read(again, 20) == numbered(20, 26)

    run(main())


def test_a_log_born_in_a_failed_write_exists_once_a_later_one_succeeds() -> None:
    async def main() -> None:
        files = disk()
        store = opened(files)
        files.fail("append")
        managed = store.open_log("a")
        await settled()
        answered: list[str] = []
        managed.open_cursor("s", 0, done=lambda: answered.append("s"))
        await append(store, store.open_log("b"), b"x")
        assert answered == ["s"]
        store = opened(await killed(store, files))
        assert sorted(store.names()) == ["a", "b"]
        assert list(store.open_log("a").cursors) == ["s"]

    run(main())


def test_what_was_on_the_disk_before_is_opened_while_the_disk_takes_nothing() -> None:
    """Reading needs no write: the record of the ledger that a new life begins is not waited for (decision 069)."""

    async def main() -> None:
        files = disk()
        store = opened(files)
        managed = store.open_log("a")
        cursor = managed.open_cursor("s", 0)
        assert not cursor.recorded
        await append(store, managed, *numbered(0, 5))
        assert cursor.recorded
        store = opened(await killed(store, files))
        files.faults.append_error_rate = 1.0
        answers: list[str] = []
        again = store.open_log("a", lambda: answers.append("a"), lambda error: answers.append("a refused"))
        store.open_log("b", lambda: answers.append("b"), lambda error: answers.append("b refused"))
        await settled()
        assert answers == ["a", "b refused"]
        assert again.cursors["s"].recorded
        assert await read(again) == numbered(0, 5)
        files.faults.append_error_rate = 0.0
        await append(store, again, b"after")
        store = opened(await killed(store, files))
        assert sorted(store.names()) == ["a", "b"]
        assert await read(store.open_log("a")) == [*numbered(0, 5), b"after"]

    run(main())


def test_only_a_write_tells_that_a_disk_which_failed_takes_writes_again() -> None:
    async def main() -> None:
        files = disk()
        store = opened(files)
        managed = store.open_log("a")
        await append(store, managed, b"first")
        answers: list[object] = []
        store.when_records_are_taken(answers.append)
        assert answers == [None], "a healthy disk is not asked"
        files.fail("sync", times=2)
        managed.append(b"lost", 1, None)
        await settled()
        writes = store.journal.writes
        store.when_entries_are_taken(lambda error: answers.append(type(error)))
        await settled()
        assert answers == [None, PersistenceError]
        store.when_entries_are_taken(answers.append)
        await settled()
        assert answers == [None, PersistenceError, None]
        assert store.journal.writes == writes + 1
        store.journal.full = PersistenceError("the disk is full: test")
        store.when_entries_are_taken(lambda error: answers.append((type(error), str(error))))
        store.when_records_are_taken(answers.append)
        assert answers[3:] == [(QuotaExceededError, "the disk is full: test"), None]

    run(main())


def test_failed_entries_are_gone_and_the_next_ones_take_their_ordinals_in_a_new_ledger() -> None:
    async def main() -> None:
        files = disk()
        store = opened(files)
        managed = store.open_log("a")
        failed: list[list[Any]] = []
        managed.on_failed = lambda extent, error: failed.append(list(extent.tags))
        await append(store, managed, *numbered(0, 5))
        files.fail("sync")
        managed.append(b"lost 1", 1, 1)
        await settled()
        managed.append(b"lost 2", 1, 2)
        assert failed == [[1]]
        await append(store, managed, b"after")
        wanted = [*numbered(0, 5), b"lost 2", b"after"]
        assert await read(managed) == wanted
        store = opened(await killed(store, files))
        assert await read(store.open_log("a")) == wanted

    run(main())


def test_a_failing_disk_does_not_use_up_file_descriptors() -> None:
    async def main() -> None:
        files = disk()
        store = opened(files)
        managed = store.open_log("a")
        closed = 0
        opening = files.open

        class Counted:
            def __init__(self, file: Any) -> None:
                self._file = file

            def __getattr__(self, name: str) -> Any:
                return getattr(self._file, name)

            def close(self) -> None:
                nonlocal closed
                closed += 1
                self._file.close()

        files.open = lambda name, **how: Counted(opening(name, **how))  # type: ignore[method-assign]
        files.fail("append", times=3)
        for _ in range(3):
            managed.append(b"x", 1, None)
            await settled()
        assert closed == 3

    run(main())


def test_trimming_waits_for_entries_that_are_still_being_written() -> None:
    async def main() -> None:
        files = disk()
        store = opened(files)
        managed = store.open_log("a")
        await append(store, managed, *numbered(0, 5))
        for entry in numbered(5, 15):
            managed.append(entry, 1, None)
        # ledger 1 is closed, holds 5 durable entries and gets 5 more
        assert managed.trim(5) == 0
        await store.journal.drain()
        assert await read(managed) == numbered(0, 15)
        assert managed.trim(10) == 1

    run(main())


class HeldExecutor(InlineExecutor):
    """Keeps the work until the test has it done."""

    def __init__(self) -> None:
        self.held: list[tuple[Future[Any], Any]] = []
        self.holding = True

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        if not self.holding:
            return super().submit(fn, *args, **kwargs)
        future: Future[Any] = Future()
        self.held.append((future, lambda: fn(*args, **kwargs)))
        return future

    async def release(self) -> None:
        """Do the oldest piece of work."""
        future, work = self.held.pop(0)
        future.set_result(work())
        await settled()


def test_an_acknowledgment_timer_that_fires_during_a_write_does_not_stop_the_journal() -> None:
    async def main() -> None:
        files = disk()
        writer = HeldExecutor()
        settings = replace(SMALL, ack_delay_seconds=0.01)
        store = LocalLedgerStore(
            files, SystemClock(), settings, lambda name: writer if name == "writer" else InlineExecutor()
        )
        store.open()
        managed = store.open_log("a")
        cursor = managed.open_cursor("s", 0)
        managed.append(b"0", 1, None)
        await settled()
        await writer.release()
        managed.append(b"1", 1, None)
        await settled()
        cursor.acknowledge((0,))  # the timer starts while a write is under way
        await writer.release()  # the next group is written at once, timer and all
        await asyncio.sleep(0.03)  # the timer fires while nothing waits
        await writer.release()
        managed.append(b"2", 1, None)
        await settled()
        assert writer.held, "nothing is written any more"
        await writer.release()
        assert managed.end == 3

    run(main())


def test_a_cursor_deleted_in_the_same_group_stays_deleted() -> None:
    async def main() -> None:
        files = disk()
        store = opened(files)
        managed = store.open_log("a")
        await append(store, managed, *numbered(0, 3))
        old = managed.open_cursor("s", 0)
        managed.delete_cursor("s")
        await store.journal.drain()
        old.reset(0)  # a consumer that does not know yet
        await store.journal.drain()
        store = opened(await killed(store, files))
        assert store.open_log("a").cursors == {}

    run(main())


def test_an_error_in_one_topics_callback_does_not_keep_the_others_results_back() -> None:
    async def main() -> None:
        files = disk()
        store = opened(files)
        bad, good = store.open_log("bad"), store.open_log("good")
        await store.journal.drain()

        def mistake(extent: PendingExtent) -> None:
            raise ZeroDivisionError

        bad.on_durable = mistake
        calls: list[str] = []
        good.on_group = lambda: calls.append("group")
        bad.append(b"x", 1, None)
        good.append(b"y", 1, None)
        store.journal.barrier(lambda: calls.append("barrier"))
        await store.journal.drain()
        assert calls == ["barrier", "group"]
        assert await read(good) == [b"y"]

    run(main())


def test_what_lies_behind_the_end_of_a_span_is_not_read() -> None:
    """Whole entries may lie there, in the index too: a write that was refused, and whose ordinals others have now."""

    async def main() -> None:
        files = disk()
        store = opened(files)
        managed = store.open_log("a")
        await append(store, managed, *numbered(0, 3))
        await append(store, managed, *numbered(3, 5))
        store = opened(await killed(store, files))
        managed = store.open_log("a")
        span = managed.spans.holding(0)
        assert span is not None
        assert span.end == 5
        span.end = 3
        found: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        managed.read(0, 10, 1 << 20, found.set_result)
        assert (await found).entries == numbered(0, 1)
        await settled()
        assert managed.cached_runs.find(2, 10, 1 << 20) is not None
        assert managed.cached_runs.find(3, 10, 1 << 20) is None

    run(main())


def test_what_one_topic_makes_of_a_failure_keeps_no_other_from_hearing_of_it() -> None:
    async def main() -> None:
        files = disk()
        store = opened(files)
        logs = [store.open_log(name) for name in "abc"]
        for managed in logs:
            await append(store, managed, b"before")
        heard: list[str] = []

        def fails(extent: PendingExtent, error: PersistenceError) -> None:
            heard.append("b")
            raise ValueError("a fault of the topic's")

        def refused(error: PersistenceError) -> None:
            heard.append("barrier")
            raise ValueError("a fault of one who waits")

        logs[0].on_failed = lambda extent, error: heard.append("a")
        logs[1].on_failed = fails
        logs[2].on_failed = lambda extent, error: heard.append("c")
        files.fail("sync")
        for managed in logs:
            managed.append(b"lost", 1, None)
        store.journal.barrier(lambda: None, refused)
        store.journal.barrier(lambda: None, lambda error: heard.append("another barrier"))
        await settled()
        assert heard == ["a", "b", "c", "barrier", "another barrier"]
        assert store.journal.pending_bytes == 0
        assert [managed.pending for managed in logs] == [0, 0, 0]
        for managed in logs:
            await append(store, managed, b"after")
        store = opened(await killed(store, files))
        for name in "abc":
            assert await read(store.open_log(name)) == [b"before", b"after"]

    run(main())


def test_a_record_that_cannot_be_made_does_not_end_all_writing() -> None:
    """What one cursor or feature cannot say is refused with its group; the journal goes on with the next."""

    async def main() -> None:
        files = disk()
        store = opened(files)
        managed = store.open_log("a")
        await append(store, managed, b"before")
        failed: list[object] = []
        managed.on_failed = lambda extent, error: failed.append(type(error))
        managed.append(b"lost", 1 << 32, None)  # no record holds so many messages
        await settled()
        assert failed == [PersistenceError]
        assert (managed.pending, store.journal.pending_bytes) == (0, 0)
        await append(store, managed, b"after")
        store = opened(await killed(store, files))
        assert await read(store.open_log("a")) == [b"before", b"after"]

    run(main())


@simulated
async def test_a_refused_write_of_which_nothing_is_left_delays_no_acknowledgement(disk: Disk) -> None:
    """The second until what must not be lost is tried again is not for what comes after it."""
    store = disk.open()
    log = store.open_log("a")
    cursor = log.open_cursor("s", 0)
    await publish(store, log, 0, 2)
    refused: list[PersistenceError] = []
    disk.files.fail("append", times=1)
    store.journal.roll(lambda: None, refused.append)
    await asyncio.sleep(0.01)
    assert len(refused) == 1
    writes = store.journal.writes
    cursor.acknowledge((0,))
    await asyncio.sleep(0.1)
    assert store.journal.writes == writes + 1
    await store.close()
