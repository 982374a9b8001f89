"""The index of delayed messages against a dictionary, through dumps and trims (rules of group 7)."""

from __future__ import annotations

import random
import sys
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from magnetar.broker.delivery.delay_index import DelayIndex, pairs_of
from magnetar.broker.delivery.ordinal_set import OrdinalSet

START = 1_732_200_000_000
BUCKET = 1 << 18


class IndexMachine(RuleBasedStateMachine):
    """Naive model: ordinal to time."""

    def __init__(self) -> None:
        super().__init__()
        self.index = DelayIndex()
        self.model: dict[int, int] = {}
        self.now = START
        self.next = 0

    @rule(
        delay=st.one_of(st.integers(1, 50), st.integers(1, 3 * BUCKET), st.just(40 * 365 * 86_400_000)),
        gap=st.one_of(st.just(1), st.integers(1, 9_000)),
    )
    def add(self, delay: int, gap: int) -> None:
        self.next += gap
        self.index.add(self.next, self.now + delay)
        self.model[self.next] = self.now + delay

    @rule(passed=st.one_of(st.integers(0, 60), st.integers(0, 3 * BUCKET)), most=st.integers(1, 5))
    def take(self, passed: int, most: int) -> None:
        self.now += passed
        due = sorted((time, ordinal) for ordinal, time in self.model.items() if time <= self.now)[:most]
        assert self.index.take_due(self.now, most) == [ordinal for _, ordinal in due]
        for _, ordinal in due:
            del self.model[ordinal]

    @rule(data=st.data())
    def trim(self, data: st.DataObject) -> None:
        first = data.draw(st.integers(0, self.next))
        self.index.forget_below(first)
        self.model = {ordinal: time for ordinal, time in self.model.items() if ordinal >= first}

    @rule()
    def restart(self) -> None:
        dumped = self.index.dump()
        self.index = DelayIndex()
        self.index.load(dumped, self.now)
        alive = {ordinal for ordinal, time in self.model.items() if time > self.now}
        # what a dump still holds of trimmed entries is dropped once the log's first ordinal is known
        self.index.forget_below(min(alive, default=self.next + 1))
        for ordinal in [o for o in self.index.closed if o not in self.model]:
            self.index.closed.discard(ordinal)
        self.model = {ordinal: self.model[ordinal] for ordinal in alive}

    @invariant()
    def agrees(self) -> None:
        self.index.check()
        assert list(self.index.closed) == sorted(self.model)
        assert len(self.index) == len(self.model)
        assert self.index.next_due() == min(self.model.values(), default=None)


TestIndex = IndexMachine.TestCase
TestIndex.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@given(st.lists(st.tuples(st.integers(0, (1 << 43) - 1), st.integers(1, 1 << 42)), max_size=20))
def test_pairs_come_back(entries: list[tuple[int, int]]) -> None:
    entries = list({ordinal: (ordinal, time) for ordinal, time in entries}.values())
    index = DelayIndex()
    index.load_pairs(pairs_of(entries), 0)
    taken = index.take_due(1 << 43, 100)
    assert taken == [ordinal for _, ordinal in sorted((time, ordinal) for ordinal, time in entries)]


@given(
    members=st.sets(st.integers(0, 20_000), max_size=60), more=st.tuples(st.integers(0, 20_000), st.integers(0, 9_000)),
    start=st.integers(0, 20_000), length=st.integers(0, 9_000),
)  # fmt: skip
def test_ordinal_set(members: set[int], more: tuple[int, int], start: int, length: int) -> None:
    members = members | set(range(more[0], more[0] + more[1]))
    tested = OrdinalSet()
    for ordinal in members:
        tested.add(ordinal)
    for ordinal in list(members)[::3]:
        assert tested.discard(ordinal)
        assert not tested.discard(ordinal)
        members.discard(ordinal)
    stop = start + length
    assert list(tested) == sorted(members)
    assert tested.next_set(start, stop) == next((o for o in range(start, stop) if o in members), stop)
    assert tested.next_clear(start, stop) == next((o for o in range(start, stop) if o not in members), stop)
    assert tested.count(start, stop) == sum(1 for o in members if start <= o < stop)
    tested.discard_below(start)
    assert list(tested) == sorted(o for o in members if o >= start)
    tested.check()


class WatchedBuckets(dict[int, Any]):
    """Counts the buckets that are looked at when the first one is searched."""

    looked_at = 0

    def __iter__(self) -> Iterator[int]:
        for number in super().__iter__():
            self.looked_at += 1
            yield number


@pytest.mark.parametrize("left", [0, 1])
def test_what_is_trimmed_is_passed_over_quickly(left: int) -> None:
    """Delays over years are in very many buckets; when all but the last entry are trimmed, the next one due is found
    without looking at all buckets for each of them, in one turn of the loop."""
    index, count = DelayIndex(), 3_000
    index._buckets = watched = WatchedBuckets()
    for ordinal in range(count):
        index.add(ordinal, START + ordinal * BUCKET)
    index.forget_below(count - left)
    assert index.next_due() == (START + (count - 1) * BUCKET if left else None)
    assert watched.looked_at <= count
    assert not watched
    assert index.dump() == DelayIndex().dump() if not left else len(index.dump()) == 17
    index.add(count, START + 1)
    assert index.next_due() == START + 1
    index.check()


@pytest.mark.parametrize("spread_ms", [900_000, 30 * 86_400_000], ids=["minutes", "days"])
def test_memory(spread_ms: int) -> None:
    """An entry takes at most 70 bytes, so that a million stay below 150 MB with all around them
    (benchmarks/delayed_delivery.py)."""
    rng, count = random.Random(1), 50_000
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        index = DelayIndex()
        for ordinal in range(count):
            index.add(ordinal, START + rng.randrange(spread_ms))
        assert index.next_due() is not None
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after - before) / count < 70
    assert (peak - before) / count < 90
    assert index.memory_bytes / (after - before) == pytest.approx(1, rel=0.5)


def test_memory_of_many_messages_for_one_hour() -> None:
    """Each takes a word before its time comes near."""
    index, count = DelayIndex(), 50_000
    index.add(0, START)
    assert index.next_due() is not None
    before = index.memory_bytes - index.closed.memory_bytes
    for ordinal in range(count):
        index.add(1 + ordinal, START + 86_400_000)
    grown = index.memory_bytes - index.closed.memory_bytes - before
    assert grown == pytest.approx(sum(map(sys.getsizeof, index._buckets.values())), rel=0.2)
    assert grown > 8 * count
