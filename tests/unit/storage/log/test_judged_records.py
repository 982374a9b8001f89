"""Which records of the log are taken at their word: the last number that is, the first that is not (docs/disk.md)."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from magnetar.model.errors import PersistenceError
from magnetar.storage.log import cursor_records, judged_records, records
from magnetar.storage.log.records import RecordKind

LAST = (1 << 63) - 1
COPY = ["file:///x", "name", "digest", 5, 100, 1, 1000]


def raw(kind: int, body: bytes, flags: int = 0) -> records.RawRecord:
    return records.RawRecord(kind, flags, 0, body)


def taken(record: records.RawRecord) -> bool:
    try:
        judged_records.judge(record)
    except records.RecordError:
        return False
    return True


def extent(
    log: int = 1, ledger: int = 2, entry: int = 3, ordinal: int = 4, index: int = 5, published_ms: int = 6,
    lengths: tuple[int, ...] = (1, 2), counts: tuple[int, ...] = (), more: int = 0,
) -> records.RawRecord:  # fmt: skip
    head = struct.pack("<QQQQQQI", log, ledger, entry, ordinal, index, published_ms, len(lengths))
    tables = struct.pack(f"<{len(lengths) + len(counts)}I", *lengths, *counts)
    body = head + tables + b"x" * (sum(lengths) + more)
    return raw(RecordKind.EXTENT, body, records.COUNTED if counts else 0)


@pytest.mark.parametrize(
    ("fields", "good"),
    [
        ({}, True), ({"lengths": ()}, False), ({"lengths": (0,)}, True), ({"more": 1}, False), ({"more": -1}, False),
        ({"log": LAST}, True), ({"log": LAST + 1}, False), ({"ledger": LAST}, True), ({"ledger": LAST + 1}, False),
        ({"published_ms": LAST}, True), ({"published_ms": LAST + 1}, False),
        ({"entry": 4}, True), ({"entry": 5}, False),
        ({"ordinal": LAST - 1}, True), ({"ordinal": LAST}, False), ({"ordinal": LAST, "lengths": (3,)}, True),
        ({"index": LAST - 1}, True), ({"index": LAST}, False),
        ({"counts": (7, 8), "index": LAST + 1 - 15}, True), ({"counts": (7, 8), "index": LAST + 1 - 14}, False),
    ],
)  # fmt: skip
def test_an_extent_has_entries_that_fill_it_and_numbers_that_a_log_can_have(fields: dict[str, Any], good: bool) -> None:
    """An ordinal and a message index leave room for the last of its entries."""
    assert taken(extent(**fields)) is good


def test_an_extent_without_all_of_its_tables_is_none() -> None:
    """Entries of no bytes: nothing but its tables is missing."""
    for whole in (extent(lengths=(0, 0)), extent(lengths=(0, 0), counts=(1, 1))):
        assert taken(whole)
        for end in range(len(whole.body)):
            assert not taken(whole._replace(body=whole.body[:end])), end


def state(log: int = 1, cursor: int = 2, mark: int = 3, ranges: Any = (), partial: Any = ()) -> bytes:
    return cursor_records.cursor_state(cursor_records.CursorState(log, cursor, mark, ranges, partial))


@pytest.mark.parametrize(
    ("fields", "good"),
    [
        ({}, True), ({"log": LAST}, True), ({"log": LAST + 1}, False), ({"cursor": LAST}, True),
        ({"cursor": LAST + 1}, False), ({"mark": -1}, True), ({"mark": -2}, False),
        ({"ranges": [(0, 1), (1, 2)]}, True), ({"ranges": [(5, LAST + 1)]}, True), ({"ranges": [(5, LAST + 2)]}, False),
        ({"ranges": [(5, 5)]}, False), ({"ranges": [(5, 7), (6, 8)]}, False),
        ({"partial": [(LAST, [1])]}, True), ({"partial": [(LAST + 1, [1])]}, False),
        ({"partial": [(LAST + 1, [1]), (4, [1])]}, False),
    ],
)  # fmt: skip
def test_a_cursor_says_what_one_can_have_acknowledged(fields: dict[str, Any], good: bool) -> None:
    body = state(**fields)
    about = b'{"name":"s","properties":{}}'
    whole = struct.pack("<I", len(about)) + about + body
    for kind, data in ((RecordKind.ACKS, body), (RecordKind.CURSOR, whole)):
        assert taken(raw(kind, data)) is good
        assert not taken(raw(kind, data + b"\0"))
        assert not taken(raw(kind, data[:-1]))


@pytest.mark.parametrize(
    ("about", "good"),
    [
        (b'{"name":"s","properties":{}}', True), ('{"name":"\u00fc","properties":{"a":1}}'.encode(), True),
        (b'{"name":"\\ud800","properties":{}}', False), (b'{"name":7,"properties":{}}', False),
        (b'{"name":"s","properties":[]}', False), (b'{"name":"s"}', False), (b'{"properties":{}}', False),
        (b"[]", False), (b"{", False),
    ],
)  # fmt: skip
def test_a_cursor_has_a_name_and_properties(about: bytes, good: bool) -> None:
    assert taken(raw(RecordKind.CURSOR, struct.pack("<I", len(about)) + about + state())) is good


@pytest.mark.parametrize(
    "kind", [RecordKind.FEATURE_STATE, RecordKind.FEATURE_STATE_CHANGE, RecordKind.FEATURE_STATE_REMOVED]
)
def test_a_features_state_is_of_a_log_that_can_be_and_has_its_whole_name(kind: RecordKind) -> None:
    for log, good in ((0, True), (LAST, True), (LAST + 1, False)):
        assert taken(raw(kind, records.feature_state_body(log, "name", b""))) is good
    body = records.feature_state_body(1, "name", b"")
    assert not taken(raw(kind, body[:-1]))
    assert not taken(raw(kind, body[:-4] + b"\xff\xfe\xff\xfe"))


RARE: dict[RecordKind, dict[str, Any]] = {
    RecordKind.LOG: {"log": 1, "name": "t", "properties": {}},
    RecordKind.LOG_DELETED: {"log": 1},
    RecordKind.LEDGER: {"log": 1, "ledger": 2, "ordinal": 3, "index": 4, "ms": 5},
    RecordKind.TRIMMED: {"log": 1, "ordinal": 2, "bytes": 3},
    RecordKind.CURSOR_DELETED: {"log": 1, "cursor": 2},
    RecordKind.OFFLOADED: {"log": 1, "ledger": 2, "offload": COPY},
    RecordKind.COPY_BEGUN: {"offload": COPY},
    RecordKind.COPY_DELETED: {"key": "k"},
}


@pytest.mark.parametrize("kind", RARE)
def test_each_field_of_a_rare_record_is_there_and_of_its_type(kind: RecordKind) -> None:
    fields = RARE[kind]

    def good(**changed: Any) -> bool:
        return taken(raw(kind, records.as_json({**fields, **changed}).encode()))

    assert good()
    assert good(newer=1)
    for name, value in fields.items():
        left = {other: fields[other] for other in fields if other != name}
        assert taken(raw(kind, records.as_json(left).encode())) is (name == "bytes")
        assert not good(**{name: 1.5})
        assert not good(**{name: True})
        if isinstance(value, int):
            assert good(**{name: 0})
            assert good(**{name: LAST})
            assert not good(**{name: LAST + 1})
            assert not good(**{name: -1})
        elif isinstance(value, str):
            assert good(**{name: "\u00fc"})
            assert not good(**{name: "\ud800"})
        elif isinstance(value, list):
            assert good(**{name: [*COPY, True, "newer"]})
            assert not good(**{name: COPY[:-1]})
            assert not good(**{name: [*COPY, 1]})
            for at in range(len(COPY)):
                assert not good(**{name: [*COPY[:at], None, *COPY[at + 1 :]]})
        else:
            assert not good(**{name: []})
    for body in (b"", b"[]", b"{}", b'{"log":', b"\xff", records.as_json(fields).encode() + b" "):
        assert not taken(raw(kind, body)), body


def test_a_kind_or_a_flag_that_this_version_does_not_know_is_a_newer_versions() -> None:
    """It is never left out as if it were damage."""
    known = {
        RecordKind.EXTENT: extent().body,
        RecordKind.ACKS: state(),
        RecordKind.CURSOR: cursor_records.cursor_record("s", {}, cursor_records.CursorState(1, 2, 3, [], [])),
        RecordKind.FEATURE_STATE: records.feature_state_body(1, "n", b""),
        **{kind: records.as_json(fields).encode() for kind, fields in RARE.items()},
    }
    for kind, body in known.items():
        judged_records.judge(raw(kind, body))
        allowed = records.EXTENT_FLAGS if kind is RecordKind.EXTENT else 0
        for flags in (1 << bit for bit in range(24)):
            if not flags & allowed:
                with pytest.raises(PersistenceError, match="written by a newer version of magnetar"):
                    judged_records.judge(raw(kind, body, flags))
    judged_records.judge(raw(RecordKind.EXTENT, extent().body, records.MOVED))
    for kind_ in (0, max(RecordKind) + 1, 255):
        with pytest.raises(PersistenceError, match="written by a newer version of magnetar"):
            judged_records.judge(raw(kind_, b""))
        with pytest.raises(PersistenceError, match="written by a newer version of magnetar"):
            judged_records.fields_of(raw(kind_, b"{}"))
