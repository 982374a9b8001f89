"""Sorted ordinals against a set, and what many of them cost: a list that is made anew for each change is quadratic."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.model.ordinals import SortedOrdinals

SOME = st.lists(st.integers(0, 300), max_size=40, unique=True)


def made(ordinals: list[int]) -> SortedOrdinals:
    found = SortedOrdinals()
    found.extend(ordinals)
    return found


@given(before=st.lists(st.integers(0, 300), max_size=300, unique=True), more=SOME, gone=SOME)
def test_against_a_set(before: list[int], more: list[int], gone: list[int]) -> None:
    ordinals, model = made(before), set(before)
    ordinals.extend(more)
    model.update(more)
    assert ordinals.front(400) == sorted(model)
    ordinals.discard_all(gone)
    model.difference_update(gone)
    ordinals.check()
    assert ordinals.front(400) == sorted(model)
    for ordinal in range(302):
        assert (ordinal in ordinals) == (ordinal in model)
        assert ordinals.next_missing(ordinal) == next(o for o in range(ordinal, 400) if o not in model)


@pytest.mark.parametrize(
    "change",
    [
        lambda ordinals: ordinals.extend([5]),
        lambda ordinals: ordinals.extend(range(1, 401, 2)),
        lambda ordinals: ordinals.discard_all(range(0, 400, 2)),
        lambda ordinals: ordinals.discard_all([0, 2, 4, 6, 8, 10]),
    ],
)
def test_a_few_of_many_do_not_make_the_list_anew(change: Callable[[SortedOrdinals], None]) -> None:
    """One acknowledgement in a transaction, or one message to be sent again, beside 100,000 others."""
    ordinals = made(list(range(0, 200_000, 2)))
    before = ordinals._ordinals
    change(ordinals)
    assert ordinals._ordinals is before
    ordinals.check()


def test_many_of_many_make_it_anew_once() -> None:
    """Each one by itself would move the others once for each: a second for 100,000."""
    ordinals = made(list(range(100_000)))
    before = ordinals._ordinals
    ordinals.discard_all(range(1, 100_000))
    assert ordinals._ordinals is not before
    assert ordinals.front(2) == [0]
