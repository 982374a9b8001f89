"""What a subscription shows of itself: the live values of section 5.10 of the rule book, read at the moment of asking.

Rates are not here: a caller that wants one keeps the last counter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from magnetar.broker.delivery.dispatchers.dispatcher import Dispatcher
from magnetar.broker.delivery.dispatchers.key_shared import KeyShared
from magnetar.broker.delivery.sticky_keys.draining_hashes import DrainingHash
from magnetar.broker.topic.dispatch.consumer import Consumer
from magnetar.broker.topic.dispatch.members import Members
from magnetar.broker.topic.ports import SentTotals, SubscriptionCursor
from magnetar.model.subscription_types import SubType


@dataclass(frozen=True, slots=True)
class ConsumerStats:
    """What is shown of one consumer, with counters since it connected (rule 5.10.2)."""

    name: str
    consumer_id: int
    priority: int
    available_permits: int
    unacked_messages: int
    average_messages_per_entry: int
    blocked_on_unacked: bool
    entries_out: int
    messages_out: int
    bytes_out: int
    messages_redelivered: int
    acked_entries: int
    last_flow_ms: int
    last_sent_ms: int
    last_acked_ms: int
    key_hash_ranges: list[tuple[int, int]]
    draining_hashes: list[DrainingHash]
    draining_hashes_cleared_total: int
    info: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SubscriptionStats:
    """What is shown of a subscription, with counters since the topic was loaded, of consumers that left, too (rule
    5.10.1)."""

    type: str
    backlog_entries: int
    delayed_entries: int
    """Entries of the backlog that are not due yet; 0 for the types that do not wait (rule 7.2)."""
    unacked_messages: int
    in_replay: int
    """Entries that have to go out again, or wait for their key's turn."""
    blocked_on_unacked: bool
    active_consumer_name: str
    entries_out: int
    messages_out: int
    bytes_out: int
    messages_redelivered: int
    acked_entries: int
    expired: int
    """Entries that time to live or a quota took."""
    last_expired_ms: int
    jumped: int
    """Entries that a non-durable cursor lost because they were trimmed."""
    last_flow_ms: int
    last_sent_ms: int
    last_acked_ms: int
    last_mark_delete_advanced_ms: int
    is_durable: bool
    allow_out_of_order: bool
    key_shared_mode: str
    """"" unless Key_Shared."""
    mark_delete: int
    read_at: int
    consumers: list[ConsumerStats]


class Totals:
    """The counters of a subscription: those of consumers that left are added up here."""

    __slots__ = (
        "acked_entries", "bytes_out", "chunks_out", "entries_out", "expired", "last_acked_ms", "last_expired_ms",
        "last_flow_ms", "last_mark_delete_advanced_ms", "last_sent_ms", "messages_out",
        "messages_redelivered",
    )  # fmt: skip

    def __init__(self) -> None:
        self.entries_out = 0
        self.messages_out = 0
        self.bytes_out = 0
        self.chunks_out = 0
        self.messages_redelivered = 0
        self.acked_entries = 0
        self.expired = 0
        """Entries that time to live or a quota took."""
        self.last_expired_ms = 0
        self.last_flow_ms = 0
        self.last_sent_ms = 0
        self.last_acked_ms = 0
        self.last_mark_delete_advanced_ms = 0

    def add(self, consumer: Consumer) -> None:
        """``consumer`` left, or is counted in for a moment."""
        self.entries_out += consumer.entries_out
        self.messages_out += consumer.messages_out
        self.bytes_out += consumer.bytes_out
        self.chunks_out += consumer.chunks_out
        self.messages_redelivered += consumer.messages_redelivered
        self.acked_entries += consumer.acked_entries
        self.last_flow_ms = max(self.last_flow_ms, consumer.last_flow_ms)
        self.last_sent_ms = max(self.last_sent_ms, consumer.last_sent_ms)
        self.last_acked_ms = max(self.last_acked_ms, consumer.last_acked_ms)

    def with_those(self, consumers: list[Consumer]) -> Totals:
        """A copy that includes the consumers that are there."""
        result = Totals()
        for field in self.__slots__:
            setattr(result, field, getattr(self, field))
        for consumer in consumers:
            result.add(consumer)
        return result


