"""Which ranges a replay reads: the backlog, exactly; and a plan that is made once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.client.read_position import ReadPosition
from magnetar.jobs.reader.units import Access
from magnetar.jobs.replay import ReplayRequest, acknowledged, backlog, load_or_make, sink_options_of
from magnetar.model.errors import InvalidValueError
from magnetar.spark.options.sink_options import sink_options
from magnetar.spark.source.planning.planner import Range

WANTED = ReplayRequest(
    "r1", "persistent://public/default/dlq", None, "persistent://public/default/t", "value IS NOT NULL"
)


@given(st.integers(-1, 20), st.sets(st.integers(0, 20)), st.integers(0, 22))
def test_the_backlog_is_what_is_not_acknowledged(mark: int, acked: set[int], end: int) -> None:
    """Ranges of one ledger of entries 0 to 21 equal the set of unacknowledged entries."""
    ranges = [f"(7:{number - 1}..7:{number}]" for number in sorted(acked) if number > mark]
    cursor = {"markDeletePosition": f"7:{mark}", "individuallyDeletedMessages": f"[{','.join(ranges)}]"}
    found = backlog(cursor, ReadPosition(7, end))
    entries = [entry for start, stop in found for entry in range(start.entry, stop.entry)]
    assert entries == [entry for entry in range(end) if entry > mark and entry not in acked]


def test_ranges_across_ledgers_and_in_both_spellings() -> None:
    text = "[(3:1..3:4],(5:-1..5:2]]"
    want = [(ReadPosition(3, 2), ReadPosition(3, 5)), (ReadPosition(5, 0), ReadPosition(5, 3))]
    assert acknowledged(text) == acknowledged(text.replace("..", "‥")) == want
    cursor = {"markDeletePosition": "3:-1", "individuallyDeletedMessages": text}
    assert backlog(cursor, ReadPosition(5, 9)) == [
        (ReadPosition(3, 0), ReadPosition(3, 2)),
        (ReadPosition(3, 5), ReadPosition(5, 0)),
        (ReadPosition(5, 3), ReadPosition(5, 9)),
    ]
    assert acknowledged("[]") == []


def test_a_plan_is_made_once(tmp_path: Path) -> None:
    path = tmp_path / "replay-r1.json"
    ranges = [Range(WANTED.source, ReadPosition(1, 2), ReadPosition(3, 4, 5))]
    assert load_or_make(path, WANTED, lambda: ranges) == (ranges, False)
    assert load_or_make(path, WANTED, lambda: pytest.fail("it is there")) == (ranges, True)
    other = ReplayRequest("r1", WANTED.source, None, WANTED.target, None)
    with pytest.raises(InvalidValueError, match="whose condition is 'value IS NOT NULL' and not None"):
        load_or_make(path, other, lambda: ranges)
    path.write_text("{}")
    with pytest.raises(InvalidValueError, match="is no plan of a replay"):
        load_or_make(path, WANTED, lambda: ranges)


def test_a_plan_says_its_format(tmp_path: Path) -> None:
    """Plans of releases before have none; a later format is refused whatever else stands there."""
    path = tmp_path / "replay-r1.json"
    ranges = [Range(WANTED.source, ReadPosition(1, 2), ReadPosition(3, 4, 5))]
    load_or_make(path, WANTED, lambda: ranges)
    stored = json.loads(path.read_text())
    assert stored.pop("format") == 1
    path.write_text(json.dumps(stored))
    assert load_or_make(path, WANTED, lambda: pytest.fail("it is there")) == (ranges, True)
    for later in ({"format": 2}, {**stored, "format": 2}):
        path.write_text(json.dumps(later))
        with pytest.raises(InvalidValueError, match="is of format 2, this release knows 1: use a later release"):
            load_or_make(path, WANTED, lambda: ranges)
    wrong: object
    for wrong in ({**stored, "format": "1"}, {**stored, "format": 0}, {**stored, "format": True}, [], 1):
        path.write_text(json.dumps(wrong))
        with pytest.raises(InvalidValueError, match="is no plan of a replay"):
            load_or_make(path, WANTED, lambda: ranges)


def test_bad_requests_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="cannot name a replay"):
        ReplayRequest("a b", "dlq", None, "t", None).checked()
    with pytest.raises(InvalidValueError, match="into itself"):
        ReplayRequest("a", "t", None, "persistent://public/default/t", None).checked()
    assert ReplayRequest("a", "t", "s", "t", None).checked().target == "persistent://public/default/t"


def test_what_came_in_chunks_is_published_in_chunks() -> None:
    """The job ended, and asked for an option that it does not have."""
    wanted = ReplayRequest("fix", "persistent://public/default/a", None, "persistent://public/default/b", None)
    options = sink_options(sink_options_of(Access("pulsar://127.0.0.1:1"), wanted))
    assert options.chunking and options.app == ("replay-fix", 0) and options.topic == wanted.target
