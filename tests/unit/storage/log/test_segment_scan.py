"""Blocks on pages and between them; zeros that are padding or damage; bytes that only look like a block."""

from __future__ import annotations

import errno
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.storage.backends.journal_backend import segment_name
from magnetar.storage.backends.local_journal import LocalJournal
from magnetar.storage.log import records
from magnetar.storage.log.segment_scan import SegmentScan
from magnetar.testing.faultfiles import FaultFileSystem
from tests.support.segment_bytes import SECRET, block, padded, segment
from tests.support.store_lives import disk


def scanned(
    data: bytes, limit: int | None = None, before: int | None = None
) -> tuple[list[int], SegmentScan, FaultFileSystem]:
    files = disk()
    file = files.open(segment_name(1), create=True)
    file.append([data])
    scan = SegmentScan(LocalJournal(files), 1, file, limit, before)
    return [found.sequence for found in scan], scan, files


@given(st.lists(st.tuples(st.integers(1, 9000), st.booleans()), min_size=1, max_size=12))
def test_blocks_on_pages_and_between_them_are_all_found(plan: list[tuple[int, bool]]) -> None:
    data = segment()
    for sequence, (size, on_pages) in enumerate(plan):
        one = block(sequence, bytes(size))
        data = padded(padded(data) + one) if on_pages else data + one
    for limit in (None, len(data)):
        found, scan, _ = scanned(data, limit)
        assert found == list(range(len(plan)))
        assert (scan.damage, scan.torn) == ([], None)


def test_a_block_overwritten_with_zeros_is_no_padding() -> None:
    lost = block(1, b"lost")
    data = padded(segment(block(0, b"x"), bytes(len(lost)))) + block(2, b"y")
    found, scan, files = scanned(data, len(data))
    assert found == [0, 2]
    assert any("corrupt" in text for text in scan.damage)
    assert any(name.startswith("quarantine") for name in files.names())


def test_what_is_quarantined_is_on_the_disk_before_anything_else_happens() -> None:
    """Bytes, length and name; of a corruption and of a torn end."""
    lost = block(1, b"lost")
    damaged = bytes([lost[0], lost[1], *b"damage"]) + lost[8:]
    corrupt = segment(block(0, b"x"), damaged) + block(2, b"y")
    torn = segment(block(0, b"x"), lost[:-3])
    for data, kind in ((corrupt, "corrupt"), (torn, "torn")):
        _, _, files = scanned(data)
        names = [name for name in files.names() if name.startswith("quarantine")]
        assert [name.endswith(kind) for name in names] == [True]
        after = files.crash(random.Random(1))
        assert [name for name in after.names() if name.startswith("quarantine")] == names
        kept = after.open(names[0])
        whole = files.second_process()
        assert kept.size() == (len(damaged) if kind == "corrupt" else len(lost) - 3)
        assert kept.read(0, 1 << 20) == (damaged if kind == "corrupt" else lost[:-3])
        assert whole.names() == files.names()


