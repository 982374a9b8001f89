"""Clocks and counters of the layout benchmark: percentiles, CPU, page cache, and a disk that counts its work."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

MIB = 1 << 20
IOV_MAX = 1024


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def drop_cache(path: str) -> None:
    """Clean pages of the file leave the page cache (Linux honours DONTNEED for clean, unmapped pages)."""
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


@dataclass
class Disk:
    """Counts syncs and bytes; every layout writes through one of these."""

    syncs: int = 0
    written: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def writev(self, fd: int, parts: Sequence[bytes]) -> None:
        """All parts, at the end of an O_APPEND or sequentially written file; IOV_MAX parts per call."""
        for start in range(0, len(parts), IOV_MAX):
            piece = parts[start : start + IOV_MAX]
            size = sum(map(len, piece))
            done = os.writev(fd, piece)
            if done != size:  # short writes happen past 2 GiB or on a full disk only; finish plainly
                rest = b"".join(piece)[done:]
                while rest:
                    rest = rest[os.write(fd, rest) :]
            self.count(0, size)

    def sync(self, fd: int) -> None:
        os.fdatasync(fd)
        self.count(1, 0)

    def count(self, syncs: int, written: int) -> None:
        with self.lock:
            self.syncs += syncs
            self.written += written


@dataclass
class Stopwatch:
    wall: float = 0.0
    cpu: float = 0.0

    def __enter__(self) -> Stopwatch:
        self.wall, self.cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall, self.cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu
