"""The bucket against an accountant who forgets nothing and rounds nothing."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.broker.throttling.token_bucket import BURST, TokenBucket

AMOUNTS = st.one_of(st.integers(1, 20), st.integers(1, 10**6), st.just(2**63 - 1), st.just(2**31 - 1))
PERIODS = st.sampled_from([-5, 0, 1, 2, 10, 30, 3600, 2**31 - 1])


class Accountant:
    """Exact: tokens as fractions, time in milliseconds."""

    def __init__(self, amount: int, period_s: int) -> None:
        self.rate = Fraction(amount, max(period_s, 1))
        self.capacity = max(Fraction(amount, 10), Fraction(3, 2))
        self.level = max(Fraction(amount, 10), Fraction(1))

    def passed(self, ms: int) -> None:
        self.level = min(self.capacity, self.level + self.rate * ms / 1000)


@given(AMOUNTS, PERIODS, st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 500)), max_size=60))
def test_it_agrees_with_the_accountant(amount: int, period_s: int, steps: list[tuple[int, int]]) -> None:
    bucket, exact, now_ms = TokenBucket(amount, period_s, 0.0), Accountant(amount, period_s), 0
    for ms, tokens in steps:
        now_ms += ms
        exact.passed(ms)
        available = bucket.available(now_ms / 1000)
        assert available == pytest.approx(float(exact.level), rel=1e-9, abs=1.001)
        # whole tokens: never one that is not there, but for what sums of fractions lose
        assert available <= exact.level + Fraction(1, 1000) * max(Fraction(1), exact.level / 1000)
        if available >= 1:
            bucket.take(tokens)
            exact.level -= tokens


@given(AMOUNTS, PERIODS, st.integers(1, 30_000))
def test_who_waits_as_told_finds_a_token(amount: int, period_s: int, taken: int) -> None:
    bucket = TokenBucket(amount, period_s, 0.0)
    bucket.take(taken)
    wait = bucket.wait_s(0.0)
    assert (wait == 0) == (bucket.available(0.0) >= 1)
    assert bucket.available(wait) >= 1


@pytest.mark.parametrize("rate", [1, 7, 10, 1000, 100_000])
def test_a_limit_holds_over_any_ten_periods(rate: int) -> None:
    """Somebody who takes all there is whenever there is something, after a long pause."""
    bucket = TokenBucket(rate, 1, -1000.0)
    now, taken = 0.0, 0
    while now < 10:
        tokens = bucket.available(now)
        if tokens >= 1:
            bucket.take(tokens)
            taken += tokens
        now += max(bucket.wait_s(now), 1e-4)
    assert taken == pytest.approx(10 * rate, rel=BURST / 10 + 0.001, abs=1)


def test_one_in_ten_seconds() -> None:
    bucket = TokenBucket(1, 10, 0.0)
    assert bucket.available(0.0) == 1
    bucket.take(1)
    assert bucket.wait_s(0.0) == pytest.approx(10)
    assert bucket.available(9.9) == 0
    assert bucket.available(10.0) == 1
    assert bucket.available(1000.0) == 1


def test_a_large_batch_is_paid_off() -> None:
    bucket = TokenBucket(10, 1, 0.0)
    bucket.take(10_000)
    assert bucket.wait_s(0.0) == pytest.approx(1000)
    assert bucket.available(999.0) < 1


def test_another_rate_keeps_what_is_owed() -> None:
    bucket = TokenBucket(10, 1, 0.0)
    bucket.take(101)
    bucket.change(100, 1, 0.0)
    assert bucket.wait_s(0.0) == pytest.approx(1.01)
    bucket.change(10, 1, 100.0)
    assert bucket.available(100.0) == 1


def test_a_clock_that_stands_still_or_goes_back_gives_nothing() -> None:
    bucket = TokenBucket(10, 1, 5.0)
    bucket.take(1)
    assert bucket.available(4.0) == 0
    assert bucket.available(5.0) == 0
    assert bucket.available(5.1) == 1
