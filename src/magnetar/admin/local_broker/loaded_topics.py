"""Topics by name, loaded if necessary, and waiting until changes are on the disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from magnetar.broker.service import BrokerService
from magnetar.broker.topic.nonpersistent.nonpersistent_subscription import NonPersistentSubscription
from magnetar.broker.topic.nonpersistent.nonpersistent_topic import NonPersistentTopic
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.broker.topic.topic import Topic
from magnetar.model.errors import PersistenceError, ServiceNotReadyError, SubscriptionNotFoundError, TopicNotFoundError
from magnetar.model.names import TopicName
from magnetar.runtime.callbacks import answered, settled

_DURABLE_SECONDS = 30.0

Done = Callable[[], None]
Failed = Callable[[PersistenceError], None]


async def durable(register: Callable[[Done, Failed], None]) -> None:
    """Wait for one of the two callbacks that ``register`` is given: durable, or a raised PersistenceError."""
    try:
        async with asyncio.timeout(_DURABLE_SECONDS):
            await settled(register)
    except TimeoutError:
        raise PersistenceError(
            f"the change is not on the disk after {_DURABLE_SECONDS:g} s; it may still become durable: look again"
        ) from None


async def written(barrier: Callable[[Done], None]) -> None:
    """Wait until changes are on the disk that cannot be refused any more: they are written until the disk takes them.

    A write that fails refuses none of them, so that its words, that nothing was accepted, are not theirs. Raises
    PersistenceError after a while.
    """
    await durable(lambda done, _: barrier(done))


class LoadedTopics:
    """The topics of one :class:`BrokerService`; a persistent one that is not in memory is loaded."""

    def __init__(self, service: BrokerService) -> None:
        self.service = service

    def topic(self, name: TopicName) -> Topic:
        """Return the persistent topic, loading it if necessary. Raises TopicNotFoundError."""
        found = self.service.find(name)
        if found is None:
            raise TopicNotFoundError(f"Topic {name.fqn} not found")
        return found

    def nonpersistent(self, name: TopicName) -> NonPersistentTopic:
        """Return the non-persistent topic. Raises TopicNotFoundError."""
        found = self.service.nonpersistent_topics.by_name.get(name.fqn)
        if found is None:
            raise TopicNotFoundError(f"Topic {name.fqn} not found")
        return found

    def nonpersistent_subscription(self, topic: TopicName, name: str) -> NonPersistentSubscription:
        """Return a subscription of a non-persistent topic. Raises TopicNotFoundError, SubscriptionNotFoundError."""
        found = self.nonpersistent(topic).subscriptions.get(name)
        if found is None:
            raise SubscriptionNotFoundError(f"Subscription {name} not found for topic {topic.fqn}")
        return found

    async def durable(self) -> None:
        """Return when everything that was changed before is on the disk. Raises PersistenceError."""
        await written(self.service.store.journal.barrier)


async def deletion_over(topic: Topic, subscription: str) -> None:
    """Return when no deletion of a subscription of that name is under way.

    Raises PersistenceError, and ServiceNotReadyError if the topic went meanwhile.
    """

    try:
        async with asyncio.timeout(_DURABLE_SECONDS):
            await answered(partial(topic.after_deletion, subscription))
    except TimeoutError:
        raise PersistenceError(f"{subscription} is being deleted, for {_DURABLE_SECONDS:g} s: the disk hangs") from None
    if topic.closed:
        raise ServiceNotReadyError("Topic is temporarily unavailable")


def subscription_of(topic: Topic, name: str) -> Subscription:
    """Return a subscription of a persistent topic. Raises SubscriptionNotFoundError."""
    found = topic.subscriptions.get(name)
    if found is None:
        raise SubscriptionNotFoundError(f"Subscription {name} not found for topic {topic.name.fqn}")
    return found
