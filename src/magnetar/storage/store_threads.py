"""The threads and the memory that stores work with; any number of stores may share them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Final

_ARCHIVE_THREADS: Final = 4
"""managedLedgerOffloadReadThreads is 2 in Apache Pulsar."""


class StoreThreads:
    """Executors, each with one worker but for ``archive``; made by one owner, who closes them after the stores.

    ``writer`` begins segments, ``reader`` reads entries, ``ahead`` waits for the disk in its stead, ``keeper`` writes
    indexes and checkpoints and removes segments, ``archive`` reaches copies of ledgers, which may take long.
    """

    def __init__(self, make: Callable[[str], Executor] | None = None) -> None:
        """``make`` gives the executor of a name; threads of their own if it is not given."""
        make = make or _thread
        self.writer = make("writer")
        self.reader = make("reader")
        self.ahead = make("ahead")
        self.keeper = make("keeper")
        self.archive = make("archive")

    def close(self) -> None:
        """Wait for what is under way and end the threads."""
        for executor in (self.writer, self.reader, self.ahead, self.keeper, self.archive):
            executor.shutdown(wait=True)


def _thread(name: str) -> Executor:
    # an object store may be reached over a network: a request that is slow must not keep the others waiting
    return ThreadPoolExecutor(_ARCHIVE_THREADS if name == "archive" else 1, thread_name_prefix=f"magnetar-{name}")
