"""Deletes topics and subscriptions that are not used any more (rules 4.5.6, 4.7.3, 4.7.6).

A topic is in use while it has a producer, or a subscription (mode delete_when_no_subscriptions) or a connected
consumer or a backlog (mode delete_when_subscriptions_caught_up). After ``max_inactive_s`` without use it is deleted,
but not while retention keeps what it holds: a topic without entries, in its log or its compacted view, is kept by
none. Only loaded topics are looked at: a partition that was made and never used is none of them. A subscription is in
use while it has a consumer; its time begins with its last progress, or, as that is not kept across restarts, when its
topic was loaded.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from magnetar.broker.service import BrokerService
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.broker.topic.topic import Topic
from magnetar.model.names import TopicName
from magnetar.model.system_topics import COMPACTION_SUBSCRIPTION
from magnetar.runtime.tasks import in_turns

log = logging.getLogger(__name__)

NAMED_PER_PASS: Final = 20
"""Topics or subscriptions that the log names in one pass, at most."""

_DELETED_PER_TURN: Final = 20


class InactiveTopicRemoval:
    """Notes at each topic since when it has been idle, and deletes those that have been for too long; called by upkeep.

    Nothing here holds a topic, which another deletion of it expects to be gone.
    """

    def __init__(self, service: BrokerService) -> None:
        self._service = service

    async def delete_topics(self) -> int:
        """Delete topics that have been idle for too long; returns how many."""
        now = self._service.clock.now_ms()
        idle: list[Topic] = []
        async for topic in in_turns(list(self._service.topics.values())):
            rule = topic.policies.inactive_topics
            if rule.delete and not _in_use(topic, caught_up_is_enough=rule.caught_up_is_enough):
                topic.idle_since_ms = now if topic.idle_since_ms is None else topic.idle_since_ms
                idle.append(topic)
            else:
                topic.idle_since_ms = None
        gone = 0
        async for topic in in_turns(idle, _DELETED_PER_TURN):
            if topic.closed or _in_use(topic, caught_up_is_enough=topic.policies.inactive_topics.caught_up_is_enough):
                continue  # a client came in between
            since = now if topic.idle_since_ms is None else topic.idle_since_ms
            if now - since >= topic.policies.inactive_topics.max_inactive_s * 1000 and not _retained(
                topic, now - since
            ):
                name = topic.name.fqn
                text = "%s is deleted: it has not been used for %d s"
                _say(gone, text, name, (now - since) // 1000, extra={"topic": name})
                await self._service.delete(topic.name, force=True)
                await self._parent_goes(topic.name)
                gone += 1
        if gone > NAMED_PER_PASS:
            log.info("%d unused topics were deleted; the first %d are named", gone, NAMED_PER_PASS)
        return gone

    async def _parent_goes(self, name: TopicName) -> None:
        service = self._service
        if not service.settings.brokerDeleteInactivePartitionedTopicMetadataEnabled or not name.is_partition:
            return
        if service.resources.partitioned.count(name.parent) and not service.directory.has_partitions(name.parent):
            parent = name.parent
            alone = not service.exists(parent.namesake) and not service.resources.partitioned.count(parent.namesake)
            await service.resources.delete_partitioned(parent, with_schema=alone)

    async def delete_subscriptions(self) -> int:
        """Delete durable subscriptions without consumers whose last progress is too long ago; returns how many."""
        now = self._service.clock.now_ms()
        gone = 0
        async for topic in in_turns(list(self._service.topics.values())):
            minutes = topic.policies.subscription_expiration_minutes
            async for subscription in in_turns(topic.subscriptions.each() if minutes else ()):
                if subscription.name == COMPACTION_SUBSCRIPTION or subscription.closed:
                    continue
                if subscription.durable and now - _last_use(topic, subscription) > minutes * 60_000:
                    known = {"topic": topic.name.fqn, "subscription": subscription.name}
                    _say(gone, "subscription %s of %s has expired", subscription.name, topic.name.fqn, extra=known)
                    topic.delete_subscription(subscription.name, lambda: None)
                    gone += 1
        if gone > NAMED_PER_PASS:
            log.info("%d subscriptions have expired; the first %d are named", gone, NAMED_PER_PASS)
        return gone


def _say(before: int, message: str, *args: object, extra: Mapping[str, object]) -> None:
    """Log the deletion of one, unless this pass logged many already: names must not fill the disk."""
    log.log(logging.INFO if before < NAMED_PER_PASS else logging.DEBUG, message, *args, extra=extra)


def _in_use(topic: Topic, *, caught_up_is_enough: bool) -> bool:
    if len(topic.producers):
        return True
    cursors = [cursor for cursor in topic.subscriptions.cursors() if cursor.name != COMPACTION_SUBSCRIPTION]
    if not caught_up_is_enough:
        return bool(cursors)
    return any(cursor.attended or cursor.backlog() for cursor in cursors)


def _retained(topic: Topic, idle_ms: int) -> bool:
    viewed = topic.compactor is not None and topic.compactor.view is not None
    if topic.log.end == topic.log.first and not viewed:
        return False
    minutes = topic.policies.retention.minutes
    return minutes < 0 or idle_ms < minutes * 60_000


def _last_use(topic: Topic, subscription: Subscription) -> int:
    if subscription.consumers:
        return 1 << 62
    counted = subscription.counters()
    return max(topic.loaded_ms, counted.last_flow_ms, counted.last_acked_ms, counted.last_sent_ms)
