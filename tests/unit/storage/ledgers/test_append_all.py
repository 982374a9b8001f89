"""Many entries are put into a log in one call as they are one by one: in the same ledgers, extents and order."""

from __future__ import annotations

import random

from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.log.write_group import PendingExtent
from magnetar.storage.store import LedgerStore
from magnetar.storage.store_settings import StoreSettings
from tests.support.simulated_store import Disk, read_all, simulated

SETTINGS = StoreSettings(ledger_entries_max=200, ledger_min_rollover_ms=0, cache_bytes=64 << 20)


class Twins:
    """Two logs of which one takes its entries one by one; the extents of both, without what differs by name."""

    def __init__(self, store: LedgerStore) -> None:
        self.store = store
        self.single, self.many = store.open_log("single"), store.open_log("many")
        self.extents: dict[str, list[object]] = {"single": [], "many": []}
        for log in (self.single, self.many):
            log.on_durable = self._durable

    def _durable(self, extent: PendingExtent) -> None:
        log = extent.owner
        assert isinstance(log, ManagedLedger)
        counts = extent.counts or [1] * len(extent.entries)
        self.extents[log.name].append(
            (extent.entry, extent.ordinal, extent.index, extent.entries, counts, extent.tags, extent.size)
        )

    def put(self, entries: list[bytes], first: int) -> None:
        """Give the same to both."""
        tags: list[object] = list(range(first, first + len(entries)))
        for entry, tag in zip(entries, tags, strict=True):
            self.single.append(entry, 1, tag)
        before = self.store.journal.pending_bytes
        self.many.append_all(entries, tags)
        assert self.store.journal.pending_bytes - before == sum(map(len, entries))
        assert self.many.next == self.single.next

    async def compare(self) -> None:
        """Both have the same, on disk as well."""
        await self.store.journal.drain()
        assert self.extents["many"] == self.extents["single"]
        tables = [
            [(ledger.ordinal, ledger.entries, ledger.messages, ledger.bytes) for ledger in log.table.ledgers]
            for log in (self.single, self.many)
        ]
        assert tables[0] == tables[1]
        assert self.many.index == self.single.index


@simulated
async def test_any_sizes_and_numbers(disk: Disk) -> None:
    disk.settings = SETTINGS
    rng = random.Random(7)
    store = disk.open()
    twins = Twins(store)
    number = 0
    for step in range(120):
        most = rng.choice((10, 200, 4_000, 100_000))
        entries = [bytes(rng.randrange(1, most)) for _ in range(rng.choice((1, 2, 7, 60, 450)) if most < 5_000 else 5)]
        twins.put(entries, number)
        number += len(entries)
        if rng.random() < 0.2:
            for log in (twins.single, twins.many):
                log.append(b"a batch", 5, "batch")
        if rng.random() < 0.4:
            await store.journal.drain()
        if step % 40 == 39:
            await twins.compare()
    await twins.compare()
    assert len(twins.many.table.ledgers) > 10
    assert await read_all(twins.many) == await read_all(twins.single)
    await store.close()


@simulated
async def test_the_entry_that_fills_an_extent_belongs_to_it(disk: Disk) -> None:
    disk.settings = SETTINGS
    store = disk.open()
    twins = Twins(store)
    for last in (-1, 0, 1):
        twins.put([bytes(1 << 17), bytes((1 << 17) + last), b"next", b"after"], 0)
        await twins.compare()
    assert await read_all(twins.many) == await read_all(twins.single)
    await store.close()


@simulated
async def test_nothing_is_nothing(disk: Disk) -> None:
    store = disk.open()
    log = store.open_log("a")
    log.append_all([], [])
    assert (log.next, log.pending, store.journal.pending_bytes) == (0, 0, 0)
    await store.close()


@simulated
async def test_the_last_entry_of_a_ledger_belongs_to_its_extent(disk: Disk) -> None:
    """Nothing of the ledger's 200 is left over, and the next entry begins another."""
    disk.settings = SETTINGS
    store = disk.open()
    twins = Twins(store)
    for count in (199, 2, 198, 1, 1, 200, 201):
        twins.put([bytes((number % 251,)) for number in range(count)], 0)
    await twins.compare()
    assert [ledger.entries for ledger in twins.many.table.ledgers] == [200, 200, 200, 200, 2]
    await store.close()
