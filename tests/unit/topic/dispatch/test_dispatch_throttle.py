"""A subscription under limits of rates, in virtual time: how much goes out, to whom, and that nothing else changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from magnetar.broker.throttling.rate_limit import LimitLevel, RateAmounts, RateLimit
from magnetar.broker.topic.dispatch.consumer import Consumer
from magnetar.broker.topic.dispatch.dispatch_throttle import DispatchThrottle
from magnetar.broker.topic.dispatch.entry_reads import EntryReads
from magnetar.broker.topic.subscription.explanation import explain
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.model.subscription_types import SubType
from magnetar.testing.simloop import SimLoop, run_in
from tests.support.subscription_churn import Churn
from tests.support.subscription_fakes import FakeConnection
from tests.support.subscription_stand import Stand

ALL = pytest.mark.parametrize("sub_type", list(SubType), ids=lambda sub_type: sub_type.name)

NO_BOUND: dict[str, Any] = {"max_unacked_messages_per_consumer": 0, "max_unacked_messages_per_subscription": 0}


def virtual(test: Callable[[], Coroutine[Any, Any, None]], seed: int = 1) -> None:
    run_in(SimLoop(seed, limit_s=100_000_000.0), test())


def limit_of(
    messages: int = 0, size: int = 0, period_s: int = 1, level: LimitLevel = LimitLevel.SUBSCRIPTION
) -> RateLimit:
    return RateLimit(level, "dispatchRate", RateAmounts(messages, size, period_s))


def limit(subscription: Subscription, *limits: RateLimit, **options: bool) -> DispatchThrottle:
    throttle = subscription.pump.throttle or DispatchThrottle(subscription.pump, subscription.cursor)
    throttle.set_limits(limits, **options)
    return throttle


def messages_of(stand: Stand, connection: FakeConnection) -> int:
    return sum(stand.log.counts[ordinal] for ordinal in connection.ordinals)


def test_without_a_limit_the_pump_has_nothing_of_this_kind() -> None:
    """What it calls for each run and slice is what it called before there were limits."""
    pump = Stand().subscription.pump
    assert pump.throttle is None
    assert pump.run_at == pump.reads.run_at
    assert pump.run_at.__func__ is EntryReads.run_at  # type: ignore[attr-defined]
    assert pump.sender.sent is Consumer.sent


@ALL
@pytest.mark.parametrize(("rate", "batch"), [(10, 1), (1000, 1), (100_000, 100)])
def test_the_rate_holds_within_two_hundredths(sub_type: SubType, rate: int, batch: int) -> None:
    async def test() -> None:
        stand = Stand(active_consumer_failover_delay_ms=0, **NO_BOUND)
        stand.append(*[batch] * (11 * rate // batch))
        limit(stand.subscription, limit_of(rate))
        _, connection = stand.join("c", sub_type, permits=1 << 30)
        for _ in range(10):
            await asyncio.sleep(1)
        assert messages_of(stand, connection) == pytest.approx(10 * rate, rel=0.02)
        assert connection.ordinals == list(range(len(connection.ordinals)))

    virtual(test)


@ALL
@pytest.mark.parametrize("rate", [100, 10_000])
def test_bytes_too(sub_type: SubType, rate: int) -> None:
    async def test() -> None:
        stand = Stand(active_consumer_failover_delay_ms=0)
        stand.append_many(2 * rate)
        limit(stand.subscription, limit_of(size=rate))
        _, connection = stand.join("c", sub_type, permits=1 << 30)
        await asyncio.sleep(10)
        assert sum(len(stand.log.entries[o]) for o in connection.ordinals) == pytest.approx(10 * rate, rel=0.02)

    virtual(test)


@pytest.mark.parametrize("seed", range(6))
@ALL
def test_nothing_is_lost_repeated_or_reordered_whatever_happens(sub_type: SubType, seed: int) -> None:
    """Consumers come, go, acknowledge in part and ask again while limits hold, change and end."""

    async def test() -> None:
        churn = Churn(sub_type, seed, ring=bool(seed % 2))
        rng = churn.rng
        shared = limit_of(rng.choice((5, 50)), level=LimitLevel.TOPIC)
        for _ in range(600):
            churn.step()
            if rng.random() < 0.03:
                own = limit_of(rng.choice((0, 3, 40)), rng.choice((0, 100)), rng.choice((1, 1, 5)))
                limits = tuple(one for one in (own, shared) if one.amounts.limited and rng.random() < 0.7)
                limit(churn.subscription, *limits, entries_for_messages=rng.random() < 0.3)
            if rng.random() < 0.3:
                await asyncio.sleep(rng.choice((0, 0.01, 0.5)))
            pump = churn.subscription.pump
            if pump.throttle is not None and pump.throttle.waits_for is not None:
                assert pump.throttle.waiting, "it waits, and nothing is going to wake it"
            if (dispatcher := churn.subscription.dispatcher) is not None:
                dispatcher.check()
        limit(churn.subscription)
        assert churn.subscription.pump.throttle is None
        await churn.finish()

    virtual(test, seed)


@ALL
@pytest.mark.parametrize("seed", range(3))
def test_it_drains_under_a_limit(sub_type: SubType, seed: int) -> None:
    async def test() -> None:
        churn = Churn(sub_type, seed, ring=False)
        limit(churn.subscription, limit_of(200), limit_of(30, 500, level=LimitLevel.TOPIC))
        for _ in range(200):
            churn.step()
        churn.log.resident = 0
        for consumer in list(churn.members):
            churn.leave(consumer)
        churn.join()
        last = next(iter(churn.members))
        for _ in range(5000):
            if churn.cursor.backlog() == 0:
                return
            if churn.log.reads:
                churn.log.finish_read()
            churn.subscription.flow(last, 50)
            churn.acknowledge(last)
            await asyncio.sleep(0.1)
        raise AssertionError(f"stuck with a backlog of {churn.cursor.backlog()}")

    virtual(test, seed)


def test_a_batch_larger_than_the_limit_passes_and_is_paid_off() -> None:
    async def test() -> None:
        stand = Stand()
        limit(stand.subscription, limit_of(10))
        _, connection = stand.join(permits=1 << 30)
        stand.append(10_000, 1)
        assert connection.ordinals == [0]
        await asyncio.sleep(999)
        assert connection.ordinals == [0]
        await asyncio.sleep(1.2)
        assert connection.ordinals == [0, 1]

    virtual(test)


def test_a_batch_counts_as_one_where_entries_are_charged() -> None:
    async def test() -> None:
        stand = Stand(**NO_BOUND)
        stand.append(*[1000] * 200)
        limit(stand.subscription, limit_of(10), entries_for_messages=True)
        _, connection = stand.join(permits=1 << 30)
        await asyncio.sleep(10)
        assert len(connection.got) == pytest.approx(100, rel=0.02)

    virtual(test)


def test_one_in_ten_seconds() -> None:
    async def test() -> None:
        stand = Stand()
        stand.append_many(100)
        limit(stand.subscription, limit_of(1, period_s=10))
        _, connection = stand.join(permits=1000)
        await asyncio.sleep(99)
        assert connection.ordinals == list(range(10))

    virtual(test)


@pytest.mark.parametrize("amounts", [RateAmounts(2**31 - 1, 2**63 - 1), RateAmounts(1, period_s=2**31 - 1)])
def test_absurd_amounts(amounts: RateAmounts) -> None:
    async def test() -> None:
        stand = Stand()
        stand.append_many(100)
        limit(stand.subscription, RateLimit(LimitLevel.TOPIC, "dispatchRate", amounts))
        _, connection = stand.join(permits=1000)
        await asyncio.sleep(100_000)
        assert len(connection.got) == (1 if amounts.messages == 1 else 100)
        limit(stand.subscription)
        assert len(connection.got) == 100

    virtual(test)


def test_each_level_is_charged_and_the_strictest_decides() -> None:
    async def test() -> None:
        topic = limit_of(100, level=LimitLevel.TOPIC)
        slow, quick = Stand(), Stand()
        got = []
        for stand, own in ((slow, limit_of(10)), (quick, limit_of(1000))):
            stand.append_many(3000)
            limit(stand.subscription, own, topic)
            got.append(stand.join(permits=1 << 30)[1])
        await asyncio.sleep(10)
        assert len(got[0].got) == pytest.approx(100, rel=0.02)
        assert len(got[0].got) + len(got[1].got) == pytest.approx(1000, rel=0.02)
        throttle = quick.subscription.pump.throttle
        assert throttle is not None
        assert set(throttle.times) == {(LimitLevel.TOPIC, False)}

    virtual(test)


def test_two_saturated_limits_do_not_wait_for_each_other() -> None:
    async def test() -> None:
        one, other = limit_of(50, level=LimitLevel.TOPIC), limit_of(50, level=LimitLevel.BROKER)
        connections = []
        for i in range(20):
            stand = Stand()
            stand.append_many(2000)
            limit(stand.subscription, *((one, other) if i % 2 else (other, one)))
            connections.append(stand.join(permits=1 << 30)[1])
        await asyncio.sleep(20)
        shares = [len(connection.got) for connection in connections]
        assert sum(shares) == pytest.approx(1000, rel=0.02)
        assert min(shares) >= 40

    virtual(test)


def test_who_keeps_up_is_spared_where_that_is_wanted() -> None:
    async def test() -> None:
        stand = Stand()
        limit(stand.subscription, limit_of(10), also_caught_up=False)
        consumer, connection = stand.join(permits=1 << 30)
        for _ in range(100):
            stand.append_many(1)
            stand.subscription.acks.take(consumer, [connection.ordinals[-1]])
        assert len(connection.got) == 100
        stand.append_many(1200)
        await asyncio.sleep(10)
        assert len(connection.got) < 100 + 1200
        assert len(connection.got) == pytest.approx(100 + 100, abs=5)

    virtual(test)


def test_another_limit_holds_at_once_and_so_does_none() -> None:
    async def test() -> None:
        stand = Stand()
        stand.append_many(10_000)
        slow = limit_of(1, period_s=1000)
        limit(stand.subscription, slow)
        _, connection = stand.join(permits=1 << 30)
        await asyncio.sleep(100)
        assert len(connection.got) == 1
        limit(stand.subscription, limit_of(100))
        assert slow.waiting == 0
        await asyncio.sleep(10)
        assert len(connection.got) == pytest.approx(1001, rel=0.02)
        limit(stand.subscription)
        await asyncio.sleep(0.01)
        assert len(connection.got) == 10_000
        assert stand.subscription.pump.sender.sent is Consumer.sent

    virtual(test)


def test_it_says_why_and_does_not_count_as_standing_still() -> None:
    async def test() -> None:
        stand = Stand()
        stand.append_many(100)
        limit(stand.subscription, limit_of(1, 1000, period_s=20, level=LimitLevel.TOPIC))
        stand.join(permits=1000)
        assert stand.subscription.should_send() == ""
        found = explain(stand.subscription)
        assert [one.what for one in found] == ["throttled"]
        assert found[0].text == (
            "The topic is at its limit of 1 messages and 1000 bytes in 20 s (dispatchRate), the next can be sent in "
            "20 s."
        )
        throttle = stand.subscription.pump.throttle
        assert throttle is not None
        assert throttle.waits_for is not None
        throttle.waits_for.leave(throttle)
        assert "is next" in stand.subscription.should_send(), "a lost wake-up is found"

    virtual(test)


def test_a_closed_subscription_waits_for_nothing() -> None:
    async def test() -> None:
        stand = Stand()
        stand.append_many(100)
        slow = limit_of(1, period_s=1000)
        limit(stand.subscription, slow)
        _, connection = stand.join(permits=1000)
        assert slow.waiting == 1
        stand.subscription.close()
        assert slow.waiting == 0
        assert stand.subscription.pump.throttle is None
        await asyncio.sleep(5000)
        assert len(connection.got) == 1

    virtual(test)


def test_who_is_woken_takes_its_tokens_now() -> None:
    """So the limit calls the next one as long as it has room; for connections it waits until the client has sent."""

    async def test() -> None:
        stand = Stand()
        stand.append_many(50)
        throttle = limit(stand.subscription, limit_of(2))
        _, connection = stand.join("c", permits=100)
        assert 0 < len(connection.ordinals) < 5 and throttle.waiting
        assert throttle.wake() is False

    virtual(test)
