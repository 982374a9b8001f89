"""What a log lets go at its front, against a list of its entries: before the record is durable, after it, and after a
start."""

from __future__ import annotations

import random

import pytest

from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.store import LedgerStore
from magnetar.storage.store_settings import StoreSettings
from magnetar.testing.simloop import run
from tests.support.simulated_store import Disk, publish, read_all, simulated

LEDGERS_OF_FIVE = StoreSettings(ledger_entries_max=5, ledger_min_rollover_ms=0, cache_bytes=1)


def entry(ordinal: int) -> bytes:
    return b"entry %d" % ordinal


def hidden_before(log: ManagedLedger, first: int) -> int:
    """The bytes of the first ledger's entries below ``first``."""
    ledgers = log.table.ledgers
    return sum(len(entry(ordinal)) for ordinal in range(ledgers[0].ordinal, first)) if ledgers else 0


async def same(log: ManagedLedger, first: int, end: int) -> None:
    assert (log.first, log.end) == (first, end)
    assert log.hidden_bytes == hidden_before(log, first)
    assert not log.spans.any_before(first)
    assert await read_all(log) == [entry(ordinal) for ordinal in range(first, end)]
    assert all(cursor.mark_delete >= first - 1 for cursor in log.cursors.values())


@pytest.mark.parametrize("seed", range(30))
def test_any_trims_between_entries_and_starts(seed: int) -> None:
    async def main() -> None:
        rng = random.Random(seed)
        disk = Disk(LEDGERS_OF_FIVE)
        store = disk.open()
        log = store.open_log("a")
        log.open_cursor("c", 0)
        first = end = 0
        for _ in range(25):
            more = rng.randrange(8)
            await publish(store, log, end, end + more)
            end += more
            keep_from = rng.randint(0, end + 2)
            begins = [ledger.ordinal for ledger in log.table.ledgers]
            whole = [begin for begin in begins[1:] if begin <= keep_from]
            expected, hidden = max([first, *whole]), None
            if rng.random() < 0.4:
                stop = min(keep_from, end)
                held = max([begin for begin in begins if begin <= stop], default=0)
                expected, hidden = max(expected, stop), sum(len(entry(ordinal)) for ordinal in range(held, stop))
            assert (log.trim(keep_from, hidden), log.first) == (len(whole), expected)
            first = expected
            await store.journal.drain()
            await same(log, first, end)
            match rng.randrange(6):
                case 0:
                    disk.kill()
                case 1:
                    disk.power_off()
                case 2:
                    await store.close()
                case _:
                    continue
            store = disk.open()
            log = store.open_log("a")
            await same(log, first, end)
        await store.close()

    run(seed, main())


async def _filled(disk: Disk, count: int) -> tuple[LedgerStore, ManagedLedger]:
    disk.settings = LEDGERS_OF_FIVE
    store = disk.open()
    log = store.open_log("a")
    await publish(store, log, 0, count)
    return store, log


@simulated
async def test_bytes_go_when_the_trim_is_durable(disk: Disk) -> None:
    store, log = await _filled(disk, 12)
    assert log.trim(7) == 1
    assert log.first == 5
    assert log.spans.any_before(5)
    await store.journal.drain()
    assert not log.spans.any_before(5)
    await store.close()


@simulated
async def test_nothing_goes_while_it_is_in_doubt_what_there_is(disk: Disk) -> None:
    store, log = await _filled(disk, 12)
    store.keep_all = "metadata are lost"
    assert (log.trim(12), log.trim(12, 5)) == (0, 0)
    await store.journal.drain()
    await same(log, 0, 12)
    store.keep_all = None
    assert log.trim(12) == 2
    await store.close()


@simulated
async def test_what_was_let_go_stays_so_whoever_asks_for_less(disk: Disk) -> None:
    store, log = await _filled(disk, 12)
    assert log.trim(8, 3 * len(entry(5))) == 1
    await store.journal.drain()
    for keep_from, hidden in ((0, None), (6, None), (6, len(entry(5))), (8, 3 * len(entry(5)))):
        before = store.journal.sequence
        assert log.trim(keep_from, hidden) == 0
        await store.journal.drain()
        assert store.journal.sequence == before, "nothing is written for it"
        await same(log, 8, 12)
    await store.close()


@pytest.mark.parametrize("hidden", [5, 8])
def test_a_trim_whose_record_was_lost_is_carried_out_at_the_start(hidden: int) -> None:
    """A checkpoint knew of it: the bytes go, and the next start knows of it without that checkpoint."""

    async def main() -> None:
        disk = Disk()
        store, log = await _filled(disk, 12)
        log.table.drop_front(1)
        log.hidden = hidden
        log.hidden_size = hidden_before(log, hidden)
        log.finish_trim()
        await store.journal.drain()
        await same(log, hidden, 12)
        disk.kill()
        again = disk.open()
        await same(again.open_log("a"), hidden, 12)
        await again.close()

    run(1, main())


@simulated
async def test_a_start_writes_nothing_where_no_trim_was_lost(disk: Disk) -> None:
    store, log = await _filled(disk, 12)
    log.trim(8, 3 * len(entry(5)))
    await store.journal.drain()
    before = store.journal.sequence
    log.finish_trim()
    await store.journal.drain()
    assert store.journal.sequence == before
    await store.close()


@pytest.mark.parametrize("end", ["close", "kill"])
def test_after_a_start_as_much_of_a_segment_is_needed_as_before_it(end: str) -> None:
    """The cleaner goes by that: what is hidden of a ledger whose segment stays is garbage in every life."""

    async def main() -> None:
        disk = Disk()
        store, log = await _filled(disk, 12)
        whole = sum(span.living for span in log.spans)
        log.trim(8, 3 * len(entry(5)))
        await store.journal.drain()
        needed = {number: store.occupancy.living(number) for number in store.occupancy.numbers()}
        assert 0 < sum(needed.values()) == sum(span.living for span in log.spans) < whole * 7 // 12
        for _ in range(2):
            if end == "close":
                await store.close()
            else:
                disk.kill()
            store = disk.open()
            assert {number: store.occupancy.living(number) for number in store.occupancy.numbers()} == needed
        await store.close()

    run(1, main())
