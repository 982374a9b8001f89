"""Offsets and plans: pure, half-open, the same for the same arguments."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.client.read_position import START, ReadPosition
from magnetar.model.errors import InvalidValueError
from magnetar.spark.offset_json import cuts_of, from_json, to_json
from magnetar.spark.source.planning.planner import Range, plan

positions = st.builds(ReadPosition, st.integers(0, 3), st.integers(0, 50), st.integers(0, 3))
offsets = st.dictionaries(st.sampled_from("abcd"), positions, max_size=4)


@given(offsets)
def test_an_offset_is_the_same_after_json(offset: dict[str, ReadPosition]) -> None:
    assert from_json(to_json(offset)) == offset
    backwards = dict(reversed(offset.items()))
    assert str(to_json(backwards)) == str(to_json(offset))


cuts_given = st.dictionaries(st.sampled_from("abcd"), st.lists(positions, max_size=4), max_size=4)


@given(offsets, cuts_given)
def test_cuts_are_the_same_after_json(offset: dict[str, ReadPosition], cuts: dict[str, list[ReadPosition]]) -> None:
    assert cuts_of(to_json(offset, None, cuts)) == cuts
    assert from_json(to_json(offset, None, cuts)) == offset
    assert to_json(offset, None, {}) == to_json(offset)


@given(offsets, offsets, cuts_given, st.integers(0, 9))
def test_cuts_change_who_reads_and_not_what(
    start: dict[str, ReadPosition], end: dict[str, ReadPosition], cuts: dict[str, list[ReadPosition]], least: int
) -> None:
    tasks = plan(start, end, least=least, cuts=cuts)
    assert tasks == plan(start, end, least=least, cuts=cuts_of(to_json(end, None, cuts)))
    found = sorted(one for task in tasks for one in task)
    borders = {(one.topic, one.start) for one in found}
    for topic in end:
        mine = [one for one in found if one.topic == topic]
        if start.get(topic, START) < end[topic]:
            assert (mine[0].start, mine[-1].end) == (start.get(topic, START), end[topic])
            assert all(one.end == two.start for one, two in itertools.pairwise(mine))
            inside = [position for position in cuts.get(topic, ()) if start.get(topic, START) < position < end[topic]]
            assert all((topic, position) in borders for position in inside)
        else:
            assert mine == []


def test_an_offset_of_another_source_is_refused() -> None:
    assert from_json({"v": 1, "p": {"t": "1:2:0@77"}}) == {"t": ReadPosition(1, 2)}
    for wrong in ({}, {"v": 2, "p": {}}, {"v": 1, "p": []}, {"v": 1, "p": {"t": "x"}}):
        with pytest.raises(InvalidValueError):
            from_json(wrong)


@given(offsets, offsets, st.integers(0, 20), st.integers(0, 5))
def test_tasks_cover_exactly_what_is_new(
    start: dict[str, ReadPosition], end: dict[str, ReadPosition], least: int, most: int
) -> None:
    tasks = plan(start, end, least=least, most=most)
    assert tasks == plan(dict(reversed(start.items())), dict(reversed(end.items())), least=least, most=most)
    assert not most or len(tasks) <= most
    ranges = sorted(one for task in tasks for one in task)
    for topic in end:
        mine = [one for one in ranges if one.topic == topic]
        if start.get(topic, START) >= end[topic]:
            assert mine == []
            continue
        assert (mine[0].start, mine[-1].end) == (start.get(topic, START), end[topic])
        assert all(before.end == after.start for before, after in itertools.pairwise(mine))
        assert all(one.start < one.end for one in mine)


def test_large_ranges_are_halved_until_there_are_enough() -> None:
    tasks = plan(
        {"a": ReadPosition(1, 0), "b": ReadPosition(1, 0)}, {"a": ReadPosition(1, 8), "b": ReadPosition(1, 2)}, least=4
    )
    assert tasks == [
        (Range("a", ReadPosition(1, 0), ReadPosition(1, 2)),),
        (Range("a", ReadPosition(1, 2), ReadPosition(1, 4)),),
        (Range("a", ReadPosition(1, 4), ReadPosition(1, 8)),),
        (Range("b", ReadPosition(1, 0), ReadPosition(1, 2)),),
    ]
    # One entry cannot be halved, and how many there are between two ledgers is not known.
    assert len(plan({"a": ReadPosition(1, 7)}, {"a": ReadPosition(1, 8)}, least=4)) == 1
    assert len(plan({"a": ReadPosition(1, 0)}, {"a": ReadPosition(2, 8)}, least=4)) == 1


def test_many_ranges_are_dealt_out_evenly() -> None:
    end = {name: ReadPosition(1, size) for name, size in zip("abcd", (9, 1, 5, 3), strict=True)}
    tasks = plan(dict.fromkeys(end, ReadPosition(1, 0)), end, most=2)
    assert [[one.topic for one in task] for task in tasks] == [["a"], ["b", "c", "d"]]