def test_where_there_is_no_room_for_a_copy_the_bytes_stay_in_place_and_no_half_copy_stays() -> None:
    data = segment(block(0, b"x"), b"\xff" * 50) + block(2, b"y")
    files = disk()
    file = files.open(segment_name(1), create=True)
    file.append([data])
    for code in (errno.ENOSPC, errno.EDQUOT):
        files.fail("append", code=code)
        scan = SegmentScan(LocalJournal(files), 1, file)
        assert [found.sequence for found in scan] == [0, 2]
        assert scan.kept_in_place
        assert files.names() == [segment_name(1)]
    files.fail("append", code=errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        list(SegmentScan(LocalJournal(files), 1, file))
    again = SegmentScan(LocalJournal(files), 1, file)
    list(again)
    assert not again.kept_in_place
    (copy,) = [name for name in files.names() if name.startswith("quarantine")]
    assert copy in again.damage[0]


def test_a_block_of_a_producers_making_is_not_taken_for_ours() -> None:
    forged = block(1 << 30, b"forged", secret=SECRET + 1)
    damaged = bytearray(block(1, b"before" + forged + b"behind"))
    damaged[45] ^= 1
    data = segment(block(0, b"x"), bytes(damaged), block(2, b"y"))
    found, scan, _ = scanned(data)
    assert found == [0, 2]
    assert len(scan.damage) == 1
    # with our own secret it would have been
    data = segment(block(0, b"x"), bytes(damaged).replace(forged, block(1 << 30, b"forged")), block(2, b"y"))
    assert 1 << 30 in scanned(data)[0]


def test_a_torn_end_behind_padding_is_torn() -> None:
    data = padded(segment(block(0, b"x")))
    found, scan, _ = scanned(data + block(1, b"half")[:-2])
    assert found == [0]
    assert scan.damage == []
    assert scan.torn is not None
    assert scan.length == records.SEGMENT_HEADER_SIZE + len(block(0, b"x"))


def test_what_a_torn_write_left_in_the_padding_of_a_whole_block_is_no_damage() -> None:
    """A power failure kept the block and garbage before it (found by the model test)."""
    data = bytearray(padded(segment(block(0, b"x"))) + block(1, b"y"))
    data[600:700] = b"?" * 100
    found, scan, _ = scanned(bytes(data))
    assert found == [0, 1]
    assert (scan.damage, scan.torn) == ([], None)


def test_a_last_block_of_zeros_is_no_padding_where_padding_would_end_on_a_page() -> None:
    """Known to be durable up to there: a page that the disk lost, not the rest of one."""
    lost = block(1, b"lost")
    data = segment(block(0, b"x"), bytes(len(lost)))
    found, scan, _ = scanned(data, len(data))
    assert found == [0]
    assert any("corrupt" in text for text in scan.damage)
    found, scan, _ = scanned(data)
    assert (found, scan.damage, scan.torn) == ([0], [], None), "nobody says that it was durable"


def test_a_file_that_ends_in_padding_and_should_be_longer_is_damaged() -> None:
    whole = padded(segment(block(0, b"x"))) + block(1, b"lost")
    for durable in (len(whole), records.page_end(len(whole))):
        found, scan, _ = scanned(whole[:3000], durable)
        assert found == [0]
        assert len(scan.damage) == 1


@pytest.mark.parametrize("before", [None, 0, 1, 2, 3, 4, 9])
def test_blocks_from_the_void_sequence_on_do_not_count(before: int | None) -> None:
    """What a failed write left behind; the next segment begins with that sequence."""
    blocks = [block(sequence, b"x" * 20) for sequence in range(4)]
    found, scan, _ = scanned(segment(*blocks), before=before)
    assert found == list(range(4 if before is None else min(before, 4)))
    assert scan.length == len(segment(*blocks[: len(found)]))
    assert scan.damage == []
    assert (scan.torn is None) == (len(found) == 4)


@pytest.mark.parametrize(("before", "corrupt"), [(None, True), (4, True), (3, False), (2, False)])
def test_void_blocks_behind_damage_do_not_make_it_a_corruption(before: int | None, corrupt: bool) -> None:
    """Nothing that counts follows: no writer was answered that what is unreadable had succeeded."""
    broken = bytearray(block(2, b"y" * 20))
    broken[50] ^= 1
    data = segment(block(0, b"x"), block(1, b"x"), bytes(broken), block(3, b"z"))
    found, scan, _ = scanned(data, before=before)
    assert found == ([0, 1, 3] if corrupt else [0, 1])
    assert (bool(scan.damage), scan.torn is None) == (corrupt, corrupt)


@pytest.mark.parametrize(("before", "first"), [(None, 5), (9, 5), (6, 5), (5, None), (0, None)])
def test_the_first_sequence_is_that_of_the_first_block_that_counts(before: int | None, first: int | None) -> None:
    files = disk()
    file = files.open(segment_name(1), create=True)
    file.append([segment(b"?" * 7, block(5, b"x"), block(6, b"y"), first=5)])
    assert SegmentScan(LocalJournal(files), 1, file, before=before).first_sequence() == first


def test_a_strange_record_is_kept_whole_and_nothing_beside_it() -> None:
    first, strange = block(0, b"before"), block(1, b"strange" * 9)
    data = segment(first, strange) + block(2, b"after")
    files = disk()
    file = files.open(segment_name(1), create=True)
    file.append([data])
    scan = SegmentScan(LocalJournal(files), 1, file, None, None)
    for found in scan:
        if found.sequence == 1:
            scan.strange(found, found.records[0], records.RecordError("says nothing"))
    (name,) = [name for name in files.names() if name.startswith("quarantine")]
    kept = files.open(name)
    at = data.index(strange) + records.BLOCK_HEADER_SIZE
    assert kept.read(0, kept.size()) == data[at : at + len(strange) - records.BLOCK_HEADER_SIZE]
    assert f"the record at offset {at}" in scan.damage[0] and name in scan.damage[0]
