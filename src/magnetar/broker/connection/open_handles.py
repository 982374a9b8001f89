"""What a client holds open by an id of its own: consumers, watches, and ids whose opening is under way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from magnetar.broker.topic.dispatch.consumer import Consumer
from magnetar.broker.topic.topic_api import SubscriptionApi, TopicApi
from magnetar.model.ids import Position
from magnetar.protocol import commands as c
from magnetar.storage.ledgers.ledger import Ledger


class PendingOpen:
    """A producer or consumer id whose opening is under way; ``cancelled`` when the client closed it meanwhile."""

    __slots__ = ("cancelled", "on_cancel", "schema_version")

    def __init__(self) -> None:
        self.cancelled = False
        self.schema_version = b""
        """Of a producer that brought a schema."""
        self.on_cancel: Callable[[], None] | None = None
        """For one that has a place already, in the topic's queue for instance."""

    def cancel(self) -> None:
        """The client does not want it any more, or is gone."""
        self.cancelled = True
        if self.on_cancel is not None:
            self.on_cancel()


class OpenWatch(Protocol):
    """Something that sends until it is closed."""

    def close(self) -> None: ...


class OpenConsumer:
    """A consumer that was admitted: where its commands go."""

    __slots__ = ("acks", "consumer", "ledger", "log", "subscription", "topic")

    def __init__(self, topic: TopicApi, subscription: SubscriptionApi, consumer: Consumer) -> None:
        self.topic = topic
        self.subscription = subscription
        self.consumer = consumer
        self.log = topic.log_of(subscription)
        self.ledger: Ledger = topic.log.table.ledgers[-1]
        """The ledger of the last acknowledged entry: most likely the next one's, too."""
        self.acks: list[int] = []
        """Acknowledged in this wake-up, not handed over yet."""

    def exact(self, message_id: c.MessageIdData) -> int | None:
        """Ordinal of an entry that exists, or None (rule 5.7.4)."""
        ordinal = self.log.exact_ordinal(Position(message_id.ledger, message_id.entry))
        if ordinal is not None:
            self.ledger = self.topic.log.table.holding(ordinal)
        return ordinal

    def exact_all(self, ids: Sequence[c.MessageIdData]) -> list[int]:
        """Ordinals of those that exist."""
        return [ordinal for ordinal in map(self.exact, ids) if ordinal is not None]

    def leave(self) -> None:
        """The client closed it or is gone."""
        self.subscription.remove_consumer(self.consumer)
        self.topic.consumer_gone(self.subscription)
