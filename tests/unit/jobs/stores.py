"""A real store in a real directory, whose entries are what producers send; read directly while it works."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from magnetar.jobs.reader.unit_reader import Access, Entries, Missing, Unit, entries
from magnetar.protocol.entries import EntryMetadata, build_entry
from magnetar.runtime.clock import SystemClock
from magnetar.storage.backends.files import OsFileSystem
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.store import LedgerStore
from magnetar.storage.store_settings import StoreSettings
from magnetar.testing.kit.virtual_loop import InlineExecutor

T = "persistent://public/default/t"
SMALL = StoreSettings(segment_bytes=4096, cache_bytes=1, ledger_entries_max=10, ledger_min_rollover_ms=0)


def open_store(directory: Path, settings: StoreSettings = SMALL) -> LedgerStore:
    store = LocalLedgerStore(
        OsFileSystem(str(directory / "ledgers")), SystemClock(), settings, lambda _: InlineExecutor()
    )
    store.open()
    return store


def message(number: int, size: int = 20, *, producer: str = "p", sequence: int | None = None) -> bytes:
    """One unbatched entry whose payload begins with its number."""
    metadata = EntryMetadata(producer, number if sequence is None else sequence, 1_700_000_000_000 + number)
    return build_entry(metadata, (b"%d-" % number).ljust(size, b"."))


async def append(store: LedgerStore, log: ManagedLedger, sent: Sequence[bytes], group: int = 1) -> None:
    """So many entries per write."""
    for at in range(0, len(sent), group):
        for entry in sent[at : at + group]:
            log.append(entry, 1, None)
        await store.journal.drain()


def stored(access: Access, found: Sequence[Unit]) -> tuple[list[tuple[int, int, bytes]], list[Missing]]:
    """(ledger, entry, bytes) of everything in order, and what is missing."""
    out: list[tuple[int, int, bytes]] = []
    missing: list[Missing] = []
    for unit in found:
        for block in entries(access, unit):
            if isinstance(block, Missing):
                missing.append(block)
            else:
                out += rows(block)
    return out, missing


def rows(block: Entries) -> list[tuple[int, int, bytes]]:
    data = block.data.tobytes()
    columns = (column.tolist() for column in (block.ledgers, block.entries, block.offsets, block.lengths))
    return [(ledger, entry, data[at : at + length]) for ledger, entry, at, length in zip(*columns, strict=True)]
