"""What the reader of entries counts, reads ahead, names and refuses."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest

from magnetar.model.errors import PersistenceError, UnreadableError
from magnetar.storage.backends.journal_backend import segment_name
from magnetar.storage.ledgers.archive import ArchivedEntries
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.ledgers.stored_run import StoredRun
from magnetar.storage.log.segment import ExtentOffsets
from magnetar.storage.store import LedgerStore
from magnetar.storage.store_settings import StoreSettings
from tests.support.simulated_store import Disk, simulated

COLD = StoreSettings(segment_bytes=1 << 20, cache_bytes=1, ledger_entries_max=1000, ledger_min_rollover_ms=0)
WARM = StoreSettings(segment_bytes=1 << 20, cache_bytes=8 << 20, ledger_entries_max=1000, ledger_min_rollover_ms=0)


async def filled(store: LedgerStore, name: str, entries: int, size: int = 100) -> ManagedLedger:
    managed = store.open_log(name)
    for number in range(entries):
        managed.append(b"%d" % number + bytes(size), 1, None)
        await store.journal.drain()
    return managed


def asked(managed: ManagedLedger, start: int) -> asyncio.Future[Any]:
    answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    managed.read(start, 1000, 1 << 20, answer.set_result)
    return answer


async def reopened(disk: Disk, store: LedgerStore) -> LedgerStore:
    await store.close()
    disk.kill()
    return disk.open()


@simulated
async def test_it_counts_reads_and_bytes_and_what_each_log_missed(disk: Disk) -> None:
    """From 0 on; what was asked for while it was being read is one read."""
    disk.settings = COLD
    store = disk.open()
    await filled(store, "a", 3)
    await filled(store, "b", 1, 5_000)
    store = await reopened(disk, store)
    reader, a, b = store.reader, store.open_log("a"), store.open_log("b")
    counted = ("reads", "bytes_read", "copies_read", "copy_bytes_read", "joined", "begun")
    assert [getattr(reader, name) for name in counted] == [0] * 6
    assert reader.missed == {}
    first, same = asked(a, 0), asked(a, 0)
    assert (reader.begun, reader.joined) == (1, 1)
    assert (await first).entries == (await same).entries == [b"0" + bytes(100)], "what was written together"
    entries, size, failures, reads = reader.missed[a.id]
    assert (entries, failures, reads) == (3, 0, 1)
    assert reader.reads == 1
    assert 3 * 100 < size < reader.bytes_read < 2 * size, "with what lies between them"
    before = reader.bytes_read
    await asked(b, 0)
    assert reader.missed[b.id][0] == 1 and 5_000 < reader.missed[b.id][1] < 5_200
    assert reader.reads == 2
    assert 0 <= reader.bytes_read - before - reader.missed[b.id][1] < 100
    assert (reader.copies_read, reader.copy_bytes_read) == (0, 0)
    disk.files.flip_bit(segment_name(b.spans.holding(0).segment), disk.files.open(segment_name(1)).size() // 2)  # type: ignore[union-attr]
    assert isinstance(await asked(b, 0), UnreadableError)
    assert reader.missed[b.id][2:] == [1, 1]
    await store.close()


@simulated
async def test_what_one_makes_of_a_read_keeps_no_other_from_its_answer(disk: Disk) -> None:
    disk.settings = COLD
    store = disk.open()
    await filled(store, "a", 3)
    store = await reopened(disk, store)
    a = store.open_log("a")

    def fails(result: object) -> None:
        raise ValueError("a fault of the subscription's")

    a.read(0, 1000, 1 << 20, fails)
    assert (await asyncio.wait_for(asked(a, 0), 10)).entries == [b"0" + bytes(100)]
    place = a.spans.holding(0)
    assert place is not None
    disk.files.flip_bit(segment_name(place.segment), store.reader.places(place).offsets[1] + 70)
    a.read(1, 1000, 1 << 20, fails)
    assert isinstance(await asyncio.wait_for(asked(a, 1), 10), UnreadableError)
    await store.close()


@simulated
async def test_who_goes_on_where_the_last_read_ended_is_read_ahead_for(disk: Disk) -> None:
    """The next pieces are on their way into the cache while the first is being sent; who reads elsewhere gets one."""
    disk.settings = WARM
    store = disk.open()
    await filled(store, "a", 40, 200_000)
    store = await reopened(disk, store)
    reader, a = store.reader, store.open_log("a")
    run = await asked(a, 7)
    assert (reader.begun, run.first, a.read_end) == (1, 7, 9), "half a megabyte"
    await asked(a, 20)
    assert reader.begun == 2
    end = a.read_end
    await asked(a, end)
    await asyncio.sleep(1)
    begun = reader.begun
    assert 3 < begun <= 6
    assert a.cached(end, 1, 1) is not None and a.cached(a.read_end - 1, 1, 1) is not None
    assert a.read_end > end + 6
    await store.close()


@simulated
async def test_nothing_is_read_ahead_that_is_there_or_past_the_end(disk: Disk) -> None:
    disk.settings = WARM
    store = disk.open()
    await filled(store, "a", 4, 200_000)
    store = await reopened(disk, store)
    reader, a = store.reader, store.open_log("a")
    await asked(a, 0)
    await asked(a, 2)
    await asyncio.sleep(1)
    assert (reader.begun, a.read_end) == (2, 4), "that was the end"
    await store.close()


@pytest.mark.parametrize("left", [0, 1, 2])
def test_what_the_index_does_not_have_is_a_hole_up_to_what_it_has(left: int) -> None:
    """At the beginning of what a segment holds of a ledger, or all of it: nothing else is read in its place."""

    @simulated
    async def story(disk: Disk) -> None:
        disk.settings = COLD
        store = disk.open()
        await filled(store, "a", 3)
        store = await reopened(disk, store)
        a = store.open_log("a")
        span = a.spans.holding(0)
        assert span is not None
        whole, found = store.reader.places(span), ExtentOffsets()
        for at in range(3 - left, 3):
            found.add(whole.firsts[at], whole.offsets[at], whole.lengths[at])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(store.reader), "places", lambda reader, span: found)
            error = await asked(a, 0)
        assert isinstance(error, UnreadableError) and error.stop == 3 - left
        assert f"ordinal 0 of log {a.id} is missing in {segment_name(span.segment)}" in str(error)
        assert store.reader.reads == 0
        assert (await asked(a, 0)).entries == [b"0" + bytes(100)]
        await store.close()

    story()


def test_damage_is_named_once_and_anything_else_each_time(caplog: pytest.LogCaptureFixture) -> None:
    @simulated
    async def story(disk: Disk) -> None:
        disk.settings = COLD
        store = disk.open()
        await filled(store, "a", 2, 3_000)
        store = await reopened(disk, store)
        a = store.open_log("a")
        await asked(a, 0)  # the index is in memory from now on
        with caplog.at_level(logging.ERROR):
            disk.files.fail("read", times=2)
            for _ in range(2):
                error = await asked(a, 0)
                assert type(error) is PersistenceError and f"a: reading {segment_name(1)} failed" in str(error)
            assert caplog.text.count("failed: ") == 2
            disk.files.flip_bit(segment_name(1), disk.files.open(segment_name(1)).size() - 1000)
            for _ in range(3):
                assert isinstance(await asked(a, 1), UnreadableError)
            assert caplog.text.count("cannot be read at the entries of log") == 1
        await store.close()

    story()


@pytest.mark.parametrize(
    ("entry", "count", "asked_for", "fits"),
    [(0, 5, 0, True), (0, 5, 4, True), (2, 3, 2, True), (2, 3, 1, False), (0, 3, 3, False), (3, 3, 4, False)],
)
def test_what_an_archive_gives_has_to_be_what_was_asked_for(entry: int, count: int, asked_for: int, fits: bool) -> None:
    """A piece holds the entry, and ends within the ledger."""

    @simulated
    async def story(disk: Disk) -> None:
        store = disk.open()
        piece = ArchivedEntries(entry, [b"x%d" % n for n in range(count)], None, 30 + entry)
        archive: Any = SimpleNamespace(piece=lambda copy, ledger, at: piece)
        reader: Any = store.reader
        reader._archive = archive
        ledger = cast(Any, SimpleNamespace(offload=SimpleNamespace(key="copy"), ordinal=100, id=7, entries=5))
        if fits:
            (found,) = reader._read_copy(ledger, 100 + asked_for)
            assert found.run == StoredRun(100 + entry, 7, entry, piece.entries, None, 30 + entry)
            assert (found.size, reader.copies_read, reader.copy_bytes_read) == (2 * count, 1, 2 * count)
        else:
            text = f"copy gave entries {entry} to {entry + count - 1} of ledger 7 where entry {asked_for} was asked for"
            with pytest.raises(PersistenceError, match=text):
                reader._read_copy(ledger, 100 + asked_for)
            assert reader.copies_read == 0
        await store.close()

    story()
