"""Sorted names against a plain set, and what one change costs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from magnetar.broker.namespaces.lookup import topics_hash
from magnetar.model import sorted_names
from magnetar.model.sorted_names import SortedNames

NAMES = st.sampled_from([f"{letter}{number}" for letter in "abé\U0001f600" for number in range(12)])


@given(st.lists(NAMES, unique=True), st.lists(st.tuples(st.booleans(), NAMES), max_size=80), st.integers(1, 4))
def test_names_are_those_of_a_set_with_its_hash(start: list[str], changes: list[tuple[bool, str]], piece: int) -> None:
    before, sorted_names._PIECE = sorted_names._PIECE, piece  # type: ignore[misc]
    try:
        names, model = SortedNames(start), set(start)
        for number, (add, name) in enumerate(changes):
            if add:
                assert names.add(name) == (name not in model)
                model.add(name)
            else:
                assert names.discard(name) == (name in model)
                model.discard(name)
            assert (name in names) == (name in model)
            assert list(names) == sorted(model)
            assert len(names) == len(model)
            assert all(0 < len(part) <= 2 * piece for part in names.pieces())
            assert list(names.between("a2", "b")) == sorted(each for each in model if "a2" <= each < "b")
            if number % 3 == 0:
                assert names.digest() == topics_hash(list(model))
    finally:
        sorted_names._PIECE = before  # type: ignore[misc]


def test_a_reader_sees_the_names_that_were_there_when_it_began() -> None:
    names = SortedNames(f"{number:05d}" for number in range(5000))
    pieces = names.pieces()
    for number in range(0, 5000, 2):
        names.discard(f"{number:05d}")
    assert [name for piece in pieces for name in piece] == [f"{number:05d}" for number in range(5000)]
    assert len(names) == 2500


def test_a_change_costs_what_comes_after_it() -> None:
    names = SortedNames(f"{number:06d}" for number in range(100_000))
    assert len(list(names.digesting())) == len(names.pieces()) >= 190
    assert list(names.digesting()) == []
    names.add("099999x")
    assert len(list(names.digesting())) == 1
    names.add("050000x")
    assert len(list(names.digesting())) <= len(names.pieces()) / 2 + 1
