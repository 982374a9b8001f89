"""The disk of the simulator: :class:`magnetar.storage.backends.files.FileSystem` in memory, which forgets, tears and
fails.

A :class:`FaultFileSystem` is one process's view of a disk. :meth:`FaultFileSystem.crash` ends every view of that disk
(later calls on them raise EIO and change nothing) and returns the disk as the next process finds it; what may be
found is decided in :mod:`magnetar.testing.diskmodel`. Media that lie, fill up or break are switched on by
:attr:`FaultFileSystem.faults` (rates and sizes) and :meth:`FaultFileSystem.fail` (exact schedule).

Beyond the crash model:

* an append that fails has written some prefix, like ``writev``: ENOSPC what still fitted, EIO a random part;
* a failed ``sync`` of a file leaves its unsynced bytes in doubt for ever, even if a later sync succeeds; a failed
  sync of the directory leaves its changes pending for the next one (file systems journal them);
* a read never fails for lack of bytes, it is short at the end of the file, as ``pread`` is.

One thread at a time: the simulator has only one.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from magnetar.storage.backends.files import File
from magnetar.storage.backends.journal_backend import Chunk, ReadBuffer
from magnetar.testing.diskmodel import DiskDirectory, Inode

Operation = Literal["open", "append", "sync", "read", "truncate", "rename", "remove", "sync_directory", "lock", "stat"]

LOCK_NAME = "LOCK"
_ENDLESS = 1 << 40

_READING: frozenset[Operation] = frozenset({"read", "lock", "stat"})


class StoppedError(OSError):
    """The disk stopped in the middle of this call; the caller's process is as good as dead."""


@dataclass(slots=True)
class Faults:
    """What is wrong with the medium; may be changed at any time."""

    append_error_rate: float = 0.0
    sync_error_rate: float = 0.0
    read_error_rate: float = 0.0
    capacity_bytes: int | None = None
    lying_sync: bool = False
    """Syncs succeed and do nothing: a broken promise on purpose, to prove that a simulation would notice."""


@dataclass(slots=True)
class DiskCounters:
    """Calls that succeeded since the disk came to life, and the bytes they appended or read."""

    appends: int = 0
    appended_bytes: int = 0
    syncs: int = 0
    directory_syncs: int = 0
    reads: int = 0
    read_bytes: int = 0
    errors: int = 0


@dataclass(slots=True)
class _Plan:
    """The next ``skip`` calls go through, then ``times`` fail."""

    skip: int
    times: int
    code: int


class _Disk:
    """What all views share."""

    def __init__(self, directory: DiskDirectory, rng: random.Random, faults: Faults) -> None:
        self.directory = directory
        self.rng = rng
        self.faults = faults
        self.counters = DiskCounters()
        self.plans: dict[Operation, list[_Plan]] = {}
        self.holder: FaultFileSystem | None = None
        self.alive = True
        self.stop_in = 0
        self.on_stop: Callable[[], object] | None = None

    def enter(self, operation: Operation, rate: float = 0.0) -> None:
        """Every call of the seam passes here first."""
        if not self.alive:
            raise OSError(errno.EIO, f"{operation} by a process that crashed")
        if self.on_stop is not None and operation not in _READING:
            self.stop_in -= 1
            if self.stop_in < 0:
                self.alive = False
                self.on_stop()
                raise StoppedError(errno.EIO, f"the disk stopped during {operation}")
        plans = self.plans.get(operation, [])
        if plans:
            plan = plans[0]
            if plan.skip > 0:
                plan.skip -= 1
            else:
                plan.times -= 1
                if plan.times <= 0:
                    plans.pop(0)
                self.error(plan.code, operation)
        if rate and self.rng.random() < rate:
            self.error(errno.EIO, operation)

    def error(self, code: int, operation: str) -> None:
        self.counters.errors += 1
        raise OSError(code, f"{os.strerror(code)} (simulated, {operation})")

    def free_bytes(self) -> int | None:
        if self.faults.capacity_bytes is None:
            return None
        return max(0, self.faults.capacity_bytes - sum(inode.taken for inode in self.directory.live.values()))


