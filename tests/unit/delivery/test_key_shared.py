"""Key_Shared rule by rule (rules 5.6.9 to 5.6.14)."""

from __future__ import annotations

import random

import pytest

from magnetar.broker.delivery.consumer_state import ConsumerState
from magnetar.broker.delivery.dispatch_limits import DispatchLimits
from magnetar.broker.delivery.dispatchers.key_shared import KeyShared
from magnetar.broker.delivery.instructions import Do, Slice
from magnetar.broker.delivery.sticky_keys.draining_hashes import DrainingHash
from magnetar.broker.delivery.sticky_keys.hash_ranges import HashRanges
from magnetar.broker.delivery.sticky_keys.hash_ring import HashRing
from magnetar.model.hashing import ring_slot
from tests.support.writable import FakeWritable, consumer

LOW, HIGH = 100, 60_000
"""Two consumers in range mode: LOW belongs to the second, HIGH stays with the first."""


def test_newcomer_waits_for_what_the_old_owner_holds() -> None:
    """A slot that changes hands drains until its entries are acknowledged; other slots flow at once (rule 5.6.9)."""
    dispatcher = KeyShared(HashRanges())
    a, b = consumer("a", permits=10), consumer("b", permits=10)
    assert dispatcher.add(a) == [Do.REWIND]
    assert dispatcher.assign(0, 2, None, [LOW, HIGH]) == ([Slice(a, 0, 2)], 2)
    assert dispatcher.add(b) == []
    slices, reached = dispatcher.assign(2, 5, None, [LOW, LOW + 1, HIGH])
    assert (slices, reached) == ([Slice(b, 3, 4), Slice(a, 4, 5)], 5)
    assert dispatcher.draining_of(a) == [DrainingHash(LOW, 1, 1)]
    assert dispatcher.plan_replay() == []
    assert not dispatcher.acknowledged(a, [1])
    assert dispatcher.acknowledged(a, [0])
    assert dispatcher.draining_of(a) == []
    assert dispatcher.drained_total(a) == 1
    assert dispatcher.plan_replay() == [2]
    assert dispatcher.replay(2, 3, None) == [Slice(b, 2, 3)]
    dispatcher.check()


def test_redelivery_ends_draining() -> None:
    dispatcher = KeyShared(HashRanges())
    a, b = consumer("a", permits=10), consumer("b", permits=10)
    dispatcher.add(a)
    dispatcher.assign(0, 2, None, [LOW, LOW])
    dispatcher.add(b)
    dispatcher.redeliver(a, [0])
    assert dispatcher.plan_replay() == [], "a still holds 1"
    dispatcher.redeliver(a, [1])
    assert dispatcher.replay(0, 2, None) == [Slice(b, 0, 2)]
    dispatcher.check()


def test_holder_leaves() -> None:
    dispatcher = KeyShared(HashRanges())
    a, b = consumer("a", permits=10), consumer("b", permits=10)
    dispatcher.add(a)
    dispatcher.assign(0, 2, None, [LOW, HIGH])
    dispatcher.add(b)
    dispatcher.assign(2, 3, None, [LOW])
    dispatcher.remove(a)
    assert dispatcher.plan_replay() == [0, 1, 2]
    assert dispatcher.replay(0, 3, None) == [Slice(b, 0, 3)]
    assert dispatcher.redelivery_counts() == {}
    dispatcher.check()


def test_of_a_consumer_that_left_nothing_is_kept() -> None:
    """Neither what it had drained nor what ended to drain because it left: consumers come and go for weeks."""
    dispatcher = KeyShared(HashRanges())
    a, b = consumer("a", permits=10), consumer("b", permits=10)
    dispatcher.add(a)
    dispatcher.assign(0, 3, None, [LOW, LOW + 1, LOW + 2])
    dispatcher.add(b)
    dispatcher.acknowledged(a, [0])
    assert dispatcher.drained_total(a) == 1
    dispatcher.remove(a)
    assert (dispatcher.drained_total(a), dispatcher.draining_by()) == (0, {})
    assert dispatcher.plan_replay() == [1, 2]
    dispatcher.check()


def test_slot_comes_back_to_its_holder() -> None:
    """Draining ends at once when the slot comes back to its holder."""
    dispatcher = KeyShared(HashRanges())
    a, b = consumer("a", permits=10), consumer("b", permits=10)
    dispatcher.add(a)
    dispatcher.assign(0, 1, None, [LOW])
    dispatcher.add(b)
    dispatcher.assign(1, 2, None, [LOW])
    assert dispatcher.plan_replay() == []
    dispatcher.remove(b)
    assert dispatcher.draining_of(a) == []
    assert dispatcher.replay(1, 2, None) == [Slice(a, 1, 2)]
    dispatcher.check()


