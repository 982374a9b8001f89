"""The gate: what is closed is not sent, what is dead is acknowledged by the broker, what opens goes out.

A fake reason keeps its answers in plain sets. The churn of ``test_subscription_churn`` runs with two of them and judges
every delivery; the tests before it are the single rules.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from typing_extensions import override

from magnetar.broker.delivery.dispatchers.shared import Shared
from magnetar.broker.topic.dispatch.dispatch_filter import DispatchFilter, DispatchRule, last_visible
from magnetar.model.subscription_types import SubType
from tests.support.fake_dispatch_rule import FakeRule
from tests.support.subscription_churn import KEYS, Churn, Witness, WitnessConnection
from tests.support.subscription_stand import Stand

ALL = list(SubType)
SHARING = [SubType.Shared, SubType.Key_Shared]


def gated(*dispatch_rules: FakeRule, entries: int = 20) -> Stand:
    stand = Stand(active_consumer_failover_delay_ms=0)
    for reason in dispatch_rules:
        stand.subscription.add_dispatch_rule(reason)
    stand.append_many(entries)
    return stand


@pytest.mark.parametrize("sub_type", ALL)
def test_readable_end(sub_type: SubType) -> None:
    """Nothing from the oldest open transaction on is read, plain messages included (rule 9.10)."""
    reason = FakeRule(end=7)
    stand = gated(reason)
    _, connection = stand.join(sub_type=sub_type, permits=100)
    assert connection.ordinals == list(range(7))
    assert stand.cursor.backlog() == 20
    reason.end = 12
    stand.subscription.entries_appended()
    stand.append_many(1)
    assert connection.ordinals == list(range(12))


def test_the_explanation_names_the_rules_that_end_what_can_be_read_and_no_other() -> None:
    gate = DispatchFilter()
    for name, end, types in (("a", 7, ALL), ("open", 1 << 62, ALL), ("other", 3, [SubType.Shared]), ("b", 3, ALL)):
        rule = FakeRule(end=end)
        rule.why, rule.types = name, set(types)
        gate.add(rule, SubType.Failover)
    assert gate.why_unreadable() == "a; b"


@pytest.mark.parametrize("sub_type", ALL)
def test_dead_entries_are_acknowledged_by_the_broker(sub_type: SubType) -> None:
    """The broker acknowledges the entries that it never sends (rule 5.9.15)."""
    stand = gated(FakeRule(gone=[0, 1, 5, 19]))
    _, connection = stand.join(sub_type=sub_type, permits=100)
    assert connection.ordinals == [o for o in range(20) if o not in (0, 1, 5, 19)]
    assert stand.cursor.acked == {0, 1, 5, 19}
    assert stand.subscription.stats().last_mark_delete_advanced_ms > 0


@pytest.mark.parametrize("sub_type", ALL)
def test_closed_entries_are_passed_over_and_go_out_when_they_open(sub_type: SubType) -> None:
    reason = FakeRule(shut=range(3, 9))
    stand = gated(reason)
    _, connection = stand.join(sub_type=sub_type, permits=100)
    assert connection.ordinals == [0, 1, 2, *range(9, 20)]
    assert stand.cursor.backlog() == 20
    reason.shut -= {6, 4, 7}
    stand.subscription.let_through([6, 7, 4, 15])
    sent = connection.ordinals[14:]
    if sub_type in SHARING:
        assert sent == [6, 7, 4, 15] or sent == [15, 6, 7, 4]
        assert {count for _, count, _, _ in connection.got} == {0}
    else:
        assert sent == [6, 7, 4, 15]


@pytest.mark.parametrize("sub_type", ALL)
def test_what_opens_waits_for_permits_and_goes_before_new_entries(sub_type: SubType) -> None:
    reason = FakeRule(shut=[0, 1, 2])
    stand = gated(reason)
    consumer, connection = stand.join(sub_type=sub_type, permits=17)
    assert connection.ordinals == list(range(3, 20))
    reason.shut.clear()
    stand.subscription.let_through([1, 0, 2])
    stand.append_many(2)
    assert len(connection.got) == 17
    for _ in range(5):
        stand.subscription.flow(consumer, 1)
    assert connection.ordinals[17:] == [1, 0, 2, 20, 21]


@pytest.mark.parametrize("sub_type", ALL)
def test_let_through_twice_sends_once(sub_type: SubType) -> None:
    reason = FakeRule(shut=[4])
    stand = gated(reason)
    consumer, connection = stand.join(sub_type=sub_type, permits=19)
    reason.shut.clear()
    stand.subscription.let_through([4])
    if sub_type in SHARING:
        stand.subscription.let_through([4])
    stand.subscription.flow(consumer, 10)
    assert connection.ordinals.count(4) == 1


@pytest.mark.parametrize("sub_type", SHARING)
def test_replay_leaves_out_what_was_closed_meanwhile(sub_type: SubType) -> None:
    """A redelivery skips what a transaction holds; its abort sends it without counting (rule 9.12)."""
    reason = FakeRule()
    stand = gated(reason)
    consumer, connection = stand.join(sub_type=sub_type, permits=100)
    reason.shut |= {2, 3}
    reason.gone |= {11}
    stand.subscription.redeliver(consumer, range(15))
    assert sorted(connection.ordinals[20:]) == [o for o in range(15) if o not in (2, 3, 11)]
    assert 11 in stand.cursor.acked
    reason.shut.clear()
    stand.subscription.let_through([2, 3, 16])
    assert sorted(connection.ordinals[32:]) == [2, 3, 16]
    counts = {o: count for o, count, _, _ in connection.got}
    assert counts[1] == counts[2] == 1, "the abort counted a redelivery"
    assert counts[16] == 0
    assert consumer.state.unacked == 19
    dispatcher = stand.subscription.dispatcher
    assert dispatcher is not None
    dispatcher.check()


@pytest.mark.parametrize("sub_type", ALL)
def test_rewind_asks_again(sub_type: SubType) -> None:
    """What waited to go out is found again by reading, and sent once."""
    reason = FakeRule(shut=[0, 1])
    stand = gated(reason)
    consumer, _ = stand.join(sub_type=sub_type, permits=18)
    reason.shut = {1}
    stand.subscription.let_through([0])
    stand.subscription.remove_consumer(consumer)
    stand.subscription.let_through([0])
    _, connection = stand.join(sub_type=sub_type, permits=100)
    assert connection.ordinals == [0, *range(2, 20)]


def test_a_reason_holds_for_the_types_it_names() -> None:
    reason = FakeRule(shut=[1])
    reason.types = {SubType.Shared}
    stand = gated(reason, entries=3)
    consumer, connection = stand.join(sub_type=SubType.Exclusive, permits=10)
    assert connection.ordinals == [0, 1, 2]
    stand.subscription.remove_consumer(consumer)
    _, connection = stand.join(sub_type=SubType.Shared, permits=10)
    assert connection.ordinals == [0, 2]


def test_without_reasons_there_is_no_gate_again() -> None:
    reason = FakeRule(shut=[1])
    stand = gated(reason, entries=3)
    _, connection = stand.join(permits=10)
    reason.shut.clear()
    stand.subscription.let_through([1])
    stand.subscription.remove_dispatch_rule(reason)
    assert connection.ordinals == [0, 2, 1]
    assert stand.subscription.pump.dispatch_filter is None


def test_a_million_closed_entries_are_passed_over_without_reading() -> None:
    class Ranged(DispatchRule):
        @override
        def next_open(self, start: int, stop: int) -> int:
            return max(start, min(1_000_000, stop))

    stand = Stand()
    stand.log.end = 1_000_000
    stand.subscription.add_dispatch_rule(Ranged())
    stand.join(permits=10)
    assert stand.subscription.stats().read_at == 1_000_000
    assert not stand.log.reads


class Aborted(DispatchRule):
    """Entries that an aborted transaction left, from the first one on."""

    def __init__(self, entries: int) -> None:
        self.entries = entries

    @override
    def next_open(self, start: int, stop: int) -> int:
        return max(start, min(self.entries, stop))

    @override
    def dead(self, start: int, stop: int) -> Sequence[int]:
        return range(start, min(self.entries, stop))


def test_a_million_dead_entries_are_passed_over_in_pieces() -> None:
    """Each piece is a turn of the loop: others have theirs between."""
    entries, at, pieces = 1_000_000, 0, 0
    dispatch_filter, cursor = DispatchFilter(), Stand().cursor
    dispatch_filter.add(Aborted(entries), None)
    found = False
    while not found:
        before = at
        at, found, dead = dispatch_filter.pass_over(cursor, at, entries + 1)
        assert dead == list(range(before, at))
        assert len(dead) <= 40_000
        pieces += 1
    assert at == entries
    assert pieces > 20


def test_no_consumer_is_asked_for_what_never_went_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be a thousand of them, and a million dead entries."""
    monkeypatch.setattr(Shared, "acknowledged", lambda *_: pytest.fail("an entry is looked for that never went out"))

    async def main() -> None:
        stand = Stand()
        stand.subscription.add_dispatch_rule(Aborted(5_000))
        stand.append_many(5_001)
        _, connection = stand.join(permits=10)
        for _ in range(30):
            await asyncio.sleep(0)
        assert (connection.ordinals, stand.cursor.mark_delete) == ([5_000], 4_999)

    asyncio.run(main())