class FaultFile:
    """One open file; stays with its content when the name is changed or removed."""

    def __init__(self, disk: _Disk, inode: Inode, name: str) -> None:
        self._disk = disk
        self.inode = inode
        self._name = name
        self._closed = False

    def append(self, chunks: Sequence[Chunk]) -> None:
        self.write(len(self.inode.view), chunks)

    def write(self, at: int, chunks: Sequence[Chunk]) -> None:
        self._check_open()
        data = b"".join(chunks)
        try:
            self._disk.enter("append", self._disk.faults.append_error_rate)
        except StoppedError:
            self.inode.write(at, data)  # how much of it arrived is for the crash to decide
            raise
        except OSError:
            if self._disk.alive:
                self.inode.write(at, data[: self._disk.rng.randint(0, len(data))])
            raise
        free = self._disk.free_bytes()
        if free is not None:
            fits = max(len(self.inode.view), self.inode.allocated) + free - at
            if len(data) > fits:
                self.inode.write(at, data[: max(fits, 0)])
                self._disk.error(errno.ENOSPC, "append")
        self.inode.write(at, data)
        self._disk.counters.appends += 1
        self._disk.counters.appended_bytes += len(data)

    def sync(self) -> None:
        self._check_open()
        try:
            self._disk.enter("sync", self._disk.faults.sync_error_rate)
        except OSError:
            if self._disk.alive:
                self.inode.fail_sync()
            raise
        if not self._disk.faults.lying_sync:
            self.inode.sync()
        self._disk.counters.syncs += 1

    def read(self, offset: int, size: int) -> bytes:
        self._check_open()
        self._disk.enter("read", self._disk.faults.read_error_rate)
        if offset < 0 or size < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), self._name)
        found = bytes(memoryview(self.inode.view)[offset : offset + size])
        self._disk.counters.reads += 1
        self._disk.counters.read_bytes += len(found)
        return found

    def read_large(self, offset: int, size: int, buffer: ReadBuffer) -> tuple[bytes | ReadBuffer, int]:
        return self.read(offset, size), 0

    def truncate(self, size: int) -> None:
        self._check_open()
        self._disk.enter("truncate")
        if size < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), self._name)
        self.inode.truncate(size)

    def allocate(self, size: int) -> None:
        self._check_open()
        self._disk.enter("append")
        free = self._disk.free_bytes()
        if free is not None and size > free + self.inode.taken:
            self._disk.error(errno.ENOSPC, "append")
        self.inode.allocated = size

    def size(self) -> int:
        self._check_open()
        return max(len(self.inode.view), self.inode.allocated)

    def names_and_size(self) -> tuple[int, int]:
        self._disk.enter("stat")
        return sum(inode is self.inode for inode in self._disk.directory.live.values()), self.size()

    def close(self) -> None:
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self._name)


