"""Dead letters: a message that was delivered too often goes to a topic of its own, and is acknowledged then."""

from __future__ import annotations

import logging

from magnetar.client.aio.client import Client
from magnetar.client.aio.consumers.consumer import Consumer
from magnetar.client.aio.producers.producer import Producer
from magnetar.client.errors import ClientError
from magnetar.client.machines.message import Message
from magnetar.model.names import TopicName
from magnetar.runtime.log import RateLimitedLog

_limited = RateLimitedLog(logging.getLogger(__name__), burst=1)


class DeadLetters:
    """Those of one socket; the producer is opened for the first of them."""

    def __init__(self, client: Client, topic: TopicName | None, subscription: str, max_redeliveries: int) -> None:
        """``topic``: ``None`` for no dead letters."""
        self._client = client
        self._topic = topic
        self._subscription = subscription
        self._most = max_redeliveries
        self._producer: Producer | None = None

    def has(self, message: Message) -> bool:
        """Whether a message is one."""
        return self._topic is not None and message.redelivery_count() > self._most

    async def move(self, message: Message, consumer: Consumer) -> None:
        """Publish it again, and acknowledge it when that is stored; if it cannot be stored, it comes again."""
        assert self._topic is not None
        try:
            await self._publish(message, self._topic)
            await consumer.acknowledge(message)
        except ClientError as error:
            await consumer.negative_acknowledge(message)
            _limited.warning(
                f"{message.topic_name()} {self._subscription}",
                "a dead letter of subscription %s of %s could not be moved to %s, and is delivered again: %s",
                self._subscription, message.topic_name(), self._topic.fqn, error,
                extra={"topic": message.topic_name(), "subscription": self._subscription},
            )  # fmt: skip

    async def _publish(self, message: Message, topic: TopicName) -> None:
        if self._producer is None:
            self._producer = await self._client.create_producer(topic.fqn)
        place = message.message_id()
        origin = f"{place.ledger_id()}:{place.entry_id()}:{place.partition()}"
        properties = {
            **message.properties(),
            "REAL_TOPIC": message.topic_name(),
            "REAL_SUBSCRIPTION": self._subscription,
            "ORIGIN_MESSAGE_ID": origin,
            "ORIGIN_MESSAGE_IDY_TIME": origin,
        }
        key: str | bytes | None = None
        if message.has_key():
            key = message.key_bytes() if message.key_is_base64 else message.partition_key()
        await self._producer.send(message.data(), properties, key, event_timestamp=message.event_timestamp() or None)
