"""Non-persistent subscriptions against a model that looks at one message after the other (rules 13.4 to 13.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.broker.delivery.dispatchers.key_shared import KeyShared
from magnetar.broker.topic.dispatch.consumer import Consumer
from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.broker.topic.dispatch.dispatcher_choice import TopicIdentity
from magnetar.broker.topic.nonpersistent.fan_out import FanOutGroup
from magnetar.broker.topic.nonpersistent.nonpersistent_subscription import (
    NonPersistentSubscription,
    nonpersistent_settings,
)
from magnetar.broker.topic.subscription.acknowledgements import IndexAck
from magnetar.broker.topic.subscription.subscription_stats import SubscriptionStats
from magnetar.model.errors import ConsumerBusyError
from magnetar.model.subscription_types import SubType
from tests.support.subscription_fakes import FakeConnection
from tests.support.subscription_stand import FakeClock

IDENTITY = TopicIdentity("non-persistent://public/default/t", 0)


def keys_of(entries: Sequence[bytes]) -> list[bytes]:
    return list(map(key_of, entries))


def key_of(entry: bytes) -> bytes:
    return entry.partition(b"/")[0]


def subscription() -> NonPersistentSubscription:
    return NonPersistentSubscription(IDENTITY, "s", nonpersistent_settings(DispatchSettings()), FakeClock(), keys_of)


@dataclass
class Member:
    name: str
    connection: FakeConnection
    consumer: Consumer
    permits: int = 0
    expected: list[bytes] = field(default_factory=list)


class Bench:
    """The subscription, and what each member ought to have got."""

    def __init__(self, kind: SubType) -> None:
        self.kind = kind
        self.subscription = subscription()
        self.members: list[Member] = []
        self.dropped = 0
        self.names = 0
        self.entries = 0

    def join(self) -> None:
        if self.kind is SubType.Exclusive and self.members:
            return
        # later names sort first, so a Failover newcomer takes over
        name = f"c{99 - self.names}"
        self.names += 1
        connection = FakeConnection()
        consumer = self.subscription.add_consumer(connection, name=name, consumer_id=self.names, sub_type=self.kind)
        self.members.append(Member(name, connection, consumer))

    def leave(self, which: int) -> None:
        if self.members:
            member = self.members.pop(which % len(self.members))
            self.subscription.remove_consumer(member.consumer)

    def flow(self, which: int, permits: int) -> None:
        if self.members:
            member = self.members[which % len(self.members)]
            member.permits += permits
            self.subscription.flow(member.consumer, permits)

    def stall(self, which: int) -> None:
        if self.members:
            connection = self.members[which % len(self.members)].connection
            connection.writable = not connection.writable

    def publish(self, messages: list[tuple[int, int]]) -> None:
        """(key, messages in it) of each entry, delivered as one group."""
        entries = [b"%d/%d" % (key, self.entries + i) for i, (key, _) in enumerate(messages)]
        self.entries += len(entries)
        counts = [count for _, count in messages]
        before = {member.name: len(member.connection.passed) for member in self.members}
        plain = all(count == 1 for count in counts)
        self.subscription.deliver(FanOutGroup(entries, None if plain else counts, sum(counts), sum(map(len, entries))))
        self._model(entries, counts, before)

    def _model(self, entries: list[bytes], counts: list[int], before: dict[str, int]) -> None:
        got = {entry: member for member in self.members for entry in member.connection.passed[before[member.name] :]}
        for entry, count in zip(entries, counts, strict=True):
            able = [member for member in self.members if member.permits > 0 and member.connection.writable]
            taker = got.get(entry)
            if self.kind is SubType.Shared:
                assert (taker in able) if able else taker is None
            else:
                owner = self._owner(entry)
                assert taker is (owner if owner in able else None), entry
            if taker is None:
                self.dropped += count
            else:
                taker.permits -= count
                taker.expected.append(entry)

    def _owner(self, entry: bytes) -> Member | None:
        if not self.members:
            return None
        if self.kind is SubType.Key_Shared:
            dispatcher = self.subscription.dispatcher
            assert isinstance(dispatcher, KeyShared)
            assert dispatcher.key_slot is not None
            state = dispatcher._owner(dispatcher.key_slot(key_of(entry)))
            return next(member for member in self.members if member.consumer.state is state)
        return min(self.members, key=lambda member: member.name)

    def check(self) -> None:
        self.subscription.check()
        assert self.subscription.dropped == self.dropped
        for member in self.members:
            assert member.connection.passed == member.expected
            assert member.consumer.state.permits == member.permits
            assert member.consumer.state.unacked == 0
            assert not member.connection.active, "nobody is told who is active (13.4)"


MESSAGES = st.lists(st.tuples(st.integers(0, 6), st.sampled_from([1, 1, 1, 2, 5])), min_size=1, max_size=30)
STEPS = st.one_of(
    st.tuples(st.just("join")),
    st.tuples(st.just("leave"), st.integers(0, 5)),
    st.tuples(st.just("flow"), st.integers(0, 5), st.integers(1, 12)),
    st.tuples(st.just("stall"), st.integers(0, 5)),
    st.tuples(st.just("publish"), MESSAGES),
)


@pytest.mark.parametrize("kind", SubType, ids=lambda kind: kind.name)
@settings(max_examples=60, deadline=None)
@given(steps=st.lists(STEPS, max_size=25))
def test_whoever_has_permits_gets_it_and_nobody_later(kind: SubType, steps: list[tuple[Any, ...]]) -> None:
    bench = Bench(kind)
    for name, *rest in [("join",), ("flow", 0, 3), *steps]:
        getattr(bench, name)(*rest)
        bench.check()


def test_shared_goes_round_one_by_one() -> None:
    """Shared goes round message by message, as observed on Apache Pulsar (rule 13.4)."""
    bench = Bench(SubType.Shared)
    for permits in (10, 1, 10):
        bench.join()
        bench.flow(len(bench.members) - 1, permits)
    bench.publish([(0, 1)] * 7)
    assert [[int(entry[2:]) for entry in member.connection.passed] for member in bench.members] == [
        [0, 3, 5],
        [1],
        [2, 4, 6],
    ]


def test_a_batch_overdraws_once() -> None:
    bench = Bench(SubType.Exclusive)
    bench.join()
    bench.flow(0, 2)
    bench.publish([(0, 3), (0, 3), (0, 1)])
    assert bench.members[0].connection.passed == [b"0/0"]
    assert bench.members[0].consumer.state.permits == -1
    assert bench.subscription.dropped == 4


def test_acknowledgement_redelivery_and_seek_do_nothing_and_answer() -> None:
    """Acknowledgement, redelivery and seek have no effect on a non-persistent topic and are answered (rules 13.5,
    13.11)."""
    bench = Bench(SubType.Shared)
    bench.join()
    bench.flow(0, 5)
    bench.publish([(0, 1)] * 2)
    member, answers = bench.members[0], []
    sub = bench.subscription
    sub.acks.take(member.consumer, [0], lambda: answers.append("ack"))
    sub.acks.take_sets(member.consumer, [IndexAck(0, (1,), 2)], lambda: answers.append("sets"))
    sub.acks.take_until(member.consumer, 0, lambda: answers.append("until"))
    sub.redeliver(member.consumer, None)
    sub.seek_to(0, lambda: answers.append("seek"))
    assert answers == ["ack", "sets", "until", "seek"]
    assert len(member.connection.passed) == 2
    assert member.connection.closed == 0
    bench.check()


@pytest.mark.parametrize("kind", SubType, ids=lambda kind: kind.name)
def test_statistics_are_what_passed_and_nothing_of_what_is_not_kept(kind: SubType) -> None:
    """Counters of those who left are in it; of backlogs, acknowledgements and marks there are none (rule 13.8)."""
    bench = Bench(kind)
    sub = bench.subscription
    nothing = SubscriptionStats(
        type="None", backlog_entries=0, delayed_entries=0, unacked_messages=0, in_replay=0, blocked_on_unacked=False,
        active_consumer_name="", entries_out=0, messages_out=0, bytes_out=0, messages_redelivered=0, acked_entries=0,
        expired=0, last_expired_ms=0, jumped=0, last_flow_ms=0, last_sent_ms=0, last_acked_ms=0,
        last_mark_delete_advanced_ms=0, is_durable=False, allow_out_of_order=False, key_shared_mode="",
        mark_delete=-1, read_at=0, consumers=[],
    )  # fmt: skip
    assert sub.stats() == nothing
    before = 0
    for messages in ([(0, 1), (0, 5)], [(0, 2)]):
        bench.join()
        bench.flow(0, 50)
        bench.publish(messages)
        gone = bench.members[0].consumer
        sub.acks.take(gone, [0])
        bench.leave(0)
        before = gone.last_sent_ms
    bench.join()
    bench.flow(0, 4)
    bench.publish([(0, 3)])
    (member,) = bench.members
    flowed, sent = member.consumer.last_flow_ms, member.consumer.last_sent_ms
    assert flowed > before and sent > flowed
    (mine,) = sub.stats().consumers
    assert sub.stats() == replace(
        nothing, type=kind.name, entries_out=4, messages_out=11, bytes_out=12, last_flow_ms=flowed, last_sent_ms=sent,
        active_consumer_name=member.name if kind in (SubType.Exclusive, SubType.Failover) else "", consumers=[mine],
    )  # fmt: skip
    assert (mine.name, mine.consumer_id, mine.priority, mine.available_permits) == (member.name, 3, 0, 1)
    assert (mine.entries_out, mine.messages_out, mine.bytes_out, mine.average_messages_per_entry) == (1, 3, 3, 3)
    assert (mine.last_flow_ms, mine.last_sent_ms, mine.last_acked_ms) == (flowed, sent, 0)
    assert not (mine.unacked_messages or mine.blocked_on_unacked or mine.messages_redelivered or mine.acked_entries)


def test_types_do_not_mix() -> None:
    bench = Bench(SubType.Shared)
    bench.join()
    with pytest.raises(ConsumerBusyError, match="Active subscription type of 'Shared'"):
        bench.subscription.add_consumer(FakeConnection(), name="x", consumer_id=9, sub_type=SubType.Failover)
    bench.check()
