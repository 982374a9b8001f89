"""Dead letters: a message that was delivered too often goes to a topic of its own, and is acknowledged then."""

from __future__ import annotations

from magnetar.client.aio.client import Client
from magnetar.client.aio.consumers.consumer import Consumer
from magnetar.client.aio.producers.producer import Producer
from magnetar.client.machines.message import Message


class DeadLetters:
    """Those of one socket; the producer is opened for the first of them."""

    def __init__(self, client: Client, topic: str, subscription: str, max_redeliveries: int) -> None:
        """``max_redeliveries``: 0 for no dead letters."""
        self._client = client
        self._topic = topic
        self._subscription = subscription
        self._most = max_redeliveries
        self._producer: Producer | None = None

    def has(self, message: Message) -> bool:
        """Whether a message is one."""
        return 0 < self._most < message.redelivery_count()

    async def move(self, message: Message, consumer: Consumer) -> None:
        """Publish it again, and acknowledge it when that is stored. Raises ClientError; then it stays where it is."""
        if self._producer is None:
            self._producer = await self._client.create_producer(self._topic)
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
        await consumer.acknowledge(message)
