"""Acknowledgements within batches, cumulative and of foreign entries, with cursor and dispatcher together."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import pytest

from magnetar.broker.topic.ports import Done
from magnetar.broker.topic.subscription.acknowledgements import IndexAck
from magnetar.model.subscription_types import SubType
from tests.support.subscription_stand import Stand


def test_foreign_and_unknown_acks() -> None:
    """Acknowledgements of other consumers' messages count; those of unknown ones are no error (rule 5.7.4)."""
    stand = Stand()
    stand.append_many(5)
    a, _ = stand.join("a", permits=100)
    b, _ = stand.join("b", permits=100)
    answers: list[str] = []
    stand.subscription.acks.take(b, [0, 1, 0, 99], partial(answers.append, "ok"))
    assert answers == ["ok"]
    assert (a.state.unacked, b.state.unacked) == (3, 0)
    assert stand.subscription.stats().backlog_entries == 3


def test_cumulative_ack_is_ignored_but_answered() -> None:
    """A cumulative acknowledgement on Shared is ignored and answered without error (rule 5.5.6)."""
    stand = Stand()
    stand.append_many(5)
    a, _ = stand.join("a", permits=100)
    answers: list[str] = []
    stand.subscription.acks.take_until(a, 4, partial(answers.append, "ok"))
    assert answers == ["ok"]
    assert stand.subscription.stats().backlog_entries == 5


@pytest.mark.parametrize("sub_type", list(SubType))
def test_a_batch_counts_as_an_acknowledged_entry_once_nothing_of_it_is_left(sub_type: SubType) -> None:
    stand = Stand(acknowledgment_at_batch_index_level_enabled=True, active_consumer_failover_delay_ms=0)
    stand.append(2, 2, 2)
    a, _ = stand.join("a", sub_type, permits=100)
    for sets, counted in (
        ([(0, 0b10)], 0),
        ([(0, 0b01)], 1),
        ([(1, 0b10), (2, 0b01)], 1),
        ([(1, 0b01), (2, 0b10)], 3),
    ):
        stand.subscription.acks.take_sets(a, [IndexAck(ordinal, (left,), 2) for ordinal, left in sets])
        assert a.acked_entries == counted
    assert stand.subscription.stats().backlog_entries == 0


@pytest.mark.parametrize("sub_type", [SubType.Shared, SubType.Exclusive])
def test_batch_index_acks(sub_type: SubType) -> None:
    """Only live messages of a batch are charged, and the rest comes back with its ack_set (rules 5.7.7, 5.7.8)."""
    stand = Stand(acknowledgment_at_batch_index_level_enabled=True)
    stand.append(10, 10, 1)
    a, connection = stand.join("a", sub_type, permits=100)
    answers: list[str] = []
    acks = [IndexAck(0, (0b1111111100,), 10), IndexAck(1, (0,), 10)]
    stand.subscription.acks.take_sets(a, acks, partial(answers.append, "ok"))
    assert answers == ["ok"]
    if sub_type is SubType.Shared:
        assert a.state.unacked == 9
    permits = a.state.permits
    connection.got.clear()
    stand.subscription.redeliver(a, None)
    count = 1 if sub_type is SubType.Shared else 0
    assert connection.got == [(0, count, (1020,), None), (2, count, (), None)]
    assert a.state.permits == permits - 9
    stand.subscription.acks.take_sets(a, [IndexAck(0, (0b11,), 0)])
    assert stand.cursor.acknowledged(0)


def test_batch_index_acks_switched_off() -> None:
    """Without batch index acknowledgement an ack_set changes nothing (rule 5.7.7)."""
    stand = Stand()
    stand.append(10, 10)
    a, _ = stand.join("a", SubType.Exclusive, permits=100)
    answers: list[str] = []
    stand.subscription.acks.take_sets(a, [IndexAck(0, (0,), 10)], partial(answers.append, "ok"))
    assert answers == ["ok"]
    assert stand.subscription.stats().backlog_entries == 2
    stand.subscription.acks.take_until(a, 1, partial(answers.append, "ok"), IndexAck(1, (1,), 10))
    assert len(answers) == 2
    assert stand.cursor.mark_delete == 0