def test_many_small_holes_do_not_hold_up_the_loop() -> None:
    async def main() -> None:
        reason = FakeRule(shut=range(0, 12_000, 2))
        stand = gated(reason, entries=12_000)
        stand.cursor.acked |= set(range(1, 11_999, 2))
        _, connection = stand.join(permits=10)
        assert connection.ordinals == [], "all in one turn"
        for _ in range(30):
            await asyncio.sleep(0)
        assert connection.ordinals == [11_999]

    asyncio.run(main())


def test_reasons_are_joined() -> None:
    dispatch_filter = DispatchFilter()
    for reason in (FakeRule(shut=[0, 2, 5]), FakeRule(gone=[1, 3, 5], end=9), FakeRule(gone=[6])):
        dispatch_filter.add(reason, None)
    assert dispatch_filter.readable_end(20) == 9
    assert dispatch_filter.next_open(0, 9) == 4
    assert dispatch_filter.next_open(4, 9) == 4
    assert dispatch_filter.next_open(5, 7) == 7
    assert dispatch_filter.next_closed(4, 9) == 5
    assert dispatch_filter.next_closed(7, 9) == 9
    assert dispatch_filter.dead(0, 9) == [1, 3, 5, 6]
    assert list(dispatch_filter.closed(0, 9)) == [(0, 4), (5, 7)]


