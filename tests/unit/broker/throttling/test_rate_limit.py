"""One limit and its line, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from typing_extensions import override

from magnetar.broker.throttling.rate_limit import LimitLevel, RateAmounts, RateLimit
from magnetar.broker.throttling.shared_limits import BrokerRates, SharedLimits
from magnetar.model.topic_policies import ResourceGroup
from magnetar.testing.simloop import SimLoop, run_in


def virtual(test: Callable[[SimLoop], Awaitable[None]]) -> None:
    loop = SimLoop(1, limit_s=10_000_000.0)

    async def main() -> None:
        await test(loop)

    run_in(loop, main())


def limit_of(messages: int = 0, size: int = 0, period_s: int = 1) -> RateLimit:
    return RateLimit(LimitLevel.TOPIC, "dispatchRate", RateAmounts(messages, size, period_s))


class Taker:
    """Takes what there is, for as long as it wants more."""

    def __init__(self, limit: RateLimit, wanted: int, later: bool = False) -> None:
        self.limit = limit
        self.wanted = wanted
        self.later = later
        self.taken = 0
        self.woken: list[float] = []

    def start(self) -> None:
        self.limit.wait(self)

    def take(self) -> None:
        while self.taken < self.wanted:
            room = self.limit.room()
            if room is None:
                break
            some = min(room[0], self.wanted - self.taken)
            self.limit.charge(some, some)
            self.taken += some
        if self.taken < self.wanted:
            self.limit.wait(self)

    def wake(self) -> bool:
        loop = asyncio.get_running_loop()
        self.woken.append(loop.time())
        if self.later:
            loop.call_soon(self.take)
        else:
            self.take()
        return self.later


class OneByOne(Taker):
    """Takes one and waits again."""

    @override
    def take(self) -> None:
        if self.limit.room() is not None:
            self.limit.charge(1, 1)
            self.taken += 1
        self.limit.wait(self)


@pytest.mark.parametrize("later", [False, True], ids=["now", "later"])
@pytest.mark.parametrize("rate", [10, 1000, 100_000])
def test_the_rate_holds_within_two_hundredths(rate: int, later: bool) -> None:
    async def test(loop: SimLoop) -> None:
        limit = limit_of(rate)
        taker = Taker(limit, 1 << 40, later=later)
        taker.start()
        await asyncio.sleep(10)
        assert taker.taken == pytest.approx(10 * rate, rel=0.02)
        assert len(taker.woken) <= 1100, "one timer, some hundred times a second at most"

    virtual(test)


def test_all_of_a_line_share_it_evenly_and_in_order() -> None:
    async def test(loop: SimLoop) -> None:
        limit = limit_of(1000)
        takers = [Taker(limit, 1 << 40) for _ in range(10)]
        for taker in takers:
            taker.start()
        await asyncio.sleep(20)
        assert sum(taker.taken for taker in takers) == pytest.approx(20_000, rel=0.02)
        for taker in takers:
            assert taker.taken == pytest.approx(2000, rel=0.1)

    virtual(test)


def test_a_thousand_that_take_one_later_do_not_go_below_the_rate() -> None:
    """Connections that send one message each time they are read."""

    async def test(loop: SimLoop) -> None:
        limit = limit_of(100_000)
        takers = [OneByOne(limit, 1 << 40, later=True) for _ in range(1000)]
        for taker in takers:
            taker.start()
        await asyncio.sleep(1)
        assert sum(taker.taken for taker in takers) == pytest.approx(100_000, rel=0.12)

    virtual(test)


def test_nobody_waits_for_a_limit_that_is_over() -> None:
    async def test(loop: SimLoop) -> None:
        limit = limit_of(1, period_s=2**31 - 1)
        takers = [Taker(limit, 100) for _ in range(3)]
        limit.charge(1, 1)
        for taker in takers:
            taker.start()
        await asyncio.sleep(5000)
        assert limit.waiting == 3
        limit.close()
        assert [taker.taken for taker in takers] == [100] * 3
        assert limit.waiting == 0
        takers[0].start()
        assert limit.waiting == 0

    virtual(test)


def test_who_leaves_is_not_woken_and_an_empty_line_has_no_timer() -> None:
    async def test(loop: SimLoop) -> None:
        limit = limit_of(10)
        limit.charge(100, 0)
        first, second = Taker(limit, 1), Taker(limit, 1)
        first.start()
        second.start()
        assert limit.will_wake(first)
        limit.leave(first)
        assert not limit.will_wake(first)
        await asyncio.sleep(20)
        assert not first.woken
        assert len(second.woken) == 1
        limit.charge(100, 0)
        second.wanted = 2
        second.start()
        limit.leave(second)
        await asyncio.sleep(20)
        assert len(second.woken) == 1

    virtual(test)


def test_the_stricter_of_messages_and_bytes_decides() -> None:
    async def test(loop: SimLoop) -> None:
        limit = limit_of(1000, 10_000)
        limit.charge(1, 5000)
        assert limit.room() is None
        assert limit.by_bytes
        assert limit.wait_s() == pytest.approx(0.41)
        limit.charge(5000, 0)
        assert not limit.by_bytes

    virtual(test)


def test_a_rate_that_follows_another() -> None:
    async def test(loop: SimLoop) -> None:
        limit = limit_of(10)
        pace = [RateAmounts(10)]
        limit.follow(lambda: pace[0], 1.0)
        taker = Taker(limit, 1 << 40)
        taker.start()
        await asyncio.sleep(10)
        assert taker.taken == pytest.approx(100, rel=0.02)
        pace[0] = RateAmounts(1000)
        await asyncio.sleep(11)
        assert 10_100 <= taker.taken <= 11_300, "it is asked once in a second"

    virtual(test)


def test_shared_limits_are_one_for_all_and_known_by_their_value() -> None:
    async def test(loop: SimLoop) -> None:
        changes: list[None] = []
        shared = SharedLimits(BrokerRates(publish=RateAmounts(5), dispatch=RateAmounts(bytes=7)))
        group = ResourceGroup("g", publish=(10, -1), dispatch=(-1, 20))
        one, other = shared.publish(group), shared.publish(ResourceGroup("g", publish=(10, -1)))
        assert [str(limit) for limit in one] == [
            "10 messages a second (publish rate of the resource group g)",
            "5 messages a second (brokerPublisherThrottlingMaxMessageRate, brokerPublisherThrottlingMaxByteRate)",
        ]
        assert one == other
        assert shared.publish(None) == one[1:]
        assert shared.publish(ResourceGroup("g", publish=(11, -1)))[0] is not one[0]
        assert shared.dispatch(group)[0].amounts == RateAmounts(-1, 20)
        assert SharedLimits().dispatch(group)[0] is not shared.dispatch(group)[0]
        assert SharedLimits().publish(ResourceGroup("g")) == ()
        waiter = Taker(one[1], 1)
        one[1].charge(1000, 0)
        waiter.start()
        shared.set_rates(shared.rates, lambda: changes.append(None))
        assert not changes
        shared.set_rates(
            BrokerRates(publish=RateAmounts(6), dispatch=RateAmounts(bytes=7)), lambda: changes.append(None)
        )
        assert len(changes) == 1
        assert waiter.taken == 1
        assert shared.publish(None) != one[1:]
        assert shared.dispatch(None)[0].amounts == RateAmounts(bytes=7)

    virtual(test)