def test_cumulative_ack_into_a_batch() -> None:
    stand = Stand(acknowledgment_at_batch_index_level_enabled=True)
    stand.append(1, 4, 4)
    a, connection = stand.join("a", SubType.Exclusive, permits=100)
    stand.subscription.acks.take_until(a, 1, None, IndexAck(1, (0b1000,), 4))
    connection.got.clear()
    stand.subscription.redeliver(a, None)
    assert connection.got == [(1, 0, (8,), None), (2, 0, (), None)]


@pytest.mark.parametrize("resident", [False, True], ids=["from memory", "from the disk"])
@pytest.mark.parametrize("sub_type", [SubType.Shared, SubType.Exclusive])
@pytest.mark.parametrize("seed", range(4))
def test_of_every_batch_what_is_left_goes_out_and_is_paid_for(sub_type: SubType, seed: int, resident: bool) -> None:
    """Wherever in a piece of the cache or of a read a delivery begins: each entry once, with its own ack_set, at the
    price of its living messages (rules 5.2.1, 5.7.8)."""
    rng = random.Random(seed)
    sizes = [rng.choice((1, 1, 3, 10, 70)) for _ in range(60)]
    stand = Stand(acknowledgment_at_batch_index_level_enabled=True)
    stand.log.append(*sizes)
    left = {}
    for ordinal, size in enumerate(sizes):
        if size > 1 and rng.random() < 0.4:
            stays = rng.sample(range(size), rng.randrange(size))
            words = tuple(sum(1 << bit - 64 * word for bit in stays if bit // 64 == word) for word in range(2))
            stand.cursor.acknowledge_indexes(ordinal, words, size)
            left[ordinal] = len(stays)
        elif rng.random() < 0.1:
            stand.cursor.acknowledge([ordinal])
            left[ordinal] = 0
    if resident:
        stand.log.resident = len(sizes)
    consumer, connection = stand.join("a", sub_type)
    living = [left.get(ordinal, size) for ordinal, size in enumerate(sizes)]
    given = 0
    for _ in range(400):
        while stand.log.reads:
            stand.log.finish_read()
        out = connection.ordinals
        assert consumer.state.permits == given - sum(living[ordinal] for ordinal in out)
        permits = max(rng.randint(1, 30), 1 - consumer.state.permits)
        stand.subscription.flow(consumer, permits)
        given += permits
    assert connection.ordinals == [ordinal for ordinal, messages in enumerate(living) if messages]
    for ordinal, _, ack_set, _ in connection.got:
        assert ack_set == stand.cursor.remaining_indexes(ordinal)
        assert sum(word.bit_count() for word in ack_set) == left.get(ordinal, 0)


def test_an_answer_waits_for_the_disk_also_behind_sizes_that_cannot_be_true(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the same command acknowledged before them is to be durable (rule 5.7.10)."""
    stand = Stand(acknowledgment_at_batch_index_level_enabled=True)
    stand.append(4, 4)
    a, _ = stand.join("a", permits=100)
    stand.log.resident = 2
    waiting: list[Done] = []
    indexes, whole = stand.cursor.acknowledge_indexes, stand.cursor.acknowledge

    def later(*arguments: Any) -> Any:
        *what, done = arguments
        if done is not None:
            waiting.append(done)
        return (indexes if len(what) == 3 else whole)(*what)

    monkeypatch.setattr(stand.cursor, "acknowledge_indexes", later)
    monkeypatch.setattr(stand.cursor, "acknowledge", later)
    answers: list[str] = []
    absurd = IndexAck(1, (1,) * 100, 6400)
    stand.subscription.acks.take_sets(a, [IndexAck(0, (0b1100,), 4), absurd], partial(answers.append, "ok"))
    assert (answers, len(waiting)) == ([], 1)
    waiting.pop()()
    assert (answers, stand.cursor.live) == (["ok"], {0: 0b1100})
