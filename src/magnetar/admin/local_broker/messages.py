"""Message ids and single stored entries of topics of this process."""

from __future__ import annotations

from functools import partial

from magnetar.admin.local_broker import stored_messages
from magnetar.admin.local_broker.entries import message_id_at, position_id
from magnetar.admin.local_broker.loaded_topics import LoadedTopics
from magnetar.admin.values.stored_message import StoredMessage
from magnetar.model.ids import Position
from magnetar.model.names import TopicName
from magnetar.model.policies import JsonObject
from magnetar.runtime.callbacks import answered


class LocalMessages:
    """Implements :class:`magnetar.admin.ports.MessagesPort`."""

    def __init__(self, loaded: LoadedTopics) -> None:
        self._loaded = loaded
        self._service = loaded.service
        self._indexed = loaded.service.settings.keeps_message_index

    async def last_message_id(self, topic: TopicName) -> JsonObject:
        found = self._loaded.topic(topic)
        return await message_id_at(found, found.last_visible())

    async def message_id_since(self, topic: TopicName, publish_time_ms: int) -> JsonObject:
        found = self._loaded.topic(topic)
        return position_id(found, await answered(partial(found.find_time, publish_time_ms)))

    async def peek(self, topic: TopicName, name: str, number: int) -> StoredMessage:
        found = self._loaded.topic(topic)
        # Apache Pulsar makes a subscription that does not exist, and its backlog with it; a look changes nothing here
        return await stored_messages.peek(found, found.subscriptions.get(name), number, indexed=self._indexed)

    async def examine(self, topic: TopicName, number: int, *, from_start: bool) -> StoredMessage:
        return await stored_messages.examine(
            self._loaded.topic(topic), number, from_start=from_start, indexed=self._indexed
        )

    async def message(self, topic: TopicName, position: Position) -> StoredMessage:
        return await stored_messages.by_id(self._loaded.topic(topic), position, indexed=self._indexed)
