"""The choice of segments to empty, against a model of a disk on which anything lives and dies (Hypothesis)."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.storage.space.victims import AIM, CRUMB, CRUMBS_MAX, SPARSE, SegmentUse, excess, victims

SLACK = 1000
USES = st.lists(
    st.tuples(st.integers(1, SLACK), st.floats(0, 1)).map(lambda one: (one[0], max(int(one[0] * one[1]), 1))),
    max_size=80,
).map(lambda sizes: [SegmentUse(number, size, living) for number, (size, living) in enumerate(sizes)])


def carried_out(uses: list[SegmentUse], chosen: list[SegmentUse]) -> list[SegmentUse]:
    """Afterwards: what was moved lies together, in segments full of what lives."""
    left = [use for use in uses if use not in chosen]
    moved = sum(use.living for use in chosen)
    number = max((use.number for use in uses), default=0)
    while moved > 0:
        number += 1
        left.append(SegmentUse(number, min(moved, SLACK), min(moved, SLACK)))
        moved -= SLACK
    return left


@given(USES)
@settings(max_examples=500)
def test_what_is_left_is_at_most_what_is_aimed_at_and_the_slack(uses: list[SegmentUse]) -> None:
    chosen = victims(uses, SLACK)
    assert len(set(chosen)) == len(chosen)
    assert set(chosen) <= set(uses)
    after = carried_out(uses, chosen)
    assert sum(use.living for use in after) == sum(use.living for use in uses)
    assert sum(use.size for use in after) <= AIM * sum(use.living for use in after) + SLACK
    assert excess(after, SLACK) <= 0
    assert all(use.living * SPARSE > use.size for use in after)


@given(USES)
@settings(max_examples=500)
def test_each_byte_that_is_moved_frees_seven_eighths_or_more(uses: list[SegmentUse]) -> None:
    small = [use for use in uses if use.size * CRUMB <= SLACK]
    for use in victims(uses, SLACK):
        assert AIM * use.living < use.size or use.living * SPARSE <= use.size or use in small


@given(st.lists(st.tuples(st.integers(1, SLACK), st.floats(0, 1)), min_size=1, max_size=200), st.randoms())
@settings(max_examples=100)
def test_the_bound_holds_whatever_lives_and_dies(writes: list[tuple[int, float]], rng: object) -> None:
    """Segments are written; parts of them die, any parts; passes come in between."""
    uses: list[SegmentUse] = []
    written = moved = freed = 0
    for i, (size, dies) in enumerate(writes):
        number = max((use.number for use in uses), default=0) + 1
        uses.append(SegmentUse(number, size, size))
        written += size
        uses = [use._replace(living=int(use.living * (1 - dies * ((i + use.number) % 3) / 2))) for use in uses]
        uses = [use for use in uses if use.living]
        chosen = victims(uses, SLACK)
        crumbs = [use for use in chosen if AIM * use.living >= use.size]
        moved += sum(use.living for use in chosen if use not in crumbs)
        freed += sum(use.size - use.living for use in chosen if use not in crumbs)
        uses = carried_out(uses, chosen)
        assert sum(use.size for use in uses) <= AIM * sum(use.living for use in uses) + SLACK
    assert (AIM - 1) * moved <= freed <= written, "an eighth more may be moved than was written"


def test_a_lonely_message_does_not_keep_a_segment() -> None:
    assert victims([SegmentUse(1, 1000, 1)], SLACK) == [SegmentUse(1, 1000, 1)]


def test_the_emptiest_goes_first_and_no_more_than_needed() -> None:
    uses = [SegmentUse(1, 1000, 480), SegmentUse(2, 1000, 300), SegmentUse(3, 1000, 450), SegmentUse(4, 1000, 400)]
    assert victims(uses, 0) == [SegmentUse(2, 1000, 300), SegmentUse(4, 1000, 400)]
    assert victims(uses, 1000) == []


def test_a_little_less_than_twice_what_lives_is_aimed_at() -> None:
    """What dies until the next look takes two bytes each from what is promised."""
    uses = [SegmentUse(1, 1000, 500), SegmentUse(2, 1000, 500)]
    assert excess(uses, 0) == 125
    assert victims(uses, 0) == [SegmentUse(1, 1000, 500)]


def test_many_small_ones_become_one() -> None:
    few = [SegmentUse(number, 50, 45) for number in range(CRUMBS_MAX)]
    assert victims(few, SLACK) == []
    many = [*few, SegmentUse(99, 50, 45)]
    assert victims(many, SLACK) == many
