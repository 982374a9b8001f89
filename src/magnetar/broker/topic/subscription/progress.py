"""Whether a subscription should be sending right now, judged without trusting what makes it send.

The invariant: a backlog, and a consumer that has permits, is not blocked and whose socket takes more, mean progress.
Everything is recounted from the consumers' pending entries and the cursor, none of it taken from the queues and flags
that the dispatchers act on, so an entry that fell out of a queue and a flag that stayed set are both found. It reads
only, and costs O(consumers + waiting keys): for a look every few seconds, not for the hot path.
"""

from __future__ import annotations

from typing import NamedTuple

from magnetar.broker.delivery.consumer_state import ConsumerState
from magnetar.broker.delivery.dispatchers.dispatcher import Dispatcher
from magnetar.broker.delivery.dispatchers.key_shared import KeyShared
from magnetar.broker.delivery.dispatchers.multiple_consumers import MultipleConsumers
from magnetar.broker.delivery.dispatchers.shared_chunks import SharedChunks
from magnetar.broker.delivery.dispatchers.single_active_consumer import SingleActiveConsumer
from magnetar.broker.topic.dispatch.pump import Pump
from magnetar.broker.topic.ports import SubscriptionCursor


class Progress(NamedTuple):
    """Changes whenever something is sent, acknowledged or read, or a consumer comes or goes."""

    read_at: int
    mark_delete: int
    backlog: int
    entries_out: int
    in_replay: int
    late: int
    consumers: tuple[int, ...]


def progress(pump: Pump, cursor: SubscriptionCursor) -> Progress:
    """How far the subscription has come."""
    dispatcher = pump.dispatcher
    members = pump.consumers
    return Progress(
        pump.read_at,
        cursor.mark_delete,
        cursor.backlog(),
        sum(consumer.entries_out for consumer in members.values()),
        dispatcher.in_replay if dispatcher is not None else 0,
        len(pump.dispatch_filter.late) if pump.dispatch_filter is not None else 0,
        tuple(id(state) for state in members),
    )


def should_send(pump: Pump, cursor: SubscriptionCursor) -> str:
    """Why the subscription ought to be sending at this moment; "" if it need not."""
    dispatcher = pump.dispatcher
    if dispatcher is None or not pump.consumers:
        return ""
    if pump.throttle is not None and pump.throttle.waiting:
        return ""
    able = [consumer for consumer in _served(dispatcher) if _able(dispatcher, consumer)]
    if not able:
        return ""
    names = ", ".join(consumer.name for consumer in able[:3])
    if isinstance(dispatcher, MultipleConsumers):
        lost = _lost(pump, cursor, dispatcher)
        if lost:
            return f"{lost} entries of the backlog are nowhere: not out, not queued, not ahead; {names} could take them"
        if dispatcher.in_replay and _takes_again(dispatcher, able):
            return f"entries wait to be sent again and {names} could take them"
        if isinstance(dispatcher, KeyShared | SharedChunks) and dispatcher.look_ahead_full:
            return ""
    ahead = pump.next_ahead()
    if ahead is not None:
        return f"entry {ahead} is next and {names} could take it"
    return ""


def _served(dispatcher: Dispatcher) -> list[ConsumerState]:
    if isinstance(dispatcher, SingleActiveConsumer):
        return [dispatcher.active] if dispatcher.active is not None and not dispatcher.waiting else []
    return dispatcher.consumers


def _able(dispatcher: Dispatcher, consumer: ConsumerState) -> bool:
    if not consumer.connection.writable:
        return False
    if not isinstance(dispatcher, MultipleConsumers):
        return consumer.permits > 0
    limits = dispatcher.limits
    unacked = sum(consumer.pending.values())
    everybody = sum(sum(other.pending.values()) for other in dispatcher.consumers)
    # a block is lifted at half the limit (rule 5.9.10): above that it may rightly last
    if limits.unacked_per_subscription and everybody > limits.unacked_per_subscription // 2 and dispatcher.blocked:
        return False
    if limits.unacked_per_consumer and unacked > limits.unacked_per_consumer // 2 and consumer.blocked:
        return False
    return consumer.permits + consumer.parked > 0


def _lost(pump: Pump, cursor: SubscriptionCursor, dispatcher: MultipleConsumers) -> int:
    """Entries that no consumer has and that will not be read: backlog less everything that is accounted for."""
    dispatch_filter = pump.dispatch_filter
    if dispatch_filter is not None and not dispatch_filter.counted:
        return 0
    end, read_at = pump.end, pump.read_at
    ahead = cursor.unacknowledged(read_at, end)
    closed = dispatch_filter.delayed(cursor, read_at) + len(dispatch_filter.late) if dispatch_filter is not None else 0
    out = sum(
        1 for consumer in dispatcher.consumers for ordinal in consumer.pending if not cursor.acknowledged(ordinal)
    )
    return max(cursor.backlog() - ahead - out - dispatcher.in_replay - closed, 0)


def _takes_again(dispatcher: MultipleConsumers, able: list[ConsumerState]) -> bool:
    """Whether one of ``able`` could take something that waits to be sent again."""
    if isinstance(dispatcher, KeyShared):
        return _waiting_for(dispatcher, able)
    return not isinstance(dispatcher, SharedChunks) or dispatcher.waits_for(able)


def _waiting_for(dispatcher: KeyShared, able: list[ConsumerState]) -> bool:
    """Whether a waiting entry could go to one of ``able``.

    Its key is theirs and no other consumer has entries of it.
    """
    holders = dispatcher.holders()
    for slot in dispatcher.waiting_slots():
        owner = dispatcher.owner_of(slot)
        if owner in able and holders.get(slot, owner) is owner:
            return True
    return False
