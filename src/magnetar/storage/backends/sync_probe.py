"""How long this disk takes to make a small write durable: what receipts wait for, measured as the journal writes."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

_BLOCK: Final = bytes(4096)


def sync_milliseconds(directory: Path, times: int = 40) -> list[float]:
    """Write 4 KB and wait for fdatasync, ``times`` times, in a new file that is removed; each in milliseconds.

    Raises OSError if the directory cannot be written to.
    """
    path = directory / "sync-probe"
    taken: list[float] = []
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, times * len(_BLOCK))
        os.fsync(descriptor)
        for number in range(times):
            began = time.perf_counter()
            os.pwrite(descriptor, _BLOCK, number * len(_BLOCK))
            os.fdatasync(descriptor)
            taken.append((time.perf_counter() - began) * 1000)
    finally:
        os.close(descriptor)
        path.unlink()
    return taken
