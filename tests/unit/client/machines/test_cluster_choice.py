"""Which of several clusters a client uses: table and model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.client.machines.cluster_choice import ChoiceState, ClusterChoice


def look(choice: ClusterChoice, there: set[int]) -> list[int]:
    """Do one round; returns who was asked."""
    asked: list[int] = []
    looking = choice.round()
    try:
        number = next(looking)
        while True:
            asked.append(number)
            number = looking.send(number in there)
    except StopIteration:
        return asked


def test_the_primary_one_is_left_after_so_many_failures_in_a_row() -> None:
    choice = ClusterChoice(2, 3, 1)
    for there, current in (({1, 2}, 0), ({1, 2}, 0), ({0, 1, 2}, 0), ({2}, 0), ({2}, 0), ({2}, 2)):
        look(choice, there)
        assert choice.current == current
    assert choice.state is ChoiceState.SECONDARY


def test_the_primary_one_comes_back_after_so_many_answers_in_a_row() -> None:
    choice = ClusterChoice(1, 1, 3)
    for there, current in (({1}, 1), ({0, 1}, 1), ({0, 1}, 1), ({1}, 1), ({0, 1}, 1), ({0, 1}, 1), ({0, 1}, 0)):
        look(choice, there)
        assert choice.current == current
    assert choice.state is ChoiceState.PRIMARY


def test_a_secondary_one_that_fails_is_left_for_the_primary_one_at_once_or_for_another() -> None:
    choice = ClusterChoice(2, 1, 9)
    assert look(choice, {1, 2}) == [0, 1] and choice.current == 1
    assert look(choice, {2}) == [1, 0, 2] and choice.current == 2
    assert look(choice, {0}) == [2, 0] and choice.current == 0


def test_where_nobody_answers_everything_stays_as_it_is() -> None:
    choice = ClusterChoice(2, 1, 1)
    assert look(choice, set()) == [0, 1, 2] and choice.current == 0
    look(choice, {2})
    assert look(choice, set()) == [2, 0, 1] and choice.current == 2


@pytest.mark.parametrize("others", [1, 3])
@given(data=st.data())
def test_who_is_left_failed_often_enough_and_who_is_taken_answers(others: int, data: st.DataObject) -> None:
    threshold, back = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    choice = ClusterChoice(others, threshold, back)
    seen: list[set[int]] = []
    since = 0  # the round in which the current one was taken
    for _ in range(data.draw(st.integers(0, 30))):
        there = set(data.draw(st.sets(st.integers(0, others))))
        seen.append(there)
        before = choice.current
        asked = look(choice, there)
        assert asked[0] == before and len(asked) == len(set(asked))
        if choice.current == before:
            continue
        assert choice.current in there
        lately = seen[since:]
        failed = len(lately) >= threshold and all(before not in one for one in lately[-threshold:])
        recovered = before != 0 and len(lately) >= back and all(0 in one for one in lately[-back:])
        assert failed or (recovered and choice.current == 0)
        since = len(seen)
