"""Operations that change one existing topic of this process, or its properties."""

from __future__ import annotations

from collections.abc import Mapping

from magnetar.admin.local_broker.entries import message_id
from magnetar.admin.local_broker.loaded_topics import LoadedTopics, durable, written
from magnetar.broker.topic.cleanup.retention import apply_retention
from magnetar.broker.topic.topic import Topic
from magnetar.model.errors import ServiceNotReadyError
from magnetar.model.names import TopicName
from magnetar.model.policies import JsonObject, Retention
from magnetar.runtime.callbacks import answered
from magnetar.runtime.tasks import in_turns


class LocalTopicOperations:
    """Implements :class:`magnetar.admin.ports.TopicOperationsPort`."""

    def __init__(self, loaded: LoadedTopics) -> None:
        self._loaded = loaded
        self._service = loaded.service

    async def terminate(self, topic: TopicName) -> JsonObject:
        return await _terminate(self._loaded.topic(topic))

    async def truncate(self, topic: TopicName) -> None:
        await durable(self._loaded.topic(topic).log.barrier)
        # looked up again after waiting: it may have been unloaded, and what is loaded now has its cursors
        await _truncate(self._loaded.topic(topic))

    async def trim(self, topic: TopicName) -> None:
        await _trim(self._loaded.topic(topic))

    def topic_properties(self, topic: TopicName) -> dict[str, str]:
        return {name: str(value) for name, value in self._loaded.topic(topic).properties().items()}

    async def set_topic_properties(self, topic: TopicName, properties: Mapping[str, str]) -> None:
        self._loaded.topic(topic).set_properties(dict(properties))
        await self._loaded.durable()

    async def compact_topic(self, topic: TopicName) -> None:
        await answered(self._loaded.topic(topic).when_durable)
        # looked up again after waiting: a run that a closed topic began would have no end
        settings = self._service.settings
        self._loaded.topic(topic).compaction().begin(
            retain_keyless=settings.topicCompactionRetainNullKey, keep_index=settings.keeps_message_index
        )

    async def compaction_status(self, topic: TopicName) -> JsonObject:
        compactor = self._loaded.topic(topic).compactor
        if compactor is None:
            return {"status": "NOT_RUN", "lastError": ""}
        return {"status": compactor.status, "lastError": compactor.last_error}


async def _terminate(topic: Topic) -> JsonObject:
    """Terminate; return the id of the last message, without its partition, as Apache Pulsar does (rule 4.7.1)."""
    await durable(topic.termination.terminate)
    return message_id(topic.termination.last)


async def _truncate(topic: Topic) -> None:
    """Acknowledge and delete everything that is stored now."""
    log = topic.log
    end = log.end
    async for subscription in in_turns(topic.subscriptions.each()):
        subscription.skip_until(end - 1)
    if topic.closed:
        raise ServiceNotReadyError("Topic is temporarily unavailable")
    log.open_ledger()
    topic.trim_to(min(end, topic.slowest() + 1), 0)
    await written(log.barrier)


async def _trim(topic: Topic) -> int:
    """Apply retention now instead of at the next periodic run; return the number of deleted ledgers."""
    if topic.policies.retention == Retention(0, 0):
        dropped = topic.trim()
    else:
        dropped = await apply_retention(topic, topic.clock.now_ms())
    await written(topic.log.barrier)
    return dropped
