"""Buckets count each value once, quantiles are right within 1 %, and both forget when they are told to."""

from __future__ import annotations

import math
from random import Random

import pytest

from magnetar.runtime.distributions import Buckets, Quantiles, Summaries


@pytest.mark.parametrize(
    ("value", "place"), [(0, 0), (1, 0), (1.01, 1), (5, 1), (5.5, 2), (10, 2), (10.5, 3), (math.inf, 3)]
)
def test_a_value_counts_in_the_first_bucket_that_it_fits(value: float, place: int) -> None:
    buckets = Buckets((1, 5, 10))
    buckets.add(value, 2)
    assert buckets.counts == [2 if i == place else 0 for i in range(4)]
    assert buckets.count == 2


def test_many_values_at_once_count_as_one_by_one() -> None:
    rng = Random(1)
    for _ in range(200):
        values = [rng.choice([0, 1, 2, 127, 128, 129, 511, 512, 600, 5000]) for _ in range(rng.randrange(12))]
        one, each = Buckets((128, 512, 1024)), Buckets((128, 512, 1024))
        one.add_each(values)
        for value in values:
            each.add(value)
        assert (one.counts, one.sum) == (each.counts, each.sum)


def test_what_is_taken_begins_again() -> None:
    buckets = Buckets((1, 2))
    buckets.add(1.5)
    assert buckets.cumulative() == [(1, 0), (2, 1), (math.inf, 1)]
    assert buckets.take() == (0, 1, 0, 1.5)
    assert buckets.take() == (0, 0, 0, 0)


def test_quantiles_are_near_and_forget_after_two_periods() -> None:
    quantiles = Quantiles()
    assert all(math.isnan(value) for _, value in quantiles.of())
    for value in range(1, 1001):
        quantiles.add(value)
    found = dict(quantiles.of())
    for quantile in (0.5, 0.95, 0.99, 1.0):
        assert found[quantile] == pytest.approx(quantile * 1000, rel=0.011)
    quantiles.turn()
    assert dict(quantiles.of())[0.5] == pytest.approx(500, rel=0.011)
    quantiles.turn()
    assert math.isnan(quantiles.of()[0][1])
    assert (quantiles.count, quantiles.sum) == (1000, 500_500)


def test_a_period_makes_no_object_that_stays() -> None:
    """What is replaced again and again moves into the gaps that bursts leave, and keeps their memory."""
    quantiles, buckets = Quantiles(), Buckets((1.0, 2.0))
    made = {id(quantiles._now), id(quantiles._before)}
    counts = buckets.counts
    for number in range(3):
        quantiles.add(1.0)
        buckets.add(1.5)
        quantiles.turn()
        assert {id(quantiles._now), id(quantiles._before)} == made
        assert (buckets.take(), buckets.counts) == ((0, 1, 0, 1.5), [0, 0, 0])
        assert buckets.counts is counts, number


def test_words_are_bounded() -> None:
    summaries = Summaries(most=2)
    for word in ("a", "b", "c", "d"):
        summaries.add(word, 1)
    assert {word: one.count for word, one in summaries.by_word.items()} == {"a": 1, "b": 1, "other": 2}


@pytest.mark.parametrize("value", [0.0001, 3.0, 1e4, 1e6])
def test_cells_are_counted_without_an_object_of_their_own(value: float) -> None:
    """Else each is made where memory is taken just then, and keeps it when all else has gone."""
    one, other = Quantiles(), Quantiles()
    one.add(value)
    other.add(value)
    assert next(iter(one._now)) is next(iter(other._now))


def test_a_value_beyond_all_cells_counts_too() -> None:
    summary = Quantiles()
    summary.add(1e12)
    assert summary.of((0.5,))[0][1] == pytest.approx(1e12, rel=0.01)
