"""Files that are the old ones or the whole new ones, whatever the disk refuses."""

from __future__ import annotations

import errno
import random

import pytest

from magnetar.storage.backends.files import write_atomically
from magnetar.storage.backends.local_journal import LocalJournal
from magnetar.storage.log.checkpoint import KEPT, save
from magnetar.testing.faultfiles import FaultFileSystem, Operation
from tests.support.whole_files import content

NAME = "facts"


def disk() -> FaultFileSystem:
    files = FaultFileSystem(random.Random(0))
    write_atomically(files, NAME, b"old")
    return files


@pytest.mark.parametrize("operation", ["open", "truncate", "append", "sync", "rename", "sync_directory"])
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_a_refusal_reaches_the_caller_and_the_file_is_one_of_the_two(operation: Operation, code: int) -> None:
    files = disk()
    files.fail(operation, code=code)
    with pytest.raises(OSError, match=r"\[Errno") as refused:
        write_atomically(files, NAME, b"a longer new one")
    assert refused.value.errno == code
    assert content(files, NAME) == (b"a longer new one" if operation == "sync_directory" else b"old")
    if operation != "rename":
        assert files.names() == [NAME], "no half file takes room"
    write_atomically(files, NAME, b"x")
    assert content(files, NAME) == b"x", "nothing of a longer one before stays behind it"
    assert files.names() == [NAME]


def test_the_first_refusal_is_told_although_cleaning_up_is_refused_as_well() -> None:
    files = disk()
    files.fail("append", code=errno.ENOSPC)
    files.fail("remove", code=errno.EIO)
    with pytest.raises(OSError, match=r"\[Errno") as refused:
        write_atomically(files, NAME, b"new")
    assert refused.value.errno == errno.ENOSPC
    assert content(files, NAME) == b"old"


def test_what_was_written_outlives_a_power_cut() -> None:
    for seed in range(20):
        files = disk()
        write_atomically(files, NAME, b"new")
        assert content(files.crash(random.Random(seed)), NAME) == b"new"


def test_so_many_checkpoints_are_kept() -> None:
    files = FaultFileSystem(random.Random(0))
    for number in range(1, 7):
        save(LocalJournal(files), number, b"%d" % number)
        kept = [int(name.rpartition("-")[2], 16) for name in files.names()]
        assert kept == list(range(max(number - KEPT + 1, 1), number + 1))


def test_a_checkpoint_that_was_refused_is_none_of_those_that_are_kept() -> None:
    """Its number is not given again; the two that are kept are two that are there."""
    files = FaultFileSystem(random.Random(0))
    journal = LocalJournal(files)
    save(journal, 1, b"1")
    save(journal, 2, b"2")
    for number in (3, 4):
        files.fail("append", code=errno.ENOSPC)
        with pytest.raises(OSError, match=r"\[Errno"):
            save(journal, number, b"%d" % number)
    save(journal, 5, b"5")
    assert journal.checkpoints() == [2, 5]
    save(journal, 6, b"6")
    assert journal.checkpoints() == [5, 6]
