"""AckedSet against a plain Python set (rules 4.3.1, 5.7.3); the number of holes is not capped."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.broker.delivery.ordinal_set import OrdinalSet
from magnetar.storage.ledgers.ranges import AckedSet, coalesce

END = 8500
STRIDES = st.builds(
    lambda first, start, count, step: [first + start + n * step for n in range(count)],
    st.sampled_from([0, 4000, 8300]), st.integers(0, 60), st.integers(20, 120), st.integers(1, 4),
)  # fmt: skip
"""What consumers of one subscription acknowledge at once, near the same places: fresh, repeated, over the end."""

OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 9000)),
        st.tuples(st.just("until"), st.integers(0, 9000)),
        st.tuples(st.just("range"), st.integers(0, 9000)),
        st.tuples(st.just("next"), st.integers(0, 9000)),
        st.tuples(st.just("front"), st.integers(1, 120)),
        st.tuples(
            st.just("all"),
            st.one_of(st.lists(st.integers(0, 9000), max_size=50), STRIDES, STRIDES.flatmap(st.permutations)),
        ),
    ),
    max_size=60,
)


@settings(max_examples=300, deadline=None)
@given(OPERATIONS)
def test_behaves_like_a_set(operations: list[tuple[str, int | list[int]]]) -> None:
    acked, model, delayed = AckedSet(), set[int](), OrdinalSet()
    for ordinal in [*range(50, 400, 3), *range(4000, 4200), *range(8100, 8700, 2)]:
        delayed.add(ordinal)
    for what, n in operations:
        if what == "front" and isinstance(n, int):  # what was delivered first, as consumers mostly acknowledge
            n = list(range(acked.mark_delete + 1, acked.mark_delete + 1 + n))
        if isinstance(n, list):
            fresh = sorted({one for one in n if one < END and one not in model})
            assert sorted(acked.add_all(n, END)) == fresh
            model.update(fresh)
            n = max(n, default=0)
        elif what == "add":
            assert acked.add(n) == (n not in model)
            model.add(n)
        elif what == "until":
            acked.add_until(n)
            model.update(range(n + 1))
        else:
            acked.add_range(n, n + 300)
            model.update(range(n, n + 300))
        acked.check()
        mark = next(i for i in range(10_000) if i not in model) - 1
        assert acked.mark_delete == mark
        assert acked.above == sum(1 for i in model if i > mark)
        left = {one for start, stop in acked.ranges(n) for one in range(start, stop)}
        assert left == {one for one in model if one > mark and one >= n}
        assert (n + 1 in acked) == (n + 1 in model)
        assert acked.next_missing(n) == next(i for i in range(n, 20_000) if i not in model)
        assert acked.next_present(n, n + 5000) == next((i for i in range(n, n + 5000) if i in model), n + 5000)
        assert acked.missing_in(n, n + 500) == sum(1 for i in range(n, n + 500) if i not in model)
        assert list(acked.ranges()) == coalesce([i for i in model if i > mark])
        assert acked.stretches() == len(list(acked.ranges()))
        common = sum(1 for i in delayed if mark < i < n + 4000 and i in model)
        assert acked.count_common(delayed, mark + 1, n + 4000) == common
        copy = AckedSet()
        copy.replace(acked.mark_delete, acked.ranges())
        assert (copy.mark_delete, copy.above, list(copy.ranges())) == (mark, acked.above, list(acked.ranges()))
        copy.load(acked.dump())
        copy.check()
        assert (copy.mark_delete, list(copy.ranges())) == (mark, list(acked.ranges()))


def test_a_hundred_thousand_holes_are_kept_exactly() -> None:
    """All holes are kept, however many: Apache Pulsar keeps 10,000 (rule 4.3.4)."""
    order = list(range(0, 200_000, 2))
    random.Random(1).shuffle(order)
    acked = AckedSet()
    for ordinal in order:
        acked.add(ordinal)
    assert acked.mark_delete == 0
    assert acked.above == 99_999
    assert [start for start, _ in acked.ranges()] == list(range(2, 200_000, 2))
    for ordinal in range(1, 200_000, 2):
        acked.add(ordinal)
    assert (acked.mark_delete, acked.above, list(acked.ranges())) == (199_999, 0, [])


def test_a_long_range_takes_little_memory_and_what_follows_changes_no_other() -> None:
    """A start with a mark that is stuck below a billion acknowledgements."""
    one, other = AckedSet(), AckedSet()
    for acked in (one, other):
        acked.add_range(5, 1 << 24)
    assert len({id(chunk) for chunk in one._chunks.values()}) == 2, "the first, and one for all that are whole"
    for ordinal in (7, 5000, (1 << 24) + 3):
        one.add(ordinal)
        one.add_all([ordinal, ordinal + 1], 1 << 25)
    one.add_until(10_000)
    one.check()
    assert (other.size, list(other.ranges())) == ((1 << 24) - 5, [(5, 1 << 24)])
    other.check()
    other.add_range(3, 1 << 24)
    other.add_range(5, 9000)
    other.check()
    assert list(other.ranges()) == [(3, 1 << 24)]
    assert 4999 in other and 2 not in other


@pytest.mark.parametrize("count", [1, 3, 40])
@pytest.mark.parametrize("above", [[4], [2], [3], [40], [41, 42], [1, 2, 3], [5000], list(range(4, 60))])
def test_what_follows_the_mark_meets_what_was_acknowledged_before_it(count: int, above: list[int]) -> None:
    """The mark goes on over all of it, and what was there already is not said to be new."""
    acked = AckedSet(0)
    for ordinal in above:
        acked.add(ordinal)
    ordinals = list(range(1, 1 + count))
    assert sorted(acked.add_all(ordinals, 10_000)) == [ordinal for ordinal in ordinals if ordinal not in above]
    acked.check()
    model = {0, *above, *ordinals}
    mark = next(ordinal for ordinal in range(10_000) if ordinal not in model) - 1
    assert acked.mark_delete == mark
    assert list(acked.ranges()) == coalesce([ordinal for ordinal in sorted(model) if ordinal > mark])


def test_many_far_along_a_log_take_no_more_than_many_at_its_beginning() -> None:
    """A log that lost entries counts on from 2**40, and more."""
    for mark in (-1, 1 << 50):
        acked = AckedSet()
        acked.replace(mark)
        holes = range(mark + 2, mark + 402, 2)
        assert len(acked.add_all(list(holes), mark + 1000)) == 200
        assert list(acked.ranges()) == [(ordinal, ordinal + 1) for ordinal in holes]
        acked.check()