class _Counted(Protocol):
    """A subscription, persistent or not."""

    totals: Totals

    @property
    def consumers(self) -> list[Consumer]: ...


def sent_by(subscriptions: Iterable[_Counted], before: SentTotals) -> SentTotals:
    """What these have sent, added to ``before``; made without a copy of all their counters."""
    messages, size = before
    for subscription in subscriptions:
        holders: tuple[Totals | Consumer, ...] = (subscription.totals, *subscription.consumers)
        for counted in holders:
            messages += counted.messages_out
            size += counted.bytes_out
    return SentTotals(messages, size)


def subscription_stats(
    members: Members, totals: Totals, cursor: SubscriptionCursor, only: Consumer | None, *, delayed: int, durable: bool,
    read_at: int,
) -> SubscriptionStats:  # fmt: skip
    """Everything that a persistent subscription shows now; with ``only`` of that consumer alone, without its keys."""
    dispatcher, active = members.dispatcher, members.active
    key_shared = members.sub_type is SubType.Key_Shared
    return SubscriptionStats(
        type="None" if members.sub_type is None else members.sub_type.name,
        backlog_entries=cursor.backlog(),
        delayed_entries=delayed,
        unacked_messages=dispatcher.unacked if dispatcher else 0,
        in_replay=dispatcher.in_replay if dispatcher else 0,
        blocked_on_unacked=dispatcher.blocked if dispatcher else False,
        active_consumer_name=active.name if active else "",
        entries_out=totals.entries_out,
        messages_out=totals.messages_out,
        bytes_out=totals.bytes_out,
        messages_redelivered=totals.messages_redelivered,
        acked_entries=totals.acked_entries,
        expired=totals.expired,
        last_expired_ms=totals.last_expired_ms,
        jumped=cursor.jumped,
        last_flow_ms=totals.last_flow_ms,
        last_sent_ms=totals.last_sent_ms,
        last_acked_ms=totals.last_acked_ms,
        last_mark_delete_advanced_ms=totals.last_mark_delete_advanced_ms,
        is_durable=durable,
        allow_out_of_order=key_shared and members.key_shared.allow_out_of_order_delivery,
        key_shared_mode=members.key_shared.mode.name if key_shared else "",
        mark_delete=cursor.mark_delete,
        read_at=read_at,
        consumers=consumers_stats(members.consumers, dispatcher, only),
    )


def consumers_stats(
    consumers: Iterable[Consumer], dispatcher: Dispatcher | None, only: Consumer | None
) -> list[ConsumerStats]:
    """All of them now; with ``only`` that one, without its keys: what all have is gone through to find one's."""
    shared = dispatcher if isinstance(dispatcher, KeyShared) else None
    if only is not None:
        return [_one(only, shared, [], [])]
    ranges = shared.ranges() if shared else {}
    draining = shared.draining_by() if shared else {}
    return [_one(c, shared, ranges.get(c.state, []), draining.get(c.state, [])) for c in consumers]


def _one(
    consumer: Consumer, shared: KeyShared | None, ranges: list[tuple[int, int]], draining: list[DrainingHash]
) -> ConsumerStats:
    state = consumer.state
    return ConsumerStats(
        name=state.name,
        consumer_id=consumer.consumer_id,
        priority=state.priority,
        available_permits=state.permits,
        unacked_messages=state.unacked,
        average_messages_per_entry=consumer.average_messages,
        blocked_on_unacked=state.blocked,
        entries_out=consumer.entries_out,
        messages_out=consumer.messages_out,
        bytes_out=consumer.bytes_out,
        messages_redelivered=consumer.messages_redelivered,
        acked_entries=consumer.acked_entries,
        last_flow_ms=consumer.last_flow_ms,
        last_sent_ms=consumer.last_sent_ms,
        last_acked_ms=consumer.last_acked_ms,
        key_hash_ranges=ranges,
        draining_hashes=draining,
        draining_hashes_cleared_total=shared.drained_total(state) if shared else 0,
        info=consumer.info,
    )
