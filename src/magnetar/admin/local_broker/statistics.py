"""Statistics of topics and subscriptions of this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from magnetar.admin.local_broker import stored_messages
from magnetar.admin.local_broker.loaded_topics import LoadedTopics, subscription_of
from magnetar.admin.local_broker.stats.internal_stats import internal_stats
from magnetar.admin.local_broker.stats.managed_ledger_info import managed_ledger_info
from magnetar.admin.local_broker.stats.nonpersistent_stats import (
    nonpersistent_internal_stats,
    nonpersistent_topic_stats,
)
from magnetar.admin.local_broker.stats.offline_backlog import offline_backlog
from magnetar.admin.local_broker.stats.topic_stats import topic_stats
from magnetar.admin.local_broker.subscription_explanation import explanation, of_hash
from magnetar.admin.ports import StatsOptions
from magnetar.broker.topic.subscription.backlog import bytes_behind
from magnetar.broker.upkeep.rates import Rates
from magnetar.model.ids import Position
from magnetar.model.names import TopicName
from magnetar.model.policies import JsonObject
from magnetar.runtime.tasks import in_turns

_PARTS_PER_TURN: Final = 20


class LocalStatistics:
    """Implements :class:`magnetar.admin.ports.StatisticsPort`."""

    def __init__(self, loaded: LoadedTopics, rates: Rates) -> None:
        self._loaded = loaded
        self._service = loaded.service
        self._rates = rates

    async def topic_stats(self, topic: TopicName, options: StatsOptions) -> JsonObject:
        if not topic.persistent:
            return await nonpersistent_topic_stats(
                self._loaded.nonpersistent(topic), self._rates, options, self._service.broker_id
            )
        stats = await topic_stats(self._loaded.topic(topic), self._rates, options, self._service.broker_id)
        return {**stats, "lastOffloadFailureTimeStamp": self._service.offloader.failed_ms(topic)}

    async def internal_stats(self, topic: TopicName) -> JsonObject:
        if not topic.persistent:
            return nonpersistent_internal_stats(self._loaded.nonpersistent(topic))
        return await internal_stats(self._loaded.topic(topic))

    async def managed_ledger_info(self, topic: TopicName) -> JsonObject:
        return await managed_ledger_info(self._loaded.topic(topic))

    async def offline_backlog(self, topic: TopicName, parts: Sequence[TopicName]) -> JsonObject:
        found = (self._loaded.topic(part) async for part in in_turns(parts, _PARTS_PER_TURN))
        address = self._service.broker_id.rpartition(":")[0]
        return await offline_backlog(topic, found, address, self._service.clock.now_ms())

    def backlog_size(self, topic: TopicName, position: Position) -> int:
        log = self._loaded.topic(topic).log
        return bytes_behind(log, log.ordinal(Position(position.ledger, position.entry + 1)) - 1)

    async def analyze_backlog(self, topic: TopicName, name: str, start: Position | None) -> JsonObject:
        found = self._loaded.topic(topic)
        most = self._service.settings.subscriptionBacklogScanMaxEntries
        return await stored_messages.analyze(found, subscription_of(found, name), start, most)

    async def explain(self, topic: TopicName, name: str) -> JsonObject:
        return explanation(subscription_of(self._loaded.topic(topic), name))

    async def unacknowledged(self, topic: TopicName, name: str, slot: int | None, key: str | None) -> JsonObject:
        found = self._loaded.topic(topic)
        return await of_hash(subscription_of(found, name), found.log, slot, key)
