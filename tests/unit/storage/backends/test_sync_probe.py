"""The probe that says how fast a disk is: as many writes as were asked for, each alone, and nothing is left."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from magnetar.storage.backends.sync_probe import sync_milliseconds


def test_each_write_of_four_kilobytes_is_timed_with_its_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    did: list[object] = []
    clock = iter(range(100))
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(clock) ** 2))
    monkeypatch.setattr(os, "fsync", lambda fd: did.append("whole"))
    monkeypatch.setattr(os, "fdatasync", lambda fd: did.append("data"))
    monkeypatch.setattr(os, "posix_fallocate", lambda fd, at, size: did.append((at, size)))
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: did.append((len(data), at)))
    assert sync_milliseconds(tmp_path, 3) == [1000, 5000, 9000]
    assert did == [(0, 3 * 4096), "whole", (4096, 0), "data", (4096, 4096), "data", (4096, 8192), "data"]


def test_nothing_is_left_and_what_is_there_is_not_touched(tmp_path: Path) -> None:
    assert len(sync_milliseconds(tmp_path)) == 40
    assert min(sync_milliseconds(tmp_path, 2)) > 0
    assert os.listdir(tmp_path) == []
    open_before = len(os.listdir("/proc/self/fd"))
    sync_milliseconds(tmp_path, 1)
    assert len(os.listdir("/proc/self/fd")) == open_before
    (tmp_path / "sync-probe").write_text("somebody's")
    with pytest.raises(FileExistsError):
        sync_milliseconds(tmp_path)
    assert (tmp_path / "sync-probe").read_text() == "somebody's"
