"""Which files are synced, and which errors of a file system do not matter."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from magnetar.spark.durable_files import sync, sync_tree, write_whole


def test_a_file_system_that_cannot_sync_directories_is_good_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files must be synced nevertheless, and what fails is not what cannot be done."""
    wrong, of_files = errno.EINVAL, False

    def fsync(file: int) -> None:
        if of_files or stat.S_ISDIR(os.fstat(file).st_mode):
            raise OSError(wrong, os.strerror(wrong))

    monkeypatch.setattr(os, "fsync", fsync)
    write_whole(tmp_path / "a" / "b", "text")
    sync_tree(tmp_path)
    assert (tmp_path / "a" / "b").read_text() == "text"
    of_files = True
    with pytest.raises(OSError, match="Invalid argument"):
        sync(tmp_path / "a" / "b")
    wrong = errno.EIO
    with pytest.raises(OSError, match="Input/output error"):
        sync(tmp_path)
