"""What recovery cuts off a segment, and what it leaves: nothing that is unreadable and was not copied goes."""

from __future__ import annotations

import errno
import random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from magnetar.storage import recovery
from magnetar.storage.backends.journal_backend import segment_name
from magnetar.storage.backends.local_journal import LocalJournal
from magnetar.storage.log.segment_scan import Border
from magnetar.storage.metadata_log.metadata_copy import set_aside
from magnetar.testing.faultfiles import FaultFileSystem
from tests.support.segment_bytes import block, segment
from tests.support.store_lives import disk

WHOLE = segment(block(0, b"x"))
TORN = b"?" * 50


def left(files: FaultFileSystem, limit: int | None) -> bytes:
    """The file when recovery has been through it."""
    file = files.open(segment_name(1), create=True)
    file.append([WHOLE + TORN])
    found = SimpleNamespace(noted=None, secret=None, sequence=0, damage=[], blocks_lost=False, scanned=[], length=0)
    replay = cast(Any, SimpleNamespace(found=found, logs=SimpleNamespace(), record=lambda number, offset, raw: None))
    border = None if limit is None else Border(limit, None)
    recovery._scan(LocalJournal(files), 1, border, replay)
    assert (found.sequence, found.scanned, found.length) == (1, [1], len(WHOLE))
    return file.read(0, 1 << 20)


def test_a_torn_end_goes_when_there_is_a_copy() -> None:
    files = disk()
    assert left(files, None) == WHOLE
    assert len(files.names()) == 2


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_torn_end_stays_where_there_is_no_room_for_a_copy(code: int) -> None:
    files = disk()
    file = files.open(segment_name(1), create=True)
    file.close()
    files.fail("append", skip=1, code=code)
    assert left(files, None) == WHOLE + TORN
    assert files.names() == [segment_name(1)]


def test_of_a_segment_with_a_successor_nothing_is_cut_off() -> None:
    """What lies after its durable part is void already."""
    assert left(disk(), len(WHOLE)) == WHOLE + TORN


def test_what_is_set_aside_outlives_a_power_cut_and_never_takes_a_name_twice() -> None:
    for seed in range(20):
        files = disk()
        for turn, data in enumerate((b"first" * 100, b"second" * 100), 1):
            file = files.open("facts", create=True)
            file.truncate(0)
            file.append([data])
            set_aside(files, "facts")
            files.sync()
            assert [name for name in files.names() if name.startswith("quarantine-")] == [
                f"quarantine-facts-{i}" for i in range(1, turn + 1)
            ]
        after = files.crash(random.Random(seed))
        for turn, data in enumerate((b"first" * 100, b"second" * 100), 1):
            assert after.open(f"quarantine-facts-{turn}").read(0, 1 << 20) == data
