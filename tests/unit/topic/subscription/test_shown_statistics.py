"""What a subscription shows of itself, every field of it, after a story that gives each of them a value of its own."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from magnetar.broker.topic.subscription.subscription_stats import ConsumerStats, SubscriptionStats, Totals
from magnetar.model.subscription_types import IntRange, KeySharedMeta, KeySharedMode, SubType
from tests.support.subscription_stand import Stand

NOTHING_HAPPENED = SubscriptionStats(
    type="None", backlog_entries=0, delayed_entries=0, unacked_messages=0, in_replay=0, blocked_on_unacked=False,
    active_consumer_name="", entries_out=0, messages_out=0, bytes_out=0, messages_redelivered=0, acked_entries=0,
    expired=0, last_expired_ms=0, jumped=0, last_flow_ms=0, last_sent_ms=0, last_acked_ms=0,
    last_mark_delete_advanced_ms=0, is_durable=True, allow_out_of_order=False, key_shared_mode="", mark_delete=-1,
    read_at=0, consumers=[],
)  # fmt: skip
ENTRY_BYTES = len(b"entry-0")


def test_a_subscription_to_which_nothing_happened_shows_nothing() -> None:
    assert Stand().subscription.stats() == NOTHING_HAPPENED


def test_counters_begin_at_nothing() -> None:
    """Rates are their differences, so a first period would show what never happened."""
    stand = Stand()
    stand.append(1)
    fresh = stand.subscription.counters()
    assert {name: getattr(fresh, name) for name in Totals.__slots__} == dict.fromkeys(Totals.__slots__, 0)
    consumer, _ = stand.join("c")
    counters = ("acked_entries", "bytes_out", "chunks_out", "entries_out", "messages_out", "messages_redelivered")
    assert [getattr(consumer, name) for name in counters] == [0] * len(counters)


def test_a_subscription_counts_those_who_left_and_a_consumer_itself() -> None:
    """Counters are since the topic was loaded, those of a consumer since it connected (rules 5.10.1, 5.10.2)."""
    stand = Stand(max_unacked_messages_per_consumer=8)
    stand.append(1, 1, 1, 4, 4)
    first, got = stand.join("first", permits=100)
    assert got.ordinals == [0, 1, 2, 3, 4]
    assert first.state.blocked
    stand.subscription.acks.take(first, [0])
    stand.subscription.acks.take(first, [2])
    stand.subscription.remove_consumer(first)
    sent_before = first.last_sent_ms
    second, again = stand.join("second", permits=20, priority=3)
    stand.subscription.redeliver(second, [1, 4])
    assert again.ordinals == [1, 3, 4, 1, 4]
    assert stand.subscription.expire_until(1) == 1
    flowed, acked = second.last_flow_ms, first.last_acked_ms
    stand.cursor.jumped = 7
    shown = stand.subscription.stats()
    now = stand.subscription._clock.now_ms()
    assert flowed > acked > sent_before
    assert second.last_sent_ms > flowed
    expected = ConsumerStats(
        name="second", consumer_id=7, priority=3, available_permits=6, unacked_messages=8,
        average_messages_per_entry=1, blocked_on_unacked=True, entries_out=5, messages_out=14,
        bytes_out=5 * ENTRY_BYTES, messages_redelivered=5, acked_entries=0, last_flow_ms=flowed,
        last_sent_ms=second.last_sent_ms, last_acked_ms=0, key_hash_ranges=[], draining_hashes=[],
        draining_hashes_cleared_total=0, info={},
    )  # fmt: skip
    assert asdict(shown) == asdict(
        replace(
            NOTHING_HAPPENED, type="Shared", backlog_entries=2, unacked_messages=8, entries_out=10, messages_out=25,
            bytes_out=10 * ENTRY_BYTES, messages_redelivered=5, acked_entries=2, expired=1,
            last_expired_ms=shown.last_expired_ms, jumped=7, last_flow_ms=flowed, last_sent_ms=second.last_sent_ms,
            last_acked_ms=acked, last_mark_delete_advanced_ms=shown.last_mark_delete_advanced_ms, mark_delete=2,
            read_at=5, consumers=[expected],
        )
    )  # fmt: skip
    assert second.last_sent_ms < shown.last_mark_delete_advanced_ms < shown.last_expired_ms < now


@pytest.mark.parametrize("unacked_max", [0, 3, 4, 5])
def test_who_is_blocked_is_shown_and_what_waits_to_go_out_again(unacked_max: int) -> None:
    """A limit that is reached blocks; 0 is none (rules 5.5.1, 5.9.10)."""
    stand = Stand(max_unacked_messages_per_subscription=unacked_max)
    consumer, _ = stand.join(permits=4)
    stand.append_many(6)
    sent = min(unacked_max or 4, 4)
    shown = stand.subscription.stats()
    assert (shown.blocked_on_unacked, shown.unacked_messages) == (0 < unacked_max <= 4, sent)
    assert shown.read_at == shown.unacked_messages
    stand.subscription.redeliver(consumer, [0, 1])
    shown = stand.subscription.stats()
    assert (shown.in_replay, shown.messages_redelivered) == (2 - (4 - sent), 4 - sent)
    assert not shown.blocked_on_unacked


@pytest.mark.parametrize("sub_type", SubType, ids=lambda kind: kind.name)
@pytest.mark.parametrize("out_of_order", [False, True])
@pytest.mark.parametrize("mode", KeySharedMode)
def test_only_key_shared_shows_how_it_divides_keys(sub_type: SubType, out_of_order: bool, mode: KeySharedMode) -> None:
    """Whatever a consumer of another type says of keys has no meaning (rules 0.1, 5.10.1)."""
    stand = Stand(active_consumer_failover_delay_ms=0)
    stand.join("c", sub_type, key_shared=KeySharedMeta(mode, (IntRange(0, 65_535),), out_of_order))
    shown = stand.subscription.stats()
    by_key = sub_type is SubType.Key_Shared
    assert (shown.type, shown.key_shared_mode) == (sub_type.name, mode.name if by_key else "")
    assert shown.allow_out_of_order == (by_key and out_of_order)
    assert shown.active_consumer_name == ("c" if sub_type in (SubType.Exclusive, SubType.Failover) else "")
    (one,) = shown.consumers
    ranges = [(0, 65_535)] if mode is KeySharedMode.STICKY else [(1, 65_535)]
    assert one.key_hash_ranges == (ranges if by_key else [])
    (alone,) = stand.subscription.stats(stand.subscription.consumers[0]).consumers
    assert alone == replace(one, key_hash_ranges=[])


def test_key_shared_shows_whose_keys_drain() -> None:
    """Slots that changed their owner while entries of them are out, with what waits for them (rule 5.6.17)."""
    stand = Stand(keys=40)
    stand.append_many(40)
    first, got = stand.join("first", SubType.Key_Shared, permits=100)
    assert len(got.ordinals) == 40
    _, other = stand.join("second", SubType.Key_Shared, permits=100)
    shown = {one.name: one for one in stand.subscription.stats().consumers}
    draining = shown["first"].draining_hashes
    assert 0 < len(draining) < 40
    assert {(one.unacked, one.blocked_attempts) for one in draining} == {(1, 0)}
    assert not shown["second"].draining_hashes
    ranges = shown["first"].key_hash_ranges + shown["second"].key_hash_ranges
    covered = sorted(slot for start, end in ranges for slot in range(start, end + 1))
    assert covered == sorted(set(covered))
    assert all(any(start <= one.slot <= end for start, end in shown["second"].key_hash_ranges) for one in draining)
    stand.append_many(40)
    blocked = {one.slot: one.blocked_attempts for one in stand.subscription.stats().consumers[0].draining_hashes}
    assert set(blocked) == {one.slot for one in draining}
    assert min(blocked.values()) > 0
    stand.subscription.acks.take(first, range(40))
    shown = {one.name: one for one in stand.subscription.stats().consumers}
    assert not shown["first"].draining_hashes
    assert (shown["first"].draining_hashes_cleared_total, shown["second"].draining_hashes_cleared_total) == (
        len(draining),
        0,
    )
    assert len(other.ordinals) == len(draining)


def test_a_cumulative_acknowledgement_counts_the_entries_that_it_took() -> None:
    """Those that were acknowledged before count once, and what is left does not."""
    stand = Stand()
    stand.append_many(10)
    consumer, _ = stand.join(sub_type=SubType.Exclusive, permits=100)
    for until, counted in ((3, 4), (3, 4), (1, 4), (6, 7), (9, 10)):
        stand.subscription.acks.take_until(consumer, until)
        assert consumer.acked_entries == counted