class FaultFileSystem:
    """One process's view of a disk in memory. ``rng`` decides every fault that is left to chance.

    ``new``: the directory was just made, and a crash may take its name until :meth:`make` was called.
    """

    def __init__(self, rng: random.Random, faults: Faults | None = None, *, new: bool = False) -> None:
        self._disk = _Disk(DiskDirectory(named=not new), rng, faults or Faults())

    @property
    def faults(self) -> Faults:
        return self._disk.faults

    @property
    def counters(self) -> DiskCounters:
        return self._disk.counters

    @property
    def unsynced(self) -> bool:
        """Whether a crash now could lose anything."""
        directory = self._disk.directory
        return directory.unsynced or any(inode.unsynced for inode in directory.live.values())

    def make(self) -> None:
        self._disk.enter("sync_directory", self._disk.faults.sync_error_rate)
        if not self._disk.faults.lying_sync:
            self._disk.directory.named = True
        self._disk.counters.directory_syncs += 1

    def open(self, name: str, *, create: bool = False) -> File:
        _check_name(name)
        self._disk.enter("open")
        inode = self._disk.directory.live.get(name)
        if inode is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
            inode = self._disk.directory.create(name)
        return FaultFile(self._disk, inode, name)

    def names(self) -> list[str]:
        return sorted(self._disk.directory.live)

    def misplaced(self) -> dict[str, str]:
        return {}

    def space(self) -> tuple[int, int]:
        free = self._disk.free_bytes()
        return (_ENDLESS, _ENDLESS) if free is None else (free, self._disk.faults.capacity_bytes or 0)

    def in_place(self) -> bool:
        return True

    def holds(self, name: str, file: File) -> bool:
        assert isinstance(file, FaultFile)
        return self._disk.directory.live.get(name) is file.inode

    def rename(self, old: str, new: str) -> None:
        _check_name(old)
        _check_name(new)
        self._disk.enter("rename")
        self._disk.directory.rename(old, new)

    def remove(self, name: str) -> None:
        _check_name(name)
        self._disk.enter("remove")
        self._disk.directory.remove(name)

    def sync(self) -> None:
        self._disk.enter("sync_directory", self._disk.faults.sync_error_rate)
        if not self._disk.faults.lying_sync:
            self._disk.directory.sync()
        self._disk.counters.directory_syncs += 1

    @property
    def locked(self) -> bool:
        return self._disk.holder is self

    def lock(self) -> None:
        self._disk.enter("lock")
        if LOCK_NAME not in self._disk.directory.live:
            self._disk.directory.create(LOCK_NAME)
        if self._disk.holder is not None:
            raise BlockingIOError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK), LOCK_NAME)
        self._disk.holder = self

    def unlock(self) -> None:
        if self._disk.holder is self:
            self._disk.holder = None

    def second_process(self) -> FaultFileSystem:
        """Another process's view of the same disk, with its own claim to the lock."""
        other = FaultFileSystem(self._disk.rng)
        other._disk = self._disk
        return other

    def fail(self, operation: Operation, *, skip: int = 0, times: int = 1, code: int = errno.EIO) -> None:
        """Let ``skip`` more calls of ``operation`` pass, then fail ``times`` of them; plans queue up."""
        self._disk.plans.setdefault(operation, []).append(_Plan(skip, times, code))

    def flip_bit(self, name: str, offset: int, bit: int = 0) -> None:
        """Change one bit on the medium."""
        inode = self._disk.directory.live.get(name)
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        inode.flip_bit(offset, bit)

    def stop_after(self, calls: int, then: Callable[[], object]) -> None:
        """Let ``calls`` more writing calls pass; in the next one the disk stops and ``then`` is called.

        This is how a crash comes between two calls of one job, say an append and its sync: a job in the executor
        happens at one moment of virtual time, so that a crash of the loop's making falls only before or after it.
        Follow it with :meth:`crash` or :meth:`reopened`; the stopped call itself has not happened, but for an append.
        """
        self._disk.stop_in = calls
        self._disk.on_stop = then

    def detach(self) -> None:
        """The processes on this disk are dead: every later call through these views fails and changes nothing."""
        self._disk.alive = False
        self._disk.holder = None

    def reopened(self) -> FaultFileSystem:
        """kill -9: the disk as the next process finds it, page cache included; the old views are dead."""
        self.detach()
        after = FaultFileSystem(self._disk.rng, self._disk.faults)
        after._disk.directory = self._disk.directory
        return after

    def crash(self, rng: random.Random) -> FaultFileSystem:
        """Power fails now. Returns the disk as a new process finds it: unlocked, same faults, fresh counters."""
        self.detach()
        after = FaultFileSystem(self._disk.rng, self._disk.faults)
        after._disk.directory = self._disk.directory.after_crash(rng)
        return after


def _check_name(name: str) -> None:
    if not name or "/" in name or name in {".", ".."}:
        raise ValueError(f"not a plain file name: {name!r}")
