"""Why one message was delivered or not: what each subscription of its topic says of it; runs in the broker's loop."""

from __future__ import annotations

from dataclasses import dataclass

from magnetar.broker.delivery.dispatchers.single_active_consumer import SingleActiveConsumer
from magnetar.broker.service import BrokerService
from magnetar.broker.topic.subscription.explanation import explain
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.broker.topic.topic import Topic
from magnetar.model.errors import NotFoundError
from magnetar.model.ids import Position
from magnetar.model.names import TopicName
from magnetar.testing.kit import stored_content


@dataclass(frozen=True, slots=True)
class SubscriptionVerdict:
    """What one subscription has done with a message."""

    subscription: str
    what: str
    """``acknowledged``, ``delivered`` (and not acknowledged), ``held back`` (delayed, or in an open transaction) or
    ``waits``."""
    text: str


@dataclass(frozen=True, slots=True)
class MessageExplanation:
    """A message and its fate; as a text one line for each subscription."""

    topic: str
    message_id: str
    verdicts: tuple[SubscriptionVerdict, ...]

    def __str__(self) -> str:
        lines = [f"{self.topic} {self.message_id}: {len(self.verdicts)} subscriptions"]
        lines += [f"  {one.subscription}: {one.what}. {one.text}" for one in self.verdicts]
        return "\n".join(lines)


def explain_message(service: BrokerService, name: TopicName, position: Position) -> MessageExplanation:
    """Say what became of the entry at a position. Raises NotFoundError if it is not stored (any more)."""
    for topic in stored_content.stored(service, name):
        ordinal = topic.log.exact_ordinal(position)
        if ordinal is not None and topic.log.first <= ordinal < topic.log.end:
            verdicts = tuple(_verdict(topic, one, ordinal) for one in topic.subscriptions.values())
            return MessageExplanation(topic.name.fqn, f"{position.ledger}:{position.entry}", verdicts)
    raise NotFoundError(
        f"{name.fqn} stores no message {position.ledger}:{position.entry}: it was never receipted, or every "
        "subscription had acknowledged it and retention did not keep it"
    )


def _holder(subscription: Subscription, ordinal: int) -> str | None:
    dispatcher = subscription.dispatcher
    if isinstance(dispatcher, SingleActiveConsumer):
        # it keeps no list of what its consumer has: that is all up to the next one that is read
        ahead, active = subscription.pump.next_ahead(), subscription.active_consumer
        return active.name if active is not None and (ahead is None or ordinal < ahead) else None
    return next((one.name for one in subscription.consumers if ordinal in one.state.pending), None)


def _verdict(topic: Topic, subscription: Subscription, ordinal: int) -> SubscriptionVerdict:
    name = subscription.name
    if ordinal <= subscription.cursor.mark_delete or subscription.cursor.acknowledged(ordinal):
        return SubscriptionVerdict(name, "acknowledged", "By a consumer, or skipped, expired, or before its beginning.")
    holder = _holder(subscription, ordinal)
    if holder is not None:
        return SubscriptionVerdict(name, "delivered", f"{holder} has it and has not acknowledged it.")
    for rule in topic.dispatch_rules:
        holds = subscription.sub_type is None or rule.holds_for(subscription.sub_type)
        if ordinal >= rule.readable_end(topic.log.end):
            return SubscriptionVerdict(name, "held back", f"It may not be read yet: {rule.why}.")
        if holds and rule.next_open(ordinal, ordinal + 1) != ordinal:
            return SubscriptionVerdict(name, "held back", "It is delayed, or reserved by a transaction.")
    first = explain(subscription)[0]
    return SubscriptionVerdict(name, "waits", f"{first.text} {first.do}")
