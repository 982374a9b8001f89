"""The rate of a query against a model of Spark: a rate, what each micro-batch costs anyway, perhaps an interval."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.model.errors import InvalidValueError
from magnetar.spark.options.limits import ReadLimits
from magnetar.spark.options.source_options import source_options
from magnetar.spark.source.planning.rate_estimator import FIRST, RateEstimator


class Spark:
    """Runs micro-batches on a clock that it moves itself."""

    def __init__(self, estimator: RateEstimator, rate: float, *, overhead: float = 0.1, interval: float = 0.0) -> None:
        self.estimator, self.rate, self.overhead, self.interval = estimator, rate, overhead, interval
        self.now = 0.0
        self.stall = 0.0
        self.counts: list[int] = []
        self.seconds: list[float] = []
        """The seconds of processing, without the wait for the next tick."""

    def run(self, batches: int, there: Callable[[], int] = lambda: 1 << 60) -> Spark:
        for _ in range(batches):
            count = min(self.estimator.messages, there())
            assert count >= 1
            self.estimator.begin(count, self.now)
            took = self.overhead + count / self.rate + self.stall
            self.counts.append(count)
            self.seconds.append(took)
            self.now += took
            if self.interval:
                self.now = math.ceil(self.now / self.interval - 1e-9) * self.interval
            self.estimator.finish(self.now)
        return self


@given(st.floats(1, 5e6), st.sampled_from([1.0, 2.0, 10.0, 60.0]))
def test_a_constant_rate_is_met(rate: float, target: float) -> None:
    spark = Spark(RateEstimator(target), rate).run(30)
    assert spark.counts[0] == FIRST
    # Now and then there are a few more, to see whether they take longer.
    message = 1 / rate
    assert all(0.75 * target - message <= one <= 1.25 * target + message for one in spark.seconds[-8:])


def test_a_stall_is_forgotten_and_a_slower_sink_is_not() -> None:
    spark = Spark(RateEstimator(10.0), 50_000).run(15)
    usual = spark.counts[-1]
    spark.stall = 600.0
    spark.run(1)
    spark.stall = 0.0
    assert spark.run(1).counts[-1] >= usual // 3
    assert spark.run(8).counts[-1] == pytest.approx(usual, rel=0.2)
    spark.rate = 500
    spark.run(20)
    assert all(7 <= one <= 13 for one in spark.seconds[-8:])
    spark.rate = 500_000
    assert spark.run(20).seconds[-1] == pytest.approx(10, rel=0.25)


@given(st.lists(st.tuples(st.integers(1, 10**9), st.floats(0, 1e7)), max_size=40), st.floats(0.001, 1000))
def test_the_limit_is_never_zero(batches: list[tuple[int, float]], target: float) -> None:
    estimator, now = RateEstimator(target), 0.0
    for there, seconds in batches:
        assert estimator.messages >= 1
        estimator.begin(min(there, estimator.messages), now)
        now += seconds
        estimator.finish(now)
    assert estimator.messages >= 1


def test_idle_time_is_not_processing_time() -> None:
    quick = Spark(RateEstimator(10.0), 50_000).run(12)
    usual = quick.estimator.messages
    for _ in range(20):
        # An hour in which nothing comes, asked every second; then a trickle, which says nothing about the rate.
        for _ in range(3_600):
            quick.now += 1.0
            quick.estimator.finish(quick.now)
        quick.run(1, there=lambda: 7)
    assert quick.estimator.messages == usual
    # Even a few can take too long.
    quick.rate = 0.1
    quick.run(4, there=lambda: 7)
    assert quick.estimator.messages < usual / 4


@pytest.mark.parametrize(("interval", "most"), [(2.0, 10.0), (10.0, 10.0), (30.0, 30.0)])
def test_the_wait_for_a_tick_does_not_stop_it(interval: float, most: float) -> None:
    """The source sees ticks only: it fills them, or the target if that is longer, and never shrinks to nothing."""
    spark = Spark(RateEstimator(10.0), 50_000, interval=interval).run(60)
    late = spark.seconds[-30:]
    assert 0.4 * most <= sum(late) / len(late) <= 1.1 * most
    assert max(late) <= 2.2 * most


def test_within_the_limits_of_the_user() -> None:
    estimator = RateEstimator(5.0)
    assert estimator.within(ReadLimits()) == ReadLimits(FIRST)
    assert estimator.within(ReadLimits(10, 77)) == ReadLimits(10, 77)
    assert estimator.within(ReadLimits(FIRST + 1)) == ReadLimits(FIRST)
    base = {"service.url": "pulsar://h", "topic": "t"}
    assert source_options(base).target_trigger == 0
    assert source_options({**base, "targetTriggerMs": "1500"}).target_trigger == 1.5
    with pytest.raises(InvalidValueError, match="a number from 1"):
        source_options({**base, "targetTriggerMs": "0"})
