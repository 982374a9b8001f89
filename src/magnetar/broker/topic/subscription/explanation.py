"""Why is nothing arriving? What stands between a subscription's backlog and its consumers, in words.

Every obstacle is one :class:`Obstacle`: what it is, where, and what to do. The order is that of a message's way: is
there one, may it be read, is it due, is there a consumer, may that consumer have it. Reads only.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from magnetar.broker.delivery.consumer_state import ConsumerState
from magnetar.broker.delivery.dispatchers.dispatcher import Dispatcher
from magnetar.broker.delivery.dispatchers.key_shared import KeyShared
from magnetar.broker.delivery.dispatchers.single_active_consumer import SingleActiveConsumer
from magnetar.broker.topic.subscription.subscription import Subscription

IDS_MAX: Final = 10
"""Message ids that an answer names per place."""


class Obstacle(NamedTuple):
    """One obstacle, or the word that there is none."""

    what: str
    """For programs: no-consumer, caught-up, waits-for-acks, gate, delayed, throttled, no-permits, blocked-unacked,
    socket-full, activation, draining-hash, uncovered-hash, owner-busy, look-ahead-full, read-failed, unreadable,
    reading, stuck."""
    text: str
    do: str


def explain(subscription: Subscription) -> list[Obstacle]:
    """At least one finding."""
    dispatcher, backlog = subscription.dispatcher, subscription.cursor.backlog()
    if not backlog:
        return [Obstacle("caught-up", "Every message of the topic is acknowledged.", "Nothing: publish something.")]
    if dispatcher is None or not subscription.consumers:
        return [Obstacle("no-consumer", f"{backlog} entries wait and no consumer is connected.", "Connect a consumer.")]
    found = [
        *_filtered(subscription), *_disk(subscription), *_throttled(subscription),
        *_consumers(subscription, dispatcher),
    ]  # fmt: skip
    if isinstance(dispatcher, KeyShared):
        found += _keys(subscription, dispatcher)
    out = sum(len(consumer.pending) for consumer in dispatcher.consumers)
    if isinstance(dispatcher, SingleActiveConsumer):
        out = backlog if subscription.pump.next_ahead() is None else 0
    if out >= backlog:
        found.insert(0, _all_out(subscription, dispatcher, backlog))
    if not found:
        why = subscription.should_send()
        if why:
            found.append(Obstacle("stuck", f"It should be sending: {why}.", "Report it; reconnecting consumers helps."))
        else:
            found.append(
                Obstacle("flowing", f"Nothing holds up the {backlog} entries.", "Wait a moment and ask again.")
            )
    return found


def shown_id(subscription: Subscription, ordinal: int) -> str:
    """``ledger:entry``."""
    position = subscription.log.position(ordinal)
    return f"{position.ledger}:{position.entry}"


def _ids(subscription: Subscription, ordinals: list[int]) -> str:
    more = f" and {len(ordinals) - IDS_MAX} more" if len(ordinals) > IDS_MAX else ""
    return ", ".join(shown_id(subscription, ordinal) for ordinal in ordinals[:IDS_MAX]) + more


def _all_out(subscription: Subscription, dispatcher: Dispatcher, backlog: int) -> Obstacle:
    holders = [consumer for consumer in dispatcher.consumers if consumer.pending]
    if holders:
        worst = max(holders, key=lambda consumer: len(consumer.pending))
        where = (
            f"; {worst.name} holds {len(worst.pending)} of them, the first {_ids(subscription, [min(worst.pending)])}"
        )
    else:
        where = f"; the first is {_ids(subscription, [subscription.cursor.mark_delete + 1])}"
    return Obstacle(
        "waits-for-acks",
        f"All {backlog} entries of the backlog were delivered and are not acknowledged{where}.",
        "Acknowledge them, ask for redelivery, or close the consumer that holds them.",
    )


def _filtered(subscription: Subscription) -> list[Obstacle]:
    dispatch_filter = subscription.dispatch_filter
    if dispatch_filter is None:
        return []
    found = []
    end = dispatch_filter.readable_end(subscription.log.end)
    if end < subscription.log.end:
        found.append(
            Obstacle(
                "gate",
                f"Entries from {shown_id(subscription, end)} on may not be read yet: "
                f"{dispatch_filter.why_unreadable()}.",
                "Commit or abort the oldest open transaction.",
            )
        )
    delayed = dispatch_filter.delayed(subscription.cursor, subscription.log.end)
    if delayed:
        found.append(
            Obstacle("delayed", f"{delayed} entries wait for the time they were sent for.", "Wait until they are due.")
        )
    return found


def _throttled(subscription: Subscription) -> list[Obstacle]:
    throttle = subscription.pump.throttle
    limit = None if throttle is None else throttle.waits_for
    if limit is None:
        return []
    waiting = "" if limit.waiting <= 1 else f"; {limit.waiting} subscriptions wait for it in turn"
    text = (
        f"The {limit.level.value} is at its limit of {limit}, the next can be sent in {limit.wait_s():.2g} s{waiting}."
    )
    return [Obstacle("throttled", text, "Wait, or raise the limit (docs/limits.md says where each is set).")]


def _disk(subscription: Subscription) -> list[Obstacle]:
    trouble = subscription.pump.reads.trouble
    unreadable = subscription.unreadable
    if unreadable.waiting is not None:
        start, stop = unreadable.waiting
        which = f"{stop - start} entries, {shown_id(subscription, start)} to {shown_id(subscription, stop - 1)}"
        step = (
            "Bring back the file from a backup, or skip them: POST .../subscription/{name}/skipUnreadable, or "
            "autoSkipNonRecoverableData=true for all of the broker."
        )
        return [Obstacle("unreadable", f"{which}, are damaged on disk: {trouble}.", step)]
    if trouble:
        step = "See the log; mend the disk, or bring back the object if it names an offloaded ledger's."
        return [Obstacle("read-failed", f"Reading fails: {trouble}.", step)]
    if subscription.pump.reads.reading:
        return [Obstacle("reading", "Entries are being read from the disk.", "Wait a moment and ask again.")]
    return []


def _consumers(subscription: Subscription, dispatcher: Dispatcher) -> list[Obstacle]:
    found = []
    if dispatcher.blocked:
        limits = subscription.settings.limits()
        text = (
            f"The subscription has {dispatcher.unacked} unacknowledged messages and pauses until half of "
            f"{limits.unacked_per_subscription}."
        )
        if limits.of_share:
            text += " That is its share while the whole broker has too many."
        raised = "maxUnackedMessagesPerBroker" if limits.of_share else "maxUnackedMessagesPerSubscription"
        found.append(Obstacle("blocked-unacked", text, f"Acknowledge, or raise {raised}."))
    served = dispatcher.consumers
    if isinstance(dispatcher, SingleActiveConsumer):
        if dispatcher.waiting:
            text = "The active consumer has just changed and takes over in a moment."
            found.append(Obstacle("activation", text, "Wait for activeConsumerFailoverDelayTimeMillis."))
        served = [dispatcher.active] if dispatcher.active is not None else []
    for consumer in served:
        one = _consumer(subscription, consumer)
        if one is not None:
            found.append(one)
    if any(consumer.available for consumer in served) and not isinstance(dispatcher, KeyShared):
        # a consumer can take entries: what holds up the others is not why nothing arrives
        found = [one for one in found if one.what in ("blocked-unacked", "activation")]
    return found


def _consumer(subscription: Subscription, consumer: ConsumerState) -> Obstacle | None:
    if consumer.blocked:
        limit = subscription.settings.max_unacked_messages_per_consumer
        return Obstacle(
            "blocked-unacked",
            f"{consumer.name} has {consumer.unacked} unacknowledged messages and pauses until half of {limit}; "
            f"the first is {_ids(subscription, sorted(consumer.pending))}.",
            "Acknowledge them, or raise maxUnackedMessagesPerConsumer.",
        )
    if consumer.permits <= 0:
        return Obstacle(
            "no-permits",
            f"{consumer.name} has {consumer.permits} permits: its receiver queue is full or it never asked.",
            "Call receive (or resume a paused listener); a client that discards messages must give their permits back.",
        )
    if not consumer.connection.writable:
        return Obstacle(
            "socket-full",
            f"The connection of {consumer.name} takes no more bytes.",
            "Look for a hung client or network.",
        )
    return None


def _keys(subscription: Subscription, dispatcher: KeyShared) -> list[Obstacle]:
    found = []
    holders = dispatcher.holders()
    for slot, ordinals in dispatcher.waiting_by_slot():
        owner, holder = dispatcher.owner_of(slot), holders.get(slot)
        first = f"{len(ordinals)} entries of hash {slot} wait, the first is {_ids(subscription, ordinals[:1])}"
        if holder is not None and holder is not owner:
            held = dispatcher.held(slot)
            found.append(
                Obstacle(
                    "draining-hash",
                    f"{first}: {holder.name} still has unacknowledged entries of that hash "
                    f"({_ids(subscription, held)}), which belongs to {owner.name if owner else 'no consumer'} now.",
                    f"Acknowledge them on {holder.name}, or close it.",
                )
            )
        elif owner is None:
            found.append(
                Obstacle("uncovered-hash", f"{first}: no consumer declares that hash.", "Connect one whose ranges do.")
            )
        elif not owner.available:
            found.append(
                Obstacle("owner-busy", f"{first}: they belong to {owner.name}, which takes none.", "See there.")
            )
        if len(found) >= IDS_MAX:
            break
    if dispatcher.look_ahead_full:
        text = f"{dispatcher.in_replay} entries wait for their keys, so nothing new is read."
        found.append(Obstacle("look-ahead-full", text, "Serve the consumers named here."))
    return found
