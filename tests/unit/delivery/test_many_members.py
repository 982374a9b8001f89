"""Hundreds of consumers on one subscription: what joining and leaving costs, counted in executed lines.

Twice as many members may take twice as many steps, and a little for finding one's place; what goes through all members
whenever one comes or goes would take four times as many.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from magnetar.broker.delivery.consumer_state import ConsumerState
from magnetar.broker.delivery.dispatch_limits import DispatchLimits
from magnetar.broker.delivery.dispatchers.dispatcher import Dispatcher
from magnetar.broker.delivery.dispatchers.exclusive import Exclusive
from magnetar.broker.delivery.dispatchers.failover import Failover
from magnetar.broker.delivery.dispatchers.key_shared import KeyShared
from magnetar.broker.delivery.dispatchers.shared import Shared
from magnetar.broker.delivery.sticky_keys.hash_ranges import HashRanges
from magnetar.broker.delivery.sticky_keys.hash_ring import HashRing
from magnetar.broker.delivery.sticky_keys.selector import Selector, slots_within
from magnetar.broker.delivery.sticky_keys.sticky_ranges import StickyRanges, check_count, joined
from magnetar.broker.topic.subscription.subscription_stats import consumers_stats
from magnetar.model.errors import ConsumerAssignError
from tests.support.executed_lines import steps
from tests.support.writable import FakeWritable, consumer

MEMBERS = 250
DOUBLED = 2.6
"""Linear is 2.0, by n log n 2.2, quadratic 4.0."""


def member(i: int, of: int) -> ConsumerState:
    width = 65_536 // of
    return ConsumerState(f"c{i:05}", FakeWritable(), 0, ((i * width, (i + 1) * width - 1),))


def come_and_go(dispatcher: Dispatcher, members: int) -> None:
    """They leave in another order than they joined."""
    joined = [member(i, members) for i in range(members)]
    for one in joined:
        dispatcher.add(one)
    for one in joined[::2] + joined[1::2]:
        dispatcher.remove(one)


SELECTORS: dict[str, Callable[[], Selector]] = {"ring": HashRing, "ranges": HashRanges, "sticky": StickyRanges}
LIMITS = DispatchLimits(unacked_per_consumer=0, unacked_per_subscription=0)


@pytest.mark.parametrize("kind", SELECTORS)
def test_key_shared(kind: str) -> None:
    def made() -> Dispatcher:
        return KeyShared(SELECTORS[kind](), LIMITS)

    few, many = (steps(lambda n=n: come_and_go(made(), n)) for n in (MEMBERS, 2 * MEMBERS))  # type: ignore[misc]
    assert many < DOUBLED * few


@pytest.mark.parametrize("kind", SELECTORS)
def test_entries_are_looked_at_only_where_the_owner_changed(kind: str) -> None:
    """A newcomer among n looks at an n-th of 1500 entries that are out and 1500 that wait, all together at each a few
    times."""

    def joining(members: int, held: int) -> int:
        dispatcher = KeyShared(SELECTORS[kind](), LIMITS)
        first, *others = (member(i, members) for i in range(members))
        dispatcher.add(first)
        first.flow(held)
        slots = [1 + i * 65_534 // (2 * held + 1) for i in range(2 * held)]
        dispatcher.assign(0, 2 * held, None, slots)
        return steps(lambda: [dispatcher.add(one) for one in others])

    for members in (MEMBERS, 2 * MEMBERS):
        each = (joining(members, 1500) - joining(members, 0)) / 3000
        assert each < 600, f"of {members} members"


@pytest.mark.parametrize("kind", ["shared", "failover", "failover of a partition"])
def test_other_types(kind: str) -> None:
    def made() -> Dispatcher:
        if kind == "shared":
            return Shared(LIMITS)
        return Failover("persistent://a/b/t", 3 if "partition" in kind else -1)

    few, many = (steps(lambda n=n: come_and_go(made(), n)) for n in (MEMBERS, 2 * MEMBERS))  # type: ignore[misc]
    assert many < DOUBLED * few


@pytest.mark.parametrize("kind", SELECTORS)
def test_statistics(kind: str) -> None:
    """When all consumers change, all keys are gone through once; when one does, not at all."""

    class Handle:
        def __init__(self, state: ConsumerState) -> None:
            self.state = state

        def __getattr__(self, name: str) -> int:
            return 0

    def shown(members: int, *, only: bool) -> int:
        dispatcher = KeyShared(SELECTORS[kind](), LIMITS)
        handles = [Handle(member(i, members)) for i in range(members)]
        for handle in handles:
            dispatcher.add(handle.state)
        asked: Any = handles[1] if only else None
        return steps(lambda: consumers_stats(handles, dispatcher, asked))  # type: ignore[arg-type]

    assert shown(2 * MEMBERS, only=False) < DOUBLED * shown(MEMBERS, only=False)
    assert shown(MEMBERS, only=True) < 100


def test_an_entry_finds_its_consumer_among_many() -> None:
    """One entry costs the same whether a hundred consumers are there or a thousand."""

    def given(members: int) -> int:
        dispatcher = KeyShared(HashRing(), LIMITS)
        for i in range(members):
            one = member(i, members)
            dispatcher.add(one)
            one.flow(10)
        return steps(lambda: [dispatcher.assign(at, at + 1, None, [1 + at * 601 % 65_535]) for at in range(100)])

    assert given(1000) < 1.2 * given(100)


def test_ranges_have_a_number() -> None:
    check_count(range(65_536))
    with pytest.raises(ConsumerAssignError, match="65537 hash ranges for a consumer: there are 65536 hashes"):
        check_count(range(65_537))
    with pytest.raises(ConsumerAssignError, match="100000 hash ranges"):
        StickyRanges().add(ConsumerState("c", FakeWritable(), 0, tuple((i, i) for i in range(100_000))))
    with pytest.raises(ConsumerAssignError, match="100000 hash ranges"):
        Exclusive().add(ConsumerState("c", FakeWritable(), 0, tuple((i, i) for i in range(100_000))))


def test_many_ranges_of_one_consumer() -> None:
    """One consumer declares every second hash as ranges of one, another the rest: each is looked at a few times."""
    selector = StickyRanges()
    odd = ConsumerState("odd", FakeWritable(), 0, tuple((i, i) for i in range(1, 65_536, 2)))
    even = ConsumerState("even", FakeWritable(), 0, tuple((i, i) for i in range(0, 65_536, 2)))
    assert steps(lambda: selector.add(odd)) < 20 * 32_768
    assert steps(lambda: selector.add(even)) < 30 * 32_768
    assert selector.select(4711) is odd
    assert selector.select(4712) is even
    assert steps(lambda: selector.remove(odd)) < 20 * 32_768
    assert selector.select(4711) is None
    assert selector.select(4712) is even


def test_an_exclusive_consumer_with_many_ranges_finds_its_entries() -> None:
    exclusive = Exclusive()
    one = ConsumerState("c", FakeWritable(), 0, ((10, 20), (15, 30), *((i, i) for i in range(65_535, -1, -2))))
    exclusive.add(one)
    one.flow(1000)
    slots = [9, 10, 16, 30, 32, 65_535, 65_534]
    found: list[int] = []

    def give() -> None:
        found.extend(at for piece in exclusive.assign(0, 7, None, slots)[0] for at in range(piece.start, piece.stop))

    assert steps(give) < 200
    assert [slots[at] for at in found] == [9, 10, 16, 30, 65_535]
    assert joined([(5, 9), (1, 3), (4, 4), (20, 30), (25, 26), (40, 39)]) == [(1, 9), (20, 30)]


def test_slots_within() -> None:
    intervals = [(2, 4), (10, 10), (20, 29)]
    few, many = {3, 4, 5, 10, 19, 20, 29, 30}, {*range(1000)}
    expected = [2, 3, 4, 10, *range(20, 30)]
    assert sorted(slots_within(intervals, few)) == [slot for slot in expected if slot in few]
    assert slots_within(intervals, many) == expected
    assert slots_within([], many) == []
    assert slots_within(intervals, set()) == []
    assert consumer("a").ranges is None


@pytest.mark.parametrize("kind", ["shared", "key-shared", "unordered"])
def test_an_acknowledgement_of_what_another_consumer_has(kind: str) -> None:
    """Or of what no consumer has: all are asked once, not for every entry (rule 5.7.4)."""

    def acknowledging(members: int) -> int:
        dispatcher = Shared(LIMITS) if kind == "shared" else KeyShared(HashRing(), LIMITS, ordered=kind != "unordered")
        states = [consumer(f"c{i:05}", permits=20) for i in range(members)]
        for one in states:
            dispatcher.add(one)
        slots = None if kind == "shared" else [1 + 97 * i for i in range(600)]
        dispatcher.assign(0, 600, None, slots)
        stranger = consumer("stranger")
        dispatcher.add(stranger)
        dispatcher.check()
        work = steps(lambda: dispatcher.acknowledged(stranger, list(range(1200))))
        assert dispatcher.unacked == 0
        dispatcher.check()
        return work

    few, many = acknowledging(MEMBERS), acknowledging(4 * MEMBERS)
    assert many < few + 20 * 3 * MEMBERS
