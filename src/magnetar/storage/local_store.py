"""A store on a directory of this machine, with threads of its own: what a standalone broker runs."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor

from typing_extensions import override

from magnetar.runtime.clock import Clock
from magnetar.storage.backends.committer import Committer, ThreadCommitter
from magnetar.storage.backends.files import FileSystem
from magnetar.storage.backends.local_journal import LocalJournal
from magnetar.storage.ledgers.archive import Archive
from magnetar.storage.store import LedgerStore
from magnetar.storage.store_settings import StoreSettings
from magnetar.storage.store_threads import StoreThreads


class LocalLedgerStore(LedgerStore):
    """A :class:`LedgerStore` whose journal is a directory; owns its threads and its committer.

    ``executors`` gives the executor of a name (:class:`StoreThreads`), ``committer`` makes one of a spare that commits
    through a thread.
    """

    def __init__(
        self, files: FileSystem, clock: Clock, settings: StoreSettings | None = None,
        executors: Callable[[str], Executor] | None = None, committer: Callable[[Committer], Committer] | None = None,
        archive: Archive | None = None,
    ) -> None:  # fmt: skip
        threads = StoreThreads(executors)
        spare = ThreadCommitter(threads.writer)
        self._committer = committer(spare) if committer else spare
        super().__init__(LocalJournal(files, threads.writer, self._committer), clock, threads, settings, archive)

    @override
    def open(self) -> None:
        try:
            super().open()
        except BaseException:
            self._committer.close()  # a start that fails leaves no process and no thread running
            self._threads.close()
            raise

    def give_back_memory(self) -> None:
        """Give what large groups left in memory back to the system."""
        self._committer.give_back_memory()

    @override
    async def close(self) -> None:
        try:
            await super().close()
        finally:
            self._committer.close()
            self._threads.close()
