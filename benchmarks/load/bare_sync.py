"""What the disk alone makes of a latency workload: the messages that are due are appended and synced, and that is all.

No broker, no socket, no second process: at the same rate, pages of 4 KB are appended to one file with a write and an
fdatasync each time that something is due. Messages that came due during a sync share the next one, as in a group
commit; their latency runs from when they were due, as in :mod:`benchmarks.load.latency`. No broker that syncs before a
receipt can be faster than this on the same file system at the same time.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np

from benchmarks.load.latency import Floats, sharpen_timers

PAGE = 4096


class BareSync:
    """Appends ``count`` messages of ``size`` bytes at ``rate`` a second to a new file at ``path``."""

    def __init__(self, path: Path, count: int, rate: float, size: int) -> None:
        self.path = path
        self.count = count
        self.rate = rate
        self.size = size
        self.written = np.zeros(count)
        self.answered = np.zeros(count)
        self.started = 0.0
        self.syncs = 0

    def drive(self) -> None:
        """Write and sync what is due until all is."""
        sharpen_timers()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            self._drive(file)
        finally:
            os.close(file)
            self.path.unlink()

    def _drive(self, file: int) -> None:
        page = os.urandom(PAGE)
        self.started = time.perf_counter()
        done = 0
        while done < self.count:
            now = time.perf_counter()
            due = min(self.count, int((now - self.started) * self.rate) + 1)
            if due == done:
                time.sleep(max(0.0, self.started + done / self.rate - now))
                continue
            self.written[done:due] = now
            os.write(file, page * -(-(due - done) * self.size // PAGE))
            os.fdatasync(file)
            self.answered[done:due] = time.perf_counter()
            self.syncs += 1
            done = due

    def milliseconds(self) -> Floats:
        """Return how long it was from when each message was due until it was durable."""
        due = self.started + np.arange(self.count) / self.rate
        return np.asarray((self.answered - due) * 1000.0, np.float64)

    def lateness_milliseconds(self) -> Floats:
        """Return how late the write of each message began."""
        due = self.started + np.arange(self.count) / self.rate
        return np.asarray((self.written - due) * 1000.0, np.float64)
