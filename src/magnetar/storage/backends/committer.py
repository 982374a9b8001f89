"""How a group reaches the disk: written, then synced, without the event loop waiting.

A thread is the plain way and the simulator's. Its cost is not the system calls but the way back: a thread that returns
from one needs the interpreter's lock, which a busy loop gives up only every few milliseconds, and sometimes not for far
longer (docs/decisions/002-storage-layout.md measures it). :mod:`magnetar.storage.backends.sync_process` is the way
around it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import suppress
from typing import Protocol

from magnetar.storage.backends.files import File
from magnetar.storage.backends.journal_backend import Chunk, Committed
from magnetar.storage.backends.zeros_ahead import NO_ZEROS, Zeros


class Committer(Protocol):
    """Makes one group at a time durable."""

    def commit(
        self, file: File, at: int, chunks: Sequence[Chunk], sync: bool, done: Committed, lead: int | None = None,
        zeros: Zeros = NO_ZEROS,
    ) -> None:  # fmt: skip
        """Write ``chunks`` from ``at`` on and, if ``sync``, sync; ``done`` is called on the loop, never from within
        this call.

        ``lead``: without the first ``lead`` bytes, which are zero, the chunks begin and end on a page of the file.
        ``zeros``: to be written when the chunks are durable; whether that succeeds is no matter of ``done``.
        """
        ...

    def give_back_memory(self) -> None:
        """Give memory that the next group would take anew back to the system; harmless at any time."""
        ...

    def close(self) -> None:
        """Release everything; nothing is under way."""
        ...


class ThreadCommitter:
    """Writes and syncs in an executor with one worker."""

    def __init__(self, writer: Executor) -> None:
        self._writer = writer

    def commit(
        self, file: File, at: int, chunks: Sequence[Chunk], sync: bool, done: Committed, lead: int | None = None,
        zeros: Zeros = NO_ZEROS,
    ) -> None:  # fmt: skip
        work = asyncio.get_running_loop().run_in_executor(self._writer, _write, file, at, chunks, sync, zeros)
        work.add_done_callback(lambda future: done(future.exception()))

    def give_back_memory(self) -> None:
        """Nothing: it keeps none."""

    def close(self) -> None:
        """Nothing: the executor is its owner's."""


def _write(file: File, at: int, chunks: Sequence[Chunk], sync: bool, zeros: Zeros) -> None:
    file.write(at, chunks)
    if sync:
        file.sync()
    if zeros.size:
        with suppress(OSError):  # before the answer: the file may be closed after it
            file.write(zeros.at, [bytes(zeros.size)])
