"""What a client holds open by an id of its own: consumers, watches, and ids whose opening is under way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from magnetar.broker.topic.dispatch.consumer import Consumer
from magnetar.broker.topic.topic_api import SubscriptionApi, TopicApi
from magnetar.model.ids import Position
from magnetar.model.names import NamespaceName
from magnetar.protocol import commands as c
from magnetar.storage.ledgers.ledger import Ledger


class PendingOpen:
    """A producer or consumer id whose opening is under way; ``cancelled`` when the client closed it meanwhile."""

    __slots__ = ("cancelled", "command", "on_cancel", "schema_version")

    def __init__(self) -> None:
        self.cancelled = False
        self.command: c.CommandProducer | c.CommandSubscribe | None = None
        """What opens it, of a session with authorization: it is judged again when grants change meanwhile."""
        self.schema_version = b""
        """The version of the schema that the producer brought."""
        self.on_cancel: Callable[[], None] | None = None
        """What gives up a place that was taken already, in the topic's queue for instance."""

    def cancel(self) -> None:
        """The client does not want it any more, or is gone."""
        self.cancelled = True
        if self.on_cancel is not None:
            self.on_cancel()


class OpenWatch(Protocol):
    """A watch: it sends updates until it is closed."""

    @property
    def namespace(self) -> NamespaceName: ...
    def close(self) -> None: ...


class OpenConsumer:
    """An admitted consumer, to which commands go."""

    __slots__ = ("acks", "consumer", "ledger", "log", "subscription", "topic")

    def __init__(self, topic: TopicApi, subscription: SubscriptionApi, consumer: Consumer) -> None:
        self.topic = topic
        self.subscription = subscription
        self.consumer = consumer
        self.log = topic.log_of(subscription)
        self.ledger: Ledger = topic.log.table.ledgers[-1]
        """The ledger of the last acknowledged entry, most likely also of the next one."""
        self.acks: list[int] = []
        """Ordinals acknowledged in this wake-up that are not handed over yet."""

    def exact(self, message_id: c.MessageIdData) -> int | None:
        """Ordinal of an entry that exists, or None (rule 5.7.4)."""
        ordinal = self.log.exact_ordinal(Position(message_id.ledger, message_id.entry))
        if ordinal is not None:
            self.ledger = self.topic.log.table.holding(ordinal)
        return ordinal

    def before(self, message_id: c.MessageIdData) -> int | None:
        """Ordinal of the last entry before the place of one that does not exist; None behind all (rule 5.7.13)."""
        after = self.log.ordinal(Position(message_id.ledger, message_id.entry))
        return after - 1 if after < self.log.end else None

    def exact_all(self, ids: Sequence[c.MessageIdData]) -> list[int]:
        """Ordinals of the entries that exist."""
        return [ordinal for ordinal in map(self.exact, ids) if ordinal is not None]

    def leave(self, *, lost: bool = False) -> None:
        """Leave the subscription: the client closed the consumer or, ``lost``, is gone."""
        self.subscription.remove_consumer(self.consumer, lost=lost)
        self.topic.consumer_gone(self.subscription)