def test_new_entry_does_not_overtake_a_waiting_one() -> None:
    """An entry is not sent while an older one of its slot waits for replay, nor within the replay (rule 5.6.10)."""
    dispatcher = KeyShared(HashRanges())
    a = consumer("a", permits=1)
    dispatcher.add(a)
    assert dispatcher.assign(0, 3, None, [LOW, LOW, HIGH]) == ([Slice(a, 0, 1)], 3)
    dispatcher.flow(a, 10)
    assert dispatcher.assign(3, 5, None, [LOW, 7]) == ([Slice(a, 4, 5)], 5)
    assert dispatcher.replay(3, 4, None) == [], "1 is older and waits"
    assert dispatcher.plan_replay() == [1, 2, 3]
    assert dispatcher.replay(1, 4, None) == [Slice(a, 1, 4)]
    dispatcher.check()


def test_look_ahead_is_bounded() -> None:
    """Reading ahead stops at a count for each consumer and at a maximum for the subscription (rule 5.6.11)."""
    limits = DispatchLimits(look_ahead_entries_per_consumer=2, look_ahead_entries_max=3)
    dispatcher = KeyShared(HashRanges(), limits)
    a, b = consumer("a"), consumer("b", permits=100)
    dispatcher.add(a)
    dispatcher.add(b)
    slices, reached = dispatcher.assign(0, 8, None, [HIGH, LOW, HIGH, LOW, HIGH, LOW, HIGH, LOW])
    assert slices == [Slice(b, 1, 2), Slice(b, 3, 4)]
    assert reached == 5, "three wait for a, that is the cap"
    assert dispatcher.wanted() == 0
    dispatcher.flow(a, 1)
    assert dispatcher.plan_replay() == [0]
    assert dispatcher.replay(0, 1, None) == [Slice(a, 0, 1)]
    assert dispatcher.wanted() > 0
    dispatcher.check()


@pytest.mark.parametrize(
    ("limits", "waiting"),
    [
        (DispatchLimits(look_ahead_entries_per_consumer=0, look_ahead_entries_max=3), 3),
        (DispatchLimits(look_ahead_entries_per_consumer=2, look_ahead_entries_max=0), 4),
        (DispatchLimits(100, 20, 3, 0, 0, 0), 6),
        (DispatchLimits(100, 20, 0, 5, 0, 0), 5),
        (DispatchLimits(100, 20, 0, 0, 0, 0), 8),
    ],
)
def test_a_look_ahead_of_0_is_no_limit(limits: DispatchLimits, waiting: int) -> None:
    """One of the two limits holds without the other; without both, those of unacknowledged messages do."""
    dispatcher = KeyShared(HashRanges(), limits)
    a, b = consumer("a"), consumer("b", permits=1)
    dispatcher.add(a)
    dispatcher.add(b)
    assert dispatcher.wanted() > 0
    assert dispatcher.assign(0, 9, None, [LOW] + [HIGH] * 8) == ([Slice(b, 0, 1)], 1 + waiting)
    dispatcher.check()


def test_out_of_order_skips_all_guards() -> None:
    """Nothing that keeps the order of keys applies with allowOutOfOrderDelivery (rule 5.6.13)."""
    dispatcher = KeyShared(HashRanges(), ordered=False)
    a, b = consumer("a", permits=2), consumer("b", permits=10)
    dispatcher.add(a)
    dispatcher.assign(0, 1, None, [LOW])
    dispatcher.add(b)
    assert dispatcher.assign(1, 2, None, [LOW]) == ([Slice(b, 1, 2)], 2)
    assert dispatcher.acknowledged(b, [0, 1]) is False
    dispatcher.check()


