"""What is said where the disk gives neither copy of the metadata."""

from __future__ import annotations

import errno
import random

import pytest

from magnetar.storage.backends.files import File
from magnetar.storage.metadata_log.metadata_log import MetadataLog
from magnetar.storage.metadata_log.metadata_scan import COPIES
from magnetar.testing.faultfiles import FaultFileSystem
from tests.support.at_once import at_once


def test_where_the_disk_gives_neither_copy_the_error_names_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start said "Input/output error", and not of which file."""
    files = FaultFileSystem(random.Random(0))
    log = MetadataLog(files)
    at_once(log.put("/policies/1", b"1"))
    at_once(log.close())

    def open_file(found: str, *, create: bool = False) -> File:
        raise OSError(errno.EIO, "a bad sector")

    monkeypatch.setattr(files, "open", open_file)
    with pytest.raises(OSError, match="a bad sector: 'metadata-a'") as refused:
        MetadataLog(files)
    assert (refused.value.errno, refused.value.filename) == (errno.EIO, COPIES[0])