@pytest.mark.parametrize(
    ("gone", "end", "last"),
    [([], 20, 19), ([19], 20, 18), (range(5, 20), 20, 4), (range(20), 20, -1), ([9], 10, 8), (range(600), 700, 699)],
)
def test_last_shown(gone: Sequence[int], end: int, last: int) -> None:
    """The last message id lies before open transactions and is no marker (rule 5.9.12)."""
    assert last_visible([FakeRule(end=end), FakeRule(gone=gone)], 0, 700) == last


class GatedWitness(Witness):
    dispatch_rules: tuple[FakeRule, FakeRule]
    passed: set[int]

    @override
    def saw(self, connection: WitnessConnection, ordinal: int) -> None:
        for reason in self.dispatch_rules:
            assert not reason.is_closed(ordinal), f"{ordinal} is closed"
            assert ordinal < reason.end, f"{ordinal} is beyond the readable end"
        if self.keyed and ordinal not in self.sent:
            # an older entry of the key may only be missing because it was closed when its turn came
            older = {o for o in range(ordinal % KEYS, ordinal, KEYS) if o not in self.sent}
            assert all(o in self.passed or self.cursor.acknowledged(o) for o in older)
            self.sent |= older
        super().saw(connection, ordinal)


class GatedChurn(Churn):
    """Entries are closed and dead from their birth at random, open later; the readable end moves on."""

    def __init__(self, sub_type: SubType, seed: int, ring: bool) -> None:
        super().__init__(sub_type, seed, ring)
        self.dispatch_rules = (FakeRule(end=0), FakeRule())
        witness = GatedWitness(self.cursor, sub_type)
        witness.dispatch_rules, witness.passed = self.dispatch_rules, set()
        self.gated_witness = self.witness = witness
        self.known = 0
        for reason in self.dispatch_rules:
            self.subscription.add_dispatch_rule(reason)

    def judge_new(self) -> None:
        for ordinal in range(self.known, self.log.end + 40):
            luck = self.rng.random()
            reason = self.rng.choice(self.dispatch_rules)
            if luck < 0.25:
                reason.shut.add(ordinal)
            elif luck < 0.35:
                reason.gone.add(ordinal)
        self.gated_witness.passed |= {o for r in self.dispatch_rules for o in r.shut | r.gone}
        self.known = self.log.end + 40

    def open_some(self, share: float) -> None:
        opened: list[int] = []
        for reason in self.dispatch_rules:
            some = [o for o in reason.shut if self.rng.random() < share]
            reason.shut -= set(some)
            opened += some
        opened = [o for o in opened if not any(r.is_closed(o) for r in self.dispatch_rules)]
        self.rng.shuffle(opened)
        if self.witness.single:
            opened = [o for o in opened if o not in self.witness.out]
        self.forget(opened)
        self.subscription.let_through(opened)

    @override
    def step(self) -> None:
        if self.log.end + 20 > self.known:
            self.judge_new()
        luck = self.rng.random()
        if luck < 0.1:
            self.dispatch_rules[0].end = min(self.log.end, self.dispatch_rules[0].end + self.rng.randint(0, 30))
            self.subscription.entries_appended()
        elif luck < 0.15:
            self.open_some(0.3)
        else:
            super().step()

    @override
    async def finish(self) -> None:
        self.dispatch_rules[0].end = self.log.end
        self.open_some(1.0)
        await super().finish()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("sub_type", ALL)
def test_churn(sub_type: SubType, seed: int) -> None:
    async def main() -> None:
        churn = GatedChurn(sub_type, seed, ring=bool(seed % 2))
        for _ in range(500):
            churn.step()
            if churn.subscription.dispatcher is not None:
                churn.subscription.dispatcher.check()
            await asyncio.sleep(0)
        await churn.finish()
        assert churn.witness.deliveries > 50

    asyncio.run(main())


def test_what_opened_last_is_not_forgotten_with_the_last_reason() -> None:
    reason = FakeRule(shut=[1])
    stand = gated(reason, entries=3)
    consumer, connection = stand.join(permits=2)
    reason.shut.clear()
    stand.subscription.let_through([1])
    stand.subscription.remove_dispatch_rule(reason)
    assert connection.ordinals == [0, 2]
    stand.subscription.flow(consumer, 1)
    stand.subscription.flow(consumer, 1)
    assert connection.ordinals == [0, 2, 1]
    assert stand.subscription.pump.dispatch_filter is None