@pytest.mark.parametrize("ordered", [True, False])
def test_what_goes_out_at_once_is_what_goes_out_one_by_one(ordered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given away together or one after the other, entries go to the same consumers and leave the same counters."""

    def run(at_once: bool) -> list[object]:
        made = KeyShared(
            HashRing(), DispatchLimits(unacked_per_consumer=60, unacked_per_subscription=100), ordered=ordered
        )
        if not at_once:
            monkeypatch.setattr(KeyShared, "_give_all", lambda *_: None)
        states = [ConsumerState(name, FakeWritable()) for name in "abc"]
        for state in states:
            made.add(state)
            made.flow(state, 70)
        log: list[object] = []
        rng, at = random.Random(7), 0
        for step in range(60):
            size = rng.randrange(1, 30)
            counts = None if step % 3 else [rng.randrange(1, 4) for _ in range(size)]
            slots = [ring_slot(b"%d" % rng.randrange(40)) for _ in range(size)]
            pieces, reached = made.assign(at, at + size, counts, slots)
            log.append([sorted((o, p.consumer.name) for p in pieces for o in p.ordinals), reached])
            at = reached
            for state in states:
                out = list(state.pending)
                made.acknowledged(state, [o for o in out if rng.random() < 0.7])
                made.flow(state, rng.randrange(1, 30))
            plan = made.plan_replay()
            if plan:
                pieces = made.replay(plan[0], plan[-1] + 1, None)
                log.append(sorted((o, p.consumer.name) for p in pieces for o in p.ordinals))
            made.check()
            log.append([(s.permits, s.unacked, s.blocked, list(s.pending.items())) for s in states])
        return log

    assert run(at_once=True) == run(at_once=False)


def test_a_replay_gives_what_lies_behind_entries_that_must_stay() -> None:
    """Of a range that is read anyway everything goes that may: behind a gap, a busy owner, an older one of its key, a
    slot that is draining."""
    dispatcher = KeyShared(HashRanges())
    a, b, c = consumer("a", permits=1), consumer("b"), consumer("c")
    dispatcher.add(a)
    dispatcher.add(b)
    assert dispatcher.assign(0, 1, None, [HIGH]) == ([Slice(a, 0, 1)], 1)
    slots = [LOW, HIGH, LOW + 1, HIGH, LOW, LOW + 1]
    assert dispatcher.assign(1, 7, None, slots) == ([], 7)
    dispatcher.flow(b, 10)
    dispatcher.withdraw([3])
    assert dispatcher.plan_replay() == [1, 5, 6]
    assert dispatcher.replay(1, 7, None) == [Slice(b, 1, 2), Slice(b, 5, 7)], "the owner of 2 and 4 has no permits"
    dispatcher.check()
    # the slot that a holds goes to c, and drains
    dispatcher.redeliver(b, [1, 5, 6])
    dispatcher.remove(b)
    dispatcher.add(c)
    dispatcher.add(b)
    dispatcher.flow(a, 10)
    dispatcher.flow(b, 10)
    dispatcher.flow(c, 10)
    owners = {slot: dispatcher._owner(slot) for slot in (LOW, LOW + 1, HIGH)}
    given = dispatcher.replay(1, 7, None)
    gone = {ordinal for piece in given for ordinal in range(piece.start, piece.stop)}
    stays = {2, 4} if owners[HIGH] is not a else set()
    assert gone == {1, 2, 4, 5, 6} - stays
    dispatcher.check()


def test_within_a_replay_only_the_oldest_of_a_key_goes_before_those_behind_it() -> None:
    """An older one of the key lies before the range: the key stays, the others go."""
    dispatcher = KeyShared(HashRanges())
    a = consumer("a")
    dispatcher.add(a)
    assert dispatcher.assign(0, 4, None, [LOW, LOW, HIGH, LOW]) == ([], 4)
    dispatcher.flow(a, 10)
    assert dispatcher.replay(1, 4, None) == [Slice(a, 2, 3)]
    assert dispatcher.replay(0, 4, None) == [Slice(a, 0, 2), Slice(a, 3, 4)]
    dispatcher.check()


def test_an_entry_acknowledged_while_it_waits_lets_reading_go_on() -> None:
    """A late acknowledgement of what was asked for again makes room to read ahead (rule 5.6.11)."""
    dispatcher = KeyShared(HashRanges(), DispatchLimits(look_ahead_entries_per_consumer=1, look_ahead_entries_max=1))
    a, b = consumer("a", permits=1), consumer("b", permits=100)
    dispatcher.add(a)
    dispatcher.add(b)
    assert dispatcher.assign(0, 1, None, [HIGH]) == ([Slice(a, 0, 1)], 1)
    dispatcher.redeliver(a, [0])
    assert (dispatcher.wanted(), dispatcher.plan_replay()) == (0, [])
    assert dispatcher.acknowledged(a, [0]), "b could take none and may take some now"
    assert dispatcher.wanted() > 0
    assert not dispatcher.acknowledged(a, [0])
    dispatcher.check()
