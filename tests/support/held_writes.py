"""A store of which each write ends when the test says so."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from magnetar.runtime.clock import SystemClock
from magnetar.storage.backends.committer import Committer
from magnetar.storage.backends.files import File, OsFileSystem
from magnetar.storage.backends.journal_backend import Chunk, Committed
from magnetar.storage.backends.zeros_ahead import NO_ZEROS, Zeros
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.store_settings import StoreSettings


class HeldWrites:
    """A committer that keeps the callbacks of what it has written in ``waiting``.

    The first write into a segment goes another way and is not held.
    """

    def __init__(self) -> None:
        self.waiting: list[Committed] = []

    def commit(
        self, file: File, at: int, chunks: Sequence[Chunk], sync: bool, done: Committed, lead: int | None = None,
        zeros: Zeros = NO_ZEROS,
    ) -> None:  # fmt: skip
        file.write(at, chunks)
        self.waiting.append(done)

    def give_back_memory(self) -> None: ...

    def close(self) -> None: ...


def held_store(path: Path, settings: StoreSettings | None = None) -> tuple[LocalLedgerStore, list[Committed]]:
    """Return an open store and the callbacks of its writes that have not ended."""
    held = HeldWrites()

    def hold(spare: Committer) -> HeldWrites:
        return held

    store = LocalLedgerStore(OsFileSystem(str(path)), SystemClock(), settings or StoreSettings(), committer=hold)
    store.open()
    return store, held.waiting
