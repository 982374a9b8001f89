"""A loss of power at any moment at which something is made durable: what was not synced by then is empty, names stay.

Names that outlive their contents are the worst that file systems do to those who take a name for a proof; contents
without a name are as if nothing had been done.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest


class LostError(Exception):
    """The power is gone."""


class Power:
    """Counts what is synced or renamed, and is lost before number ``last`` of these."""

    def __init__(self, patch: pytest.MonkeyPatch, directory: Path, last: int) -> None:
        self._directory = directory
        self._left = last
        self._synced: set[int] = set()
        sync, rename = os.fsync, Path.replace

        def counted_sync(file: int) -> None:
            self._step()
            sync(file)
            self._synced.add(os.fstat(file).st_ino)

        def counted_rename(path: Path, target: Path) -> Path:
            self._step()
            return rename(path, target)

        patch.setattr(os, "fsync", counted_sync)
        patch.setattr(Path, "replace", counted_rename)

    def _step(self) -> None:
        if not self._left:
            raise LostError
        self._left -= 1

    def lose(self) -> None:
        """After the loss: what the disk has."""
        for path in self._directory.rglob("*"):
            if path.is_file() and path.stat().st_ino not in self._synced:
                path.write_bytes(b"")
