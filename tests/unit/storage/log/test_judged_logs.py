"""A log in a checkpoint whose bytes are whole: what of it is taken, and what is damage though it can be read."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.storage.log import cursor_records, records
from magnetar.storage.log.log_image import FeatureStateImage, decode, encode

LOG: dict[str, Any] = {
    "id": 1, "name": "t", "properties": {}, "end": 5, "index": 5, "ledgers": [], "spans": [], "annexes": 2,
}  # fmt: skip
STATE = cursor_records.CursorState(1, 2, 3, [], [])
CURSOR = cursor_records.cursor_record("s", {}, STATE)
STATES = [FeatureStateImage("a", b"whole", [b"1", b"2"]), FeatureStateImage("b", None, [b"1"])]
BLOB = encode(LOG, [CURSOR], STATES)


def refused(blob: bytes, why: str) -> None:
    with pytest.raises(records.RecordError, match=f"a log in the checkpoint {why}"):
        decode(blob)


def ledger(number: int, first: int, entries: int) -> list[int]:
    """As docs/disk.md lists it: id, ordinal, index, opened, closed, entries, messages, bytes."""
    return [number, first, 0, 1000, 2000, entries, entries, 100]


def test_what_was_written_is_read() -> None:
    image = decode(BLOB)
    assert image.about == LOG
    assert [(cursor.name, cursor.state.mark_delete) for cursor in image.cursors] == [("s", 3)]
    assert image.feature_states == STATES


def test_wherever_it_is_cut_off_it_is_damage_and_so_is_what_follows_its_end() -> None:
    for end in range(len(BLOB)):
        with pytest.raises(records.RecordError, match="a log in the checkpoint"):
            decode(BLOB[:end])
    refused(BLOB + b"\0", "ends before its bytes do")


def test_two_of_one_name_are_damage() -> None:
    for cursors, states, what in (
        ([CURSOR, CURSOR], STATES, "cursors of one name"),
        ([CURSOR], [STATES[0], STATES[1]._replace(name="a")], "states of one feature"),
    ):
        with pytest.raises(records.RecordError, match=f"the checkpoint has two {what}"):
            decode(encode(LOG, cursors, states))


@pytest.mark.parametrize("body", [CURSOR + b"\0", b"\x02\0\0\0[]" + cursor_records.cursor_state(STATE)])
def test_a_cursor_is_one_object_and_one_state(body: bytes) -> None:
    refused(encode(LOG, [body], []), "has a cursor that is none")


@pytest.mark.parametrize(
    ("whole", "count", "more", "good"),
    [
        (0, 0, b"", True), (0, 1, b"", True), (1, 1, b"", True), (2, 2, b"", False), (1, 0, b"", False),
        (1, 1, b"\0", False),
    ],
)  # fmt: skip
def test_a_features_state_is_a_snapshot_and_changes_and_nothing_else(
    whole: int, count: int, more: bytes, good: bool
) -> None:
    """Its head: how long its name is, whether the first part is a snapshot, how many parts there are."""
    head = (1).to_bytes(2, "little") + whole.to_bytes(2, "little") + count.to_bytes(4, "little") + b"a"
    body = head + b"\x01\0\0\0x" * count + more
    plain = encode(LOG, [], [])
    blob = plain[:-4] + (1).to_bytes(4, "little") + len(body).to_bytes(4, "little") + body
    if good:
        assert decode(blob).feature_states[0].name == "a"
    else:
        refused(blob, "has a feature's state that is none")


@pytest.mark.parametrize(
    ("hidden", "good"),
    [([0, 0], True), ([(1 << 61) - 1, 3], True), ([1 << 61, 0], False), ([1], False), ([-1, 0], False), (3, False)],
)
def test_what_a_log_hides_it_must_have_been_able_to_have(hidden: Any, good: bool) -> None:
    blob = encode({**LOG, "hidden": hidden}, [], [])
    if good:
        assert decode(blob).about["hidden"] == hidden
    else:
        refused(blob, "hides what it cannot have had")


@pytest.mark.parametrize(
    ("ledgers", "why"),
    [
        ([ledger(1, 0, 5)], ""), ([ledger(1, 0, 2), ledger(2, 2, 3)], ""), ([ledger(1, 0, 2), ledger(2, 4, 1)], ""),
        ([ledger(1, 0, 5), ledger(2, 9, 0)], ""), ([ledger(1, 0, 6)], "has a ledger that goes on after its end"),
        ([ledger(1, 0, 2), ledger(2, 2, 4)], "has a ledger that goes on after its end"),
        ([ledger(1, 0, 3), ledger(2, 2, 3)], "has ledgers that overlap"),
        ([ledger(2, 0, 2), ledger(1, 2, 3)], "has ledgers that overlap"),
        ([ledger(1, 0, 2), ledger(1, 2, 3)], "has ledgers that overlap"),
    ],
)  # fmt: skip
def test_ledgers_ascend_and_end_with_their_log(ledgers: list[list[int]], why: str) -> None:
    """An empty one may begin later: it was opened for entries that were lost."""
    blob = encode({**LOG, "ledgers": ledgers}, [], [])
    if why:
        refused(blob, why)
    else:
        assert decode(blob).about["ledgers"] == ledgers
