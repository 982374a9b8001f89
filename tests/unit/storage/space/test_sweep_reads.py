"""How many extents of a segment one read takes: those that lie close together, and not more than a few megabytes."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from magnetar.storage.space.segment_sweep import _Place, _runs

KB, MB = 1 << 10, 1 << 20
Steps = list[tuple[int, int]]


def places(steps: Steps) -> list[_Place]:
    """From how much is stepped over before each extent, and how long it is."""
    found: list[_Place] = []
    at = 0
    for number, (gap, length) in enumerate(steps):
        at += gap
        found.append(_Place(at, length, 0, number, number + 1))
        at += length
    return found


def together(steps: Steps) -> list[int]:
    return [len(run) for run in _runs(places(steps))]


def test_a_quarter_of_a_megabyte_is_rather_read_over_than_stepped_over() -> None:
    assert together([(0, KB), (256 * KB, KB), (256 * KB, KB)]) == [3]
    assert together([(0, KB), (256 * KB + 1, KB), (0, KB)]) == [1, 2]
    assert together([(5 * MB, KB), (0, KB)]) == [2], "what lies before the first one is nobody's"


def test_one_read_takes_four_megabytes_or_one_extent() -> None:
    assert together([(9, MB)] + [(0, MB)] * 3) == [4]
    assert together([(9, MB)] + [(0, MB)] * 2 + [(0, MB + 1)]) == [3, 1]
    assert together([(0, 5 * MB), (0, 5 * MB), (0, KB)]) == [1, 1, 1]
    assert together([]) == []


@given(st.lists(st.tuples(st.sampled_from([0, 1, 256 * KB, 256 * KB + 1, MB]), st.sampled_from([1, KB, MB, 4 * MB]))))
def test_every_extent_is_read_once_in_the_order_of_the_file(steps: Steps) -> None:
    runs = list(_runs(places(steps)))
    assert [place for run in runs for place in run] == places(steps)
    assert all(runs)
    for run, following in pairwise(runs):
        gap = following[0].offset - (run[-1].offset + run[-1].length)
        size = following[0].offset + following[0].length - run[0].offset
        assert gap > 256 * KB or size > 4 * MB, "two reads where one would do"
