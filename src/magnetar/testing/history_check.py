"""Whether a correct broker could have shown what a history says: the model that judges it.

It is small: a topic (one partition) is a growing map from position to value; a subscription has a start and a set of
confirmed acks. The promises are those of :mod:`magnetar.testing.history`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from magnetar.testing.history import (
    BEGINNING,
    AckConfirmed,
    Acked,
    ActiveChanged,
    ConsumerLeft,
    ConsumerOpened,
    Crashed,
    Delivered,
    Drained,
    Event,
    MessagePosition,
    Receipted,
    RedeliveryAsked,
    Sent,
    Sought,
    Subscribed,
)


class Order(Enum):
    """What a subscription promises about the order of first deliveries."""

    TOPIC = "topic"
    KEY = "key"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Rules:
    """What this simulation may expect."""

    order: Order = Order.TOPIC
    acks_survive_crash: bool = True
    """False: a crash may undo confirmed acks."""
    in_flight_after_ack: bool = False
    """True: only a consumer opened after the confirmation must not see the entry: others may have it in flight."""
    retry_may_duplicate: bool = False
    """True: one value may have several places, as a producer sent it again without deduplication."""


class HistoryError(AssertionError):
    """At least one promise was broken."""


@dataclass(slots=True)
class _Topic:
    sent: dict[str, str | None] = field(default_factory=dict)
    """Value to key."""
    floor: dict[str, MessagePosition] = field(default_factory=dict)
    """Value to the highest place receipted before it was sent."""
    value_at: dict[MessagePosition, str] = field(default_factory=dict)
    places_of: dict[str, set[MessagePosition]] = field(default_factory=dict)
    receipted: set[MessagePosition] = field(default_factory=set)
    highest: MessagePosition = BEGINNING
    receipted_of: dict[str, MessagePosition] = field(default_factory=dict)
    """Producer to its last receipted place."""


@dataclass(slots=True)
class _Subscription:
    start: MessagePosition = BEGINNING
    opened_at: dict[str, int] = field(default_factory=dict)
    delivered: set[MessagePosition] = field(default_factory=set)
    first_done: dict[str | None, MessagePosition] = field(default_factory=dict)
    """Key (None: the whole topic) to the highest place that was delivered."""
    last_to: dict[str, MessagePosition] = field(default_factory=dict)
    """Consumer to the last place it saw since the last cause for redelivery."""
    holder: dict[MessagePosition, str] = field(default_factory=dict)
    """Delivered entry to the consumer which holds it: it may come again only after a cause."""
    holder_of_key: dict[MessagePosition, str] = field(default_factory=dict)
    """Delivered entry to its holder, without what the holder has sent an ack for."""
    confirmed: dict[MessagePosition, int] = field(default_factory=dict)
    """Confirmed ack to its time."""
    confirmed_upto: tuple[MessagePosition, int] = (BEGINNING, -1)
    acked: set[MessagePosition] = field(default_factory=set)
    acked_upto: MessagePosition = BEGINNING

    def confirmed_at(self, place: MessagePosition) -> int | None:
        for name in (place, place._replace(batch_index=-1)):
            if name in self.confirmed:
                return self.confirmed[name]
        upto, when = self.confirmed_upto
        return when if place <= upto else None

    def is_acked(self, place: MessagePosition) -> bool:
        return place in self.acked or place._replace(batch_index=-1) in self.acked or place <= self.acked_upto

    def may_come_again(self, places: Iterable[MessagePosition]) -> None:
        for place in list(places):
            self.holder.pop(place, None)
            self.holder_of_key.pop(place, None)

    def held_by(self, consumer: str) -> list[MessagePosition]:
        return [place for place, holder in self.holder.items() if holder == consumer]


class _Checker:
    def __init__(self, rules: Mapping[str, Rules] | Rules) -> None:
        self._rules = rules
        every = [rules] if isinstance(rules, Rules) else rules.values()
        self._retry_may_duplicate = any(each.retry_may_duplicate for each in every)
        self._topics: dict[str, _Topic] = {}
        self._subscriptions: dict[tuple[str, str], _Subscription] = {}
        self._now = 0
        self.broken: list[str] = []

    def feed(self, now: int, event: Event) -> None:
        self._now = now
        match event:
            case Sent():
                topic = self._topic(event.topic)
                topic.sent[event.value] = event.key
                topic.floor.setdefault(event.value, topic.highest)
            case Receipted():
                self._receipted(event)
            case Subscribed():
                self._subscription(event).start = event.start
            case ConsumerOpened():
                self._subscription(event).opened_at[event.consumer] = now
            case ConsumerLeft():
                self._left(event)
            case RedeliveryAsked():
                self._redelivery_asked(event)
            case ActiveChanged():
                switched = self._subscription(event)
                switched.last_to.clear()
                switched.may_come_again(switched.holder)
            case Delivered():
                self._delivered(event)
            case Acked():
                self._acked(event)
            case AckConfirmed():
                subscription = self._subscription(event)
                if not event.cumulative:
                    subscription.confirmed.setdefault(event.place, now)
                elif event.place.end() > subscription.confirmed_upto[0]:
                    subscription.confirmed_upto = event.place.end(), now
            case Sought():
                before = self._subscription(event)
                self._subscriptions[event.topic, event.subscription] = _Subscription(event.before, before.opened_at)
            case Crashed():
                self._crashed()
            case Drained():
                self._drained(event)

    def _fail(self, event: Event, text: str) -> None:
        self.broken.append(f"#{self._now}: {text}; {event}")

    def _topic(self, name: str) -> _Topic:
        return self._topics.setdefault(name, _Topic())

    def _subscription(
        self,
        event: Subscribed
        | ConsumerOpened
        | ConsumerLeft
        | RedeliveryAsked
        | ActiveChanged
        | Delivered
        | Acked
        | AckConfirmed
        | Sought
        | Drained,
    ) -> _Subscription:
        return self._subscriptions.setdefault((event.topic, event.subscription), _Subscription())

    def _rules_of(self, subscription: str) -> Rules:
        return self._rules if isinstance(self._rules, Rules) else self._rules[subscription]

    def _stands_at(self, event: Receipted | Delivered, topic: _Topic) -> None:
        """A value was seen at a place, by its producer or by a consumer."""
        if event.value not in topic.sent:
            self._fail(event, "value was never sent")
        known = topic.value_at.setdefault(event.place, event.value)
        if known != event.value:
            self._fail(event, f"place holds {known!r} already")
        places = topic.places_of.setdefault(event.value, set())
        places.add(event.place)
        if len(places) > 1 and not self._retry_may_duplicate:
            self._fail(event, f"value stands at {len(places)} places")

    def _receipted(self, event: Receipted) -> None:
        topic = self._topic(event.topic)
        self._stands_at(event, topic)
        if not self._retry_may_duplicate:
            if event.place in topic.receipted:
                self._fail(event, "place was receipted before")
            floor = topic.floor.get(event.value, BEGINNING)
            if event.place <= floor:
                self._fail(event, f"stands before {floor}, which was receipted before it was sent")
            last = topic.receipted_of.get(event.producer, BEGINNING)
            if event.place <= last:
                self._fail(event, f"stands before {last}, which the producer got first")
        topic.receipted_of[event.producer] = event.place
        topic.receipted.add(event.place)
        topic.highest = max(topic.highest, event.place)

    def _left(self, event: ConsumerLeft) -> None:
        subscription = self._subscription(event)
        subscription.opened_at.pop(event.consumer, None)
        subscription.last_to.pop(event.consumer, None)
        subscription.may_come_again(subscription.held_by(event.consumer))

    def _redelivery_asked(self, event: RedeliveryAsked) -> None:
        subscription = self._subscription(event)
        subscription.last_to.clear()
        held = subscription.held_by(event.consumer)
        subscription.may_come_again(place for place in held if not event.places or place in event.places)

    def _acked(self, event: Acked) -> None:
        subscription = self._subscription(event)
        if event.cumulative:
            subscription.acked_upto = max(subscription.acked_upto, event.place.end())
        else:
            subscription.acked.add(event.place)
        for place in [place for place in subscription.holder_of_key if subscription.is_acked(place)]:
            del subscription.holder_of_key[place]

    def _crashed(self) -> None:
        for (_, name), subscription in self._subscriptions.items():
            subscription.last_to.clear()
            subscription.may_come_again(subscription.holder)
            if not self._rules_of(name).acks_survive_crash:
                subscription.confirmed.clear()
                subscription.confirmed_upto = (BEGINNING, -1)

    def _delivered(self, event: Delivered) -> None:
        topic, subscription = self._topic(event.topic), self._subscription(event)
        rules = self._rules_of(event.subscription)
        self._stands_at(event, topic)
        self._not_acked(event, subscription, rules)
        holder = subscription.holder.get(event.place)
        if holder is not None:
            self._fail(event, f"delivered again without a cause, {holder} holds it")
        key = topic.sent.get(event.value)
        if rules.order is not Order.NONE:
            self._in_order(event, subscription, None if rules.order is Order.TOPIC else key)
        if rules.order is Order.KEY and key is not None:
            self._one_owner(event, topic, subscription, key)
        subscription.delivered.add(event.place)
        subscription.holder[event.place] = event.consumer
        subscription.holder_of_key[event.place] = event.consumer

    def _not_acked(self, event: Delivered, subscription: _Subscription, rules: Rules) -> None:
        confirmed = subscription.confirmed_at(event.place)
        if confirmed is None:
            return
        opened = subscription.opened_at.get(event.consumer, 0)
        if not rules.in_flight_after_ack or opened > confirmed:
            self._fail(event, f"delivered although its ack was confirmed at #{confirmed}")

    def _in_order(self, event: Delivered, subscription: _Subscription, key: str | None) -> None:
        last = subscription.last_to.get(event.consumer, BEGINNING) if key is None else BEGINNING
        if event.place <= last:
            self._fail(event, f"{event.consumer} saw {last} before")
        subscription.last_to[event.consumer] = event.place
        if event.place in subscription.delivered:
            return
        highest = subscription.first_done.get(key, BEGINNING)
        if event.place < highest:
            self._fail(event, f"first delivery after that of {highest}")
        subscription.first_done[key] = max(highest, event.place)

    def _one_owner(self, event: Delivered, topic: _Topic, subscription: _Subscription, key: str) -> None:
        for place, holder in subscription.holder_of_key.items():
            if holder != event.consumer and topic.sent.get(topic.value_at.get(place, "")) == key:
                self._fail(event, f"{holder} still holds {place} of the same key {key!r}")
                return

    def _drained(self, event: Drained) -> None:
        topic, subscription = self._topic(event.topic), self._subscription(event)
        for place in sorted(topic.receipted):
            seen = place in subscription.delivered or subscription.is_acked(place)
            if place > subscription.start and not seen:
                self._fail(event, f"{topic.value_at[place]!r} at {place} was receipted and never delivered")


def check(events: Iterable[Event], rules: Mapping[str, Rules] | Rules) -> list[str]:
    """Every broken promise. ``rules`` holds for all subscriptions or is given by the subscription's name."""
    checker = _Checker(rules)
    for now, event in enumerate(events):
        checker.feed(now, event)
    return checker.broken


def verify(events: Iterable[Event], rules: Mapping[str, Rules] | Rules) -> None:
    """:func:`check`, raising :class:`HistoryError`."""
    broken = check(events, rules)
    if broken:
        raise HistoryError(f"{len(broken)} broken promises\n" + "\n".join(broken[:20]))
