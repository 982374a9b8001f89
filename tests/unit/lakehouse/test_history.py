"""Versions map to topic positions and back; a checkpoint gives query id and positions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from magnetar.client.read_position import ReadPosition
from magnetar.lakehouse.model.history import Commit, newest, positions_at, version_holding
from magnetar.lakehouse.query_checkpoint import QueryCheckpoint, positions_of
from magnetar.model.errors import InvalidValueError

T0, T1, U = "t-partition-0", "t-partition-1", "u-partition-0"
COMMITS = [
    Commit(0, 1000, "append", "q", 0, {T0: "1:5:0", T1: "-1:0:0"}),
    Commit(1, 2000, "append", "q", 1, {T0: "1:9:3", T1: "2:1:0"}),
    Commit(2, 3000, "compact"),
    Commit(3, 4000, "append", "other", 7, {U: "4:4:0"}),
    Commit(4, 5000, "append", "q", 2, {T0: "3:0:0", T1: "2:1:0"}),
]


def test_positions_of_a_version() -> None:
    assert positions_at(COMMITS, 0) == {T0: "1:5:0", T1: "-1:0:0"}
    assert positions_at(COMMITS, 2) == {T0: "1:9:3", T1: "2:1:0"}
    assert positions_at(COMMITS, 3) == {T0: "1:9:3", T1: "2:1:0", U: "4:4:0"}
    assert positions_at(COMMITS, 4, "other") == {U: "4:4:0"}
    with pytest.raises(InvalidValueError, match="no commit up to version 2 is of query other; there are q"):
        positions_at(COMMITS, 2, "other")
    with pytest.raises(InvalidValueError, match="no commit up to version 2 says how far"):
        positions_at(COMMITS[2:3], 2)


def test_two_queries_that_read_one_topic_must_be_told_apart() -> None:
    both = [*COMMITS, Commit(5, 6000, "append", "twin", 0, {T0: "1:1:0"})]
    with pytest.raises(InvalidValueError, match=r"several queries write t-partition-0.*other, q, twin: name one"):
        positions_at(both, 5)
    assert positions_at(both, 5, "twin") == {T0: "1:1:0"}


@pytest.mark.parametrize(
    ("topic", "place", "version"),
    [
        (T0, ReadPosition(1, 4), 0),
        (T0, ReadPosition(1, 5), 1),
        (T0, ReadPosition(1, 9, 2), 1),
        (T0, ReadPosition(1, 9, 3), 4),
        (T0, ReadPosition(3, 0), None),
        (T1, ReadPosition(2, 0), 1),
        (U, ReadPosition(0, 0), 3),
        ("never-read", ReadPosition(0, 0), None),
    ],
)
def test_the_version_that_holds_a_message(topic: str, place: ReadPosition, version: int | None) -> None:
    assert version_holding(COMMITS, topic, place) == version


def test_a_version_is_found_by_number_by_time_or_as_the_last() -> None:
    assert newest(COMMITS, None, None) == 4
    assert newest(COMMITS, 2, None) == 2
    assert newest(COMMITS, None, "3999") == 2
    assert newest(COMMITS, None, "1970-01-01T00:00:04Z") == 3
    for version, at, message in (
        (5, None, "there is no version 5; the table's history has 0 to 4"),
        (None, "999", "history begins at 1970-01-01T00:00:01"),
        (1, "2000", "either a version or a timestamp"),
    ):
        with pytest.raises(InvalidValueError, match=message):
            newest(COMMITS, version, at)


def offset(**places: str) -> str:
    return json.dumps({"v": 1, "p": {name.replace("_", "-"): place for name, place in places.items()}})


def test_positions_are_read_from_an_offset_log() -> None:
    log = "\n".join(
        ["v1", '{"batchWatermarkMs":0,"conf":{}}', offset(a="1:2:3@17"), "-", "41", '{"rate": 5}', offset(b="-1:0:0")]
    )
    assert positions_of(log, "log") == {"a": "1:2:3", "b": "-1:0:0"}
    # A topic that two sources of the query read: rows up to the earlier place are surely there.
    assert positions_of(f"v1\n{{}}\n{offset(a='1:20:0')}\n{offset(a='1:3:0')}", "log") == {"a": "1:3:0"}
    assert positions_of("v1\n{}\n-", "log") is None

    with pytest.raises(InvalidValueError, match="log has version"):
        positions_of("v2\n{}\n-", "log")
    with pytest.raises(InvalidValueError, match="offsets of version 2"):
        positions_of('v1\n{}\n{"v": 2, "p": {}}', "log")


def test_a_checkpoint_gives_query_id_and_positions(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "metadata").write_text('{"id":"c6758721"}')
    (tmp_path / "offsets" / "3").write_text(f"v1\n{{}}\n{offset(a='1:2:0')}")
    for path in (str(tmp_path), f"file:{tmp_path}", f"file://{tmp_path}"):
        checkpoint = QueryCheckpoint(path, {})
        assert checkpoint.query_id() == "c6758721"
        assert (checkpoint.positions(3), checkpoint.positions(2)) == ({"a": "1:2:0"}, None)
