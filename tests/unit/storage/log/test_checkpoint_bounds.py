"""Which numbers a checkpoint may hold, and what its parts have at least: the last that is read and the first that is
not."""

from __future__ import annotations

from typing import Any

import pytest
from crc32c import crc32c

from magnetar.model.errors import PersistenceError
from magnetar.storage.log import cursor_records, records
from magnetar.storage.log.checkpoint import decode, encode
from magnetar.storage.log.checkpoint_head import format_in, head_of
from magnetar.storage.log.log_image import encode as log_blob

HEAD: dict[str, Any] = {"format": 2, "segment": 1, "length": 64, "sequence": 3, "ids": [1, 2, 3], "secret": 7}
LOG: dict[str, Any] = {
    "id": 1, "name": "t", "properties": {}, "end": 5, "index": 5, "ledgers": [], "spans": [], "annexes": 2,
}  # fmt: skip
LAST = (1 << 63) - 1
LEDGER = [1, 0, 0, 1000, 2000, 5, 5, 100]
"""As docs/disk.md lists them: id, ordinal, index, opened, closed, entries, messages, bytes."""
COPY = ["file:///x", "name", "digest", 5, 100, 1, 1000, False]


@pytest.mark.parametrize(
    ("name", "last", "refused"),
    [
        ("segment", LAST, "its numbers"), ("length", LAST, "its numbers"), ("sequence", LAST, "its numbers"),
        ("ids", [LAST] * 3, "its ids"), ("secret", (1 << 32) - 1, "its secret"),
    ],
)  # fmt: skip
def test_a_number_of_the_head_fits_into_its_field(name: str, last: Any, refused: str) -> None:
    """Those of segments and blocks are written as 64 bits elsewhere, the secret as 32."""
    assert decode(encode({**HEAD, name: last}, [])).head[name] == last
    more = [*last[:-1], last[-1] + 1] if isinstance(last, list) else last + 1
    with pytest.raises(records.RecordError, match=refused):
        decode(encode({**HEAD, name: more}, []))


def test_a_format_is_a_small_number_and_anything_else_is_damage() -> None:
    """A newer one is a version's, which says that it has to be used; a number that none will ever have is not."""
    for number in (3, (1 << 16) - 1):
        data = encode({**HEAD, "format": number}, [])
        assert format_in(data) == number
        with pytest.raises(PersistenceError, match=rf"written by a newer version of magnetar \(format {number}"):
            decode(data)
    data = encode({**HEAD, "format": 1 << 16}, [])
    assert format_in(data) is None
    with pytest.raises(records.RecordError, match="names no format"):
        decode(data)


def test_a_ledger_has_eight_values_or_more() -> None:
    """The ninth is its copy, if there is one; newer versions may say more."""
    for ledger in (LEDGER, [*LEDGER, COPY], [*LEDGER, [*COPY, "newer"], "newer"]):
        (log,) = decode(encode(HEAD, [log_blob({**LOG, "ledgers": [ledger]}, [], [])])).logs
        assert log.about["ledgers"] == [ledger]
    with pytest.raises(records.RecordError, match="a log in the checkpoint has a ledger or a span that is none"):
        decode(encode(HEAD, [log_blob({**LOG, "ledgers": [LEDGER[:-1]]}, [], [])]))


def test_a_cursor_has_no_more_ranges_than_the_log_had_entries() -> None:
    """A bitmap of 2**36 ordinals takes 2 GB; 2**32 may be lost entries, which no ledger counts."""
    lost, many = 1 << 32, 1 << 35
    for entries, acked, good in (
        (0, lost - 1, True),
        (0, lost, False),
        (many, many + 1, True),
        (many, many + lost, False),
    ):
        log = {**LOG, "end": 1 << 40, "ledgers": [[1, 0, 0, 1000, 2000, entries, entries, 100]]}
        state = cursor_records.CursorState(1, 1, -1, [(2, acked + 2)], [])
        data = encode(HEAD, [log_blob(log, [cursor_records.cursor_record("s", {}, state)], [])])
        if good:
            assert decode(data).logs[0].cursors[0].state == state
        else:
            with pytest.raises(records.RecordError, match="more ranges than there can be"):
                decode(data)


@pytest.mark.parametrize("damage", ["begins otherwise", "head longer than the file"])
def test_a_file_with_a_true_checksum_that_is_no_checkpoint_is_refused(damage: str) -> None:
    data = bytearray(encode(HEAD, [])[:-4])
    if damage == "begins otherwise":
        data[0] ^= 1
    else:
        data[8:12] = (len(data) + 1).to_bytes(4, "little")
    whole = bytes(data) + crc32c(bytes(data)).to_bytes(4, "little")
    with pytest.raises(records.RecordError, match="it does not begin as a checkpoint does"):
        head_of(whole)


def with_cursor(mark: int, *ranges: tuple[int, int]) -> bytes:
    """A checkpoint with a log of five entries that has one cursor."""
    cursor = cursor_records.cursor_record("s", {}, cursor_records.CursorState(1, 2, mark, ranges, []))
    return encode(HEAD, [log_blob({**LOG, "ledgers": [LEDGER]}, [cursor], [])])


@pytest.mark.parametrize(
    "ranges", [(), ((0, 5),), ((1, 2), (2, 3), (4, 5)), ((3, 4),)]
)  # fmt: skip
def test_what_a_cursor_has_acknowledged_ascends_within_its_log(ranges: tuple[tuple[int, int], ...]) -> None:
    (log,) = decode(with_cursor(-1, *ranges)).logs
    (cursor,) = log.cursors
    assert [tuple(one) for one in cursor.state.ranges] == list(ranges)


@pytest.mark.parametrize(
    "ranges", [((1, 1),), ((2, 1),), ((1, 3), (2, 4)), ((3, 4), (1, 2)), ((4, 6),), ((5, 6),)]
)  # fmt: skip
def test_ranges_of_a_cursor_that_overlap_or_leave_their_log_are_damage(ranges: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(records.RecordError, match="has a cursor with ranges that overlap"):
        decode(with_cursor(-1, *ranges))


def test_a_mark_stands_at_the_last_before_the_first_entry_or_later() -> None:
    assert decode(with_cursor(-1)).logs[0].cursors[0].state.mark_delete == -1
    with pytest.raises(records.RecordError, match="has a cursor before its beginning"):
        decode(with_cursor(-2))


@pytest.mark.parametrize(
    ("second", "why"),
    [
        ({"id": 2, "name": "u"}, ""), ({"id": 1, "name": "u"}, "two logs of one id"),
        ({"id": 2, "name": "t"}, "two logs of one name"),
    ],
)  # fmt: skip
def test_two_logs_of_one_id_or_of_one_name_are_damage(second: dict[str, Any], why: str) -> None:
    """A start would give the records of one to the other."""
    data = encode(HEAD, [log_blob(LOG, [], []), log_blob({**LOG, **second}, [], [])])
    if why:
        with pytest.raises(records.RecordError, match=f"the checkpoint has {why}"):
            decode(data)
    else:
        assert [log.about["id"] for log in decode(data).logs] == [1, 2]
