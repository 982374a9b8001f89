"""Subscriptions of topics of this process, and what moves their cursors."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from magnetar.admin.local_broker.entries import entry_at
from magnetar.admin.local_broker.loaded_topics import LoadedTopics, deletion_over, durable, subscription_of, written
from magnetar.broker.topic.cleanup.expiry import expire
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.broker.topic.topic import Topic
from magnetar.model.errors import (
    ConflictError,
    NotAllowedError,
    PreconditionFailedError,
    ServiceNotReadyError,
    SubscriptionExistsError,
    TopicNotFoundError,
)
from magnetar.model.ids import LATEST, Position, ack_set_of
from magnetar.model.names import TopicName
from magnetar.model.own_properties import OF_SUBSCRIPTIONS, REPLICATED, is_replicated
from magnetar.model.system_topics import COMPACTION_SUBSCRIPTION
from magnetar.protocol.stored_metadata import batch_size
from magnetar.runtime.callbacks import answered

_ALMOST_CAUGHT_UP: Final = 1000
"""Backlogs below this are left to the connected consumers, unless their first message is old enough (rule 11.5.6)."""


class LocalSubscriptions:
    """Implements :class:`magnetar.admin.ports.SubscriptionsPort`."""

    def __init__(self, loaded: LoadedTopics) -> None:
        self._loaded = loaded
        self._service = loaded.service

    async def subscriptions_of(self, topic: TopicName) -> list[str]:
        return list(
            (self._loaded.topic(topic) if topic.persistent else self._loaded.nonpersistent(topic)).subscriptions
        )

    async def create_subscription(
        self, topic: TopicName, name: str, start: Position, properties: Mapping[str, str], *, replicated: bool
    ) -> None:
        try:
            found = self._service.topic_for(topic, create=True)
        except TopicNotFoundError:
            raise PreconditionFailedError("Topic does not exist and cannot be auto-created") from None
        except NotAllowedError as refused:
            raise ConflictError(str(refused)) from None  # 409 here, NotAllowedError on the wire
        await answered(found.when_durable)
        await deletion_over(found, name)
        if name in found.subscriptions:
            raise SubscriptionExistsError
        ordinal = found.log.end if start == LATEST else found.log.ordinal(start)
        try:
            stored = {**properties, **(REPLICATED if replicated else {})}
            await durable(lambda done, _: found.create_subscription(name, ordinal, done, stored))
        except NotAllowedError as full:
            raise ConflictError(str(full)) from None  # 409 here, NotAllowedError on the wire

    async def deletion_over(self, topic: TopicName, name: str) -> None:
        if topic.persistent:
            await deletion_over(self._loaded.topic(topic), name)

    async def delete_subscription(self, topic: TopicName, name: str, *, force: bool) -> None:
        if not topic.persistent:
            self._loaded.nonpersistent_subscription(topic, name)
            self._loaded.nonpersistent(topic).delete_subscription(name, _nothing)
            return
        found = self._loaded.topic(topic)
        if subscription_of(found, name).consumers and not force:
            raise PreconditionFailedError("Subscription has active connected consumers")
        await durable(lambda done, _: found.delete_subscription(name, done))

    async def skip(self, topic: TopicName, name: str, entries: int | None) -> None:
        if not topic.persistent:
            self._loaded.nonpersistent_subscription(topic, name)
            raise NotAllowedError(f"nothing to skip: {topic.fqn} is a non-persistent topic, which stores nothing")
        found = self._loaded.topic(topic)
        subscription = subscription_of(found, name)
        last = found.log.end - 1
        if entries is not None:
            last = _nth_unacknowledged(subscription, entries, last)
        await durable(lambda done, _: subscription.skip_until(last, done))

    async def skip_unreadable(self, topic: TopicName, name: str) -> int:
        if not topic.persistent:
            self._loaded.nonpersistent_subscription(topic, name)
            return 0
        found = self._loaded.topic(topic)
        skipped = subscription_of(found, name).skip_unreadable()
        await written(found.log.barrier)
        return skipped

    async def expire(self, topic: TopicName, name: str, seconds: int) -> bool:
        found = self._loaded.topic(topic)
        return await _expire_older(found, subscription_of(found, name), seconds)

    async def expire_until(self, topic: TopicName, name: str, position: Position, excluded: bool) -> bool:
        found = self._loaded.topic(topic)
        return await _expire_until(found, subscription_of(found, name), position, excluded=excluded)

    async def reset_cursor(self, topic: TopicName, name: str, publish_time_ms: int) -> None:
        if not topic.persistent:
            self._loaded.nonpersistent_subscription(topic, name)
            return
        found = self._loaded.topic(topic)
        subscription = subscription_of(found, name)
        ordinal = await answered(partial(found.find_time, publish_time_ms))
        if found.closed:
            raise ServiceNotReadyError("Topic is temporarily unavailable")
        await durable(lambda done, _: subscription.seek_to(ordinal, done))

    async def reset_to(
        self, topic: TopicName, name: str, position: Position, excluded: bool, batch_index: int = -1
    ) -> None:
        found = self._loaded.topic(topic)
        await _reset_to(found, subscription_of(found, name), position, batch_index, excluded=excluded)

    def subscription_properties(self, topic: TopicName, name: str) -> dict[str, str]:
        if not topic.persistent:
            return dict(self._loaded.nonpersistent_subscription(topic, name).properties)
        cursor = subscription_of(self._loaded.topic(topic), name).cursor
        return {key: str(value) for key, value in cursor.properties.items() if not key.startswith(OF_SUBSCRIPTIONS)}

    def is_replicated(self, topic: TopicName, name: str) -> bool:
        return is_replicated(subscription_of(self._loaded.topic(topic), name).cursor.properties)

    async def set_replicated(self, topic: TopicName, name: str, *, replicated: bool) -> None:
        found = self._loaded.topic(topic)
        cursor = found.log.cursors.get(subscription_of(found, name).name)
        if cursor is not None:
            kept = {key: value for key, value in cursor.properties.items() if key not in REPLICATED}
            cursor.properties = kept
            cursor.set_properties({**kept, **(REPLICATED if replicated else {})})
        await self._loaded.durable()

    async def set_subscription_properties(self, topic: TopicName, name: str, properties: Mapping[str, str]) -> None:
        if not topic.persistent:
            self._loaded.nonpersistent_subscription(topic, name).properties = dict(properties)
            return
        found = self._loaded.topic(topic)
        cursor = found.log.cursors.get(subscription_of(found, name).name)
        if cursor is not None:
            cursor.set_properties(dict(properties))
        await self._loaded.durable()


def _nothing() -> None: ...


def _nth_unacknowledged(subscription: Subscription, count: int, last: int) -> int:
    """Ordinal of the ``count``-th entry that is not acknowledged, at most ``last``."""
    cursor = subscription.cursor
    ordinal = cursor.mark_delete
    while count > 0 and ordinal < last:
        start = cursor.next_unacknowledged(ordinal + 1)
        if start > last:
            break
        stop = cursor.next_acknowledged(start, min(last + 1, start + count))
        count -= stop - start
        ordinal = stop - 1
    return ordinal


async def _expire_older(topic: Topic, subscription: Subscription, seconds: int) -> bool:
    """Acknowledge messages older than ``seconds``; return whether there was anything to look at (rule 11.5.6)."""
    _refuse_compaction(topic, subscription)
    backlog = subscription.cursor.backlog()
    served = bool(subscription.consumers) and backlog < _ALMOST_CAUGHT_UP
    gone = await expire(subscription, topic.clock.now_ms() - seconds * 1000)
    await written(topic.log.barrier)
    return gone > 0 or (backlog > 0 and not served)


async def _expire_until(topic: Topic, subscription: Subscription, position: Position, *, excluded: bool) -> bool:
    """Acknowledge messages up to ``position``; return whether the topic reaches that far.

    One that lies before all messages does nothing, also on a topic without any.
    """
    _refuse_compaction(topic, subscription)
    if position > topic.log.position(topic.log.end - 1):
        return False
    exact = topic.log.exact_ordinal(position)
    last = topic.log.ordinal(position) - 1 if exact is None or excluded else exact
    if last > subscription.cursor.mark_delete:
        subscription.expire_until(last)
    await written(topic.log.barrier)
    return True


def _refuse_compaction(topic: Topic, subscription: Subscription) -> None:
    """Raises ConflictError for the cursor of compaction: what it acknowledged would never be compacted."""
    if subscription.name == COMPACTION_SUBSCRIPTION:
        raise ConflictError(
            f"messages of {COMPACTION_SUBSCRIPTION} do not expire; it moves on when the topic is compacted: "
            f"magnetar admin topics compact {topic.name.fqn}"
        )


async def _reset_to(
    topic: Topic, subscription: Subscription, position: Position, batch_index: int, *, excluded: bool
) -> None:
    """Make the message at ``position`` the next one, or the one after it if ``excluded``.

    An index from 0 on is that of a message in the entry: what comes before it in the batch is acknowledged.
    """
    exact = topic.log.exact_ordinal(position)
    size, begin = 0, batch_index + excluded
    if exact is not None and batch_index >= 0 and begin > 0:
        size = batch_size(await entry_at(topic.log, exact)) or 1
    if exact is not None and 0 < begin < size <= subscription.pump.sizes.largest:
        left = ack_set_of((1 << size) - (1 << begin))
        await durable(lambda done, _: subscription.seek_to(exact, done, left, size))
        return
    excluded = excluded and begin >= size  # a batch too large to believe comes whole
    ordinal = topic.log.ordinal(position) if exact is None else exact + excluded
    await durable(lambda done, _: subscription.seek_to(ordinal, done))
