"""Backlog quotas of one topic on the real store, against sums over a list of sizes (rules of 4.6)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest

from magnetar.broker.throttling.passes import Passes
from magnetar.broker.topic.cleanup.backlog_quotas import BacklogQuotas
from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.broker.topic.dispatch.dispatcher_choice import TopicIdentity
from magnetar.broker.topic.publish.producers import Producers
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.broker.topic.subscription.subscriptions import Subscriptions
from magnetar.model.errors import QuotaExceededError, QuotaExceededHoldError
from magnetar.model.system_topics import COMPACTION_SUBSCRIPTION
from magnetar.model.topic_policies import BacklogQuota, QuotaPolicy, TopicPolicies
from magnetar.protocol.entries import EntryMetadata, build_entry
from magnetar.runtime.clock import SystemClock
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.store import LedgerStore
from magnetar.storage.store_settings import StoreSettings
from magnetar.testing.faultfiles import FaultFileSystem

SETTINGS = StoreSettings(ledger_entries_max=8, ledger_min_rollover_ms=0)
EVICT, HOLD, EXCEPTION = QuotaPolicy.EVICT, QuotaPolicy.HOLD, QuotaPolicy.EXCEPTION


class FakeProducers:
    def __init__(self) -> None:
        self.closed = 0

    def close_all(self) -> None:
        self.closed += 1


class SmallTopic:
    """A log with entries and subscriptions at these marks; names that begin with ``-`` are not durable."""

    def __init__(self, store: LedgerStore, policies: TopicPolicies) -> None:
        self.store = store
        self.log: ManagedLedger = store.open_log("t")
        self.producers = FakeProducers()
        self.subscriptions = Subscriptions(TopicIdentity("t"), self.log, DispatchSettings(), SystemClock(), Passes())
        self.quotas = BacklogQuotas(self.log, cast("Producers", self.producers), self.subscriptions, policies)

    async def add(self, *entries: bytes) -> None:
        for entry in entries:
            self.log.append(entry, 1, None)
        await self.store.journal.drain()

    def subscribe(self, name: str, mark: int = -1) -> Subscription:
        made = self.subscriptions.open(
            name, durable=not name.startswith("-"), ordinal=lambda: 0, properties={}, done=lambda: None
        )  # fmt: skip
        made.cursor.acknowledge_until(mark)
        return made

    def marks(self) -> list[int]:
        return [subscription.cursor.mark_delete for subscription in self.subscriptions.values()]


def size_quota(limit: int, policy: QuotaPolicy) -> TopicPolicies:
    return TopicPolicies(size_quota=BacklogQuota(limit, policy))


def age_quota(limit: int, policy: QuotaPolicy) -> TopicPolicies:
    return TopicPolicies(age_quota=BacklogQuota(limit, policy))


def published(*times: int) -> list[bytes]:
    return [build_entry(EntryMetadata("p", 0, time), b"x") for time in times]


async def topic(policies: TopicPolicies) -> SmallTopic:
    store = LocalLedgerStore(FaultFileSystem(random.Random(0)), SystemClock(), SETTINGS)
    store.open()
    return SmallTopic(store, policies)


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(main)


def last_to_go(sizes: list[int], mark: int, limit: int) -> int:
    """What eviction promises: below the limit, and on to 90 % of it, but never below these."""
    while sum(sizes[mark + 1 :]) >= limit or (mark + 1 < len(sizes) and sum(sizes[mark + 2 :]) >= limit * 0.9):
        mark += 1
    return mark


@pytest.mark.parametrize("seed", range(12))
def test_the_slowest_lose_their_oldest_messages_down_to_nine_tenths(seed: int) -> None:
    """Each entry once per subscription that loses it; those below the limit, of a reader or compaction lose none (rule
    4.6.5)."""

    async def main() -> None:
        rng = random.Random(seed)
        sizes = [rng.choice((10, 10, 25, 100)) for _ in range(30)]
        marks = [rng.randint(-1, 29) for _ in range(3)]
        limit = rng.choice((1, 10, 100, 250, 400, sum(sizes), sum(sizes) + 1))
        there = await topic(size_quota(limit, EVICT))
        await there.add(*(bytes(size) for size in sizes))
        names = ["a", "b", "c"]
        for name, mark in zip(names, marks, strict=True):
            there.subscribe(name, mark)
        there.subscribe("-reader")
        there.subscribe(COMPACTION_SUBSCRIPTION)
        wanted = [last_to_go(sizes, mark, limit) if sum(sizes[mark + 1 :]) >= limit else mark for mark in marks]
        await there.quotas.check(0)
        assert there.marks() == [*wanted, -1, -1]
        assert there.quotas.evicted == sum(wanted) - sum(marks)
        assert there.producers.closed == 0
        there.quotas.check_producer()
        await there.store.close()

    run(main())


def test_who_catches_up_during_a_check_keeps_no_other_from_eviction(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        there = await topic(size_quota(300, EVICT))
        await there.add(*(bytes(100) for _ in range(10)))
        for name in "abc":
            there.subscribe(name)
        evict = Subscription.expire_until

        def while_b_catches_up(evicted: Subscription, ordinal: int) -> int:
            there.subscriptions["b"].cursor.acknowledge_until(9)
            return evict(evicted, ordinal)

        monkeypatch.setattr(Subscription, "expire_until", while_b_catches_up)
        await there.quotas.check(0)
        assert there.marks() == [7, 9, 7]
        await there.store.close()

    run(main())


@pytest.mark.parametrize(
    ("limit", "mark"), [(101, -1), (100, 0), (99, 0), (91, 0), (90, 1), (89, 1), (50, 5), (10, 9), (1, 9), (0, 9)]
)
def test_the_limit_itself_is_too_much(limit: int, mark: int) -> None:
    """So many of ten entries of ten bytes go that less than the limit is left, and no more than keep nine tenths."""

    async def main() -> None:
        there = await topic(size_quota(limit, EVICT))
        await there.add(*[bytes(10)] * 10)
        there.subscribe("s")
        await there.quotas.check(0)
        assert there.marks() == [mark]
        await there.store.close()

    run(main())


@pytest.mark.parametrize(("policy", "error"), [(HOLD, QuotaExceededHoldError), (EXCEPTION, QuotaExceededError)])
def test_producers_go_at_the_limit_and_may_come_when_the_backlog_is_below(
    policy: QuotaPolicy, error: type[Exception]
) -> None:
    """Above the quota producers are closed and refused until the backlog is below it (rules 4.6.2, 4.6.4)."""

    async def main() -> None:
        there = await topic(size_quota(100, policy))
        there.quotas.check_producer()
        await there.add(*[bytes(10)] * 9)
        subscription = there.subscribe("s")
        await there.quotas.check(0)
        there.quotas.check_producer()
        assert there.producers.closed == 0
        await there.add(bytes(10))
        with pytest.raises(error) as refused:
            there.quotas.check_producer()
        assert type(refused.value) is error
        await there.quotas.check(0)
        assert (there.producers.closed, there.marks()) == (1, [-1])
        with pytest.raises(error):
            there.quotas.check_producer()
        subscription.cursor.acknowledge([0])
        there.quotas.check_producer()
        await there.quotas.check(0)
        assert there.producers.closed == 1
        there.quotas.policies_changed(TopicPolicies(), TopicPolicies())
        await there.add(bytes(1000))
        await there.quotas.check(0)
        there.quotas.check_producer()
        assert not there.quotas.any
        await there.store.close()

    run(main())


def test_a_limit_of_nothing_is_reached_by_nothing() -> None:
    """-1 is no limit, and 0 is one: whoever has a subscription admits no producer (rule 4.6.2)."""

    async def main() -> None:
        there = await topic(size_quota(0, EXCEPTION))
        there.quotas.check_producer()
        there.subscribe("s")
        assert there.quotas.any
        with pytest.raises(QuotaExceededError):
            there.quotas.check_producer()
        there.quotas.policies_changed(TopicPolicies(), size_quota(-1, EXCEPTION))
        there.quotas.check_producer()
        await there.store.close()

    run(main())


def test_the_oldest_message_is_that_of_the_slowest_and_too_old_a_millisecond_after_its_limit() -> None:
    async def main() -> None:
        there = await topic(age_quota(10, EXCEPTION))
        await there.add(*published(5_000, 6_000, 7_000))
        there.subscribe("-reader")
        there.subscribe(COMPACTION_SUBSCRIPTION)
        await there.quotas.check(1 << 40)
        assert (there.quotas.oldest_name, there.quotas.oldest_published_ms, there.producers.closed) == ("", -1, 0)
        slow, fast = there.subscribe("slow", 0), there.subscribe("fast", 1)
        await there.quotas.check(16_000)
        assert (there.quotas.oldest_name, there.quotas.oldest_published_ms) == ("slow", 6_000)
        assert there.producers.closed == 0
        there.quotas.check_producer()
        await there.quotas.check(16_001)
        assert there.producers.closed == 1
        with pytest.raises(QuotaExceededError):
            there.quotas.check_producer()
        slow.cursor.acknowledge([1, 2])
        there.quotas.check_producer()
        await there.quotas.check(17_000)
        assert (there.quotas.oldest_name, there.quotas.oldest_published_ms) == ("fast", 7_000)
        fast.cursor.acknowledge([2])
        await there.quotas.check(1 << 40)
        assert (there.quotas.oldest_name, there.quotas.oldest_published_ms) == ("", -1)
        assert there.producers.closed == 1
        await there.store.close()

    run(main())


def test_entries_that_nobody_can_read_have_the_age_of_what_stands_behind_them() -> None:
    async def main() -> None:
        there = await topic(age_quota(10, EXCEPTION))
        await there.add(b"", b"?", *published(5_000, 4_000))
        there.subscribe("s")
        await there.quotas.check(15_000)
        assert (there.quotas.oldest_name, there.quotas.oldest_published_ms) == ("s", 5_000)
        await there.store.close()

    run(main())


def test_of_too_old_messages_those_go_that_are_older_than_nine_tenths_from_every_subscription() -> None:
    async def main() -> None:
        there = await topic(age_quota(10, EVICT))
        await there.add(*published(1_000, 1_999, 2_000, 2_001, 9_000))
        there.subscribe("a")
        there.subscribe("b", 0)
        there.subscribe("-reader")
        there.subscribe(COMPACTION_SUBSCRIPTION)
        await there.quotas.check(11_000)
        assert there.marks() == [-1, 0, -1, -1], "nothing is older than the limit"
        await there.quotas.check(11_001)
        assert there.marks() == [2, 2, -1, -1], "published before 2,001"
        assert there.quotas.evicted == 3 + 2
        assert there.producers.closed == 0
        there.quotas.check_producer()
        await there.store.close()

    run(main())


@pytest.mark.parametrize(("size", "age"), [(-1, -1), (-1, 0)])
def test_without_a_limit_there_is_nothing_to_check(size: int, age: int) -> None:
    """A size of 0 is a limit, an age of 0 is none."""

    async def main() -> None:
        policies = size_quota(size, EXCEPTION)._replace(age_quota=BacklogQuota(age, EXCEPTION))
        there = await topic(policies)
        await there.add(*published(1))
        there.subscribe("s")
        assert not there.quotas.any
        await there.quotas.check(1 << 40)
        assert there.producers.closed == 0
        there.quotas.policies_changed(policies, policies._replace(size_quota=BacklogQuota(0, EXCEPTION)))
        assert there.quotas.any
        await there.quotas.check(1)
        assert there.producers.closed == 1
        await there.store.close()

    run(main())


@pytest.mark.parametrize("policy", [EVICT, HOLD, EXCEPTION])
@pytest.mark.parametrize("limit", [0, 1])
@pytest.mark.parametrize("quota", [size_quota, age_quota])
@pytest.mark.parametrize("names", [(), ("-reader",), ("-reader", COMPACTION_SUBSCRIPTION)])
def test_where_nobody_has_a_backlog_no_quota_is_reached(
    policy: QuotaPolicy, limit: int, quota: Callable[[int, QuotaPolicy], TopicPolicies], names: tuple[str, ...]
) -> None:
    async def main() -> None:
        there = await topic(quota(limit, policy))
        await there.add(*published(1, 2, 3))
        for name in names:
            there.subscribe(name)
        await there.quotas.check(1 << 40)
        there.quotas.check_producer()
        assert (there.producers.closed, there.quotas.evicted, there.marks()) == (0, 0, [-1] * len(names))
        assert (there.quotas.evictions_size, there.quotas.evictions_time) == (0, 0)
        await there.store.close()

    run(main())


def test_of_two_quotas_the_sizes_policy_is_told_first() -> None:
    async def main() -> None:
        there = await topic(size_quota(1, HOLD)._replace(age_quota=BacklogQuota(1, EXCEPTION)))
        await there.add(*published(1))
        there.subscribe("s")
        await there.quotas.check(1 << 40)
        with pytest.raises(QuotaExceededHoldError):
            there.quotas.check_producer()
        assert there.producers.closed == 1
        await there.store.close()

    run(main())


@pytest.mark.parametrize("published_ms", [0, 1, 5])
def test_a_message_without_a_publish_time_is_as_old_as_time(published_ms: int) -> None:
    """Clients may leave it at 0, which is a time like any other: only -1 says that there is no message."""

    async def main() -> None:
        there = await topic(age_quota(10, EXCEPTION))
        await there.add(*published(published_ms, 9_000))
        there.subscribe("s")
        await there.quotas.check(10_000 + published_ms)
        assert (there.quotas.oldest_name, there.quotas.oldest_published_ms) == ("s", published_ms)
        assert there.producers.closed == 0
        await there.quotas.check(10_001 + published_ms)
        assert there.producers.closed == 1
        await there.store.close()

    run(main())
