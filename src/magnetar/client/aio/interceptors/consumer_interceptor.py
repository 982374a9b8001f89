"""What hears of messages on their way in, and of their acknowledgements, with Java's callbacks in Python's spelling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from magnetar.client.machines.message import Message
from magnetar.client.machines.message_id import MessageId

if TYPE_CHECKING:
    from magnetar.client.aio.consumers.consumer import Consumer


class ConsumerInterceptor:
    """The root of consumers' and readers' interceptors: override what you need. All run on the event loop and must not
    block."""

    def before_consume(self, consumer: Consumer, message: Message) -> Message:
        """Return the message to hand to the application: this one, or another."""
        return message

    def on_acknowledge(self, consumer: Consumer, message_id: MessageId, error: BaseException | None) -> None:
        """Hear that a message was acknowledged, or why it was not."""

    def on_acknowledge_cumulative(self, consumer: Consumer, message_id: MessageId, error: BaseException | None) -> None:
        """Hear that a message and all before it were acknowledged, or why not."""

    def on_negative_acks_send(self, consumer: Consumer, message_ids: set[MessageId]) -> None:
        """Hear which entries are asked for again after negative acknowledgements."""

    def on_ack_timeout_send(self, consumer: Consumer, message_ids: set[MessageId]) -> None:
        """Hear which entries are asked for again since their acknowledgement did not come in time."""

    def on_partitions_change(self, topic: str, partitions: int) -> None:
        """Hear that the topic has more partitions."""

    def close(self) -> None:
        """Hear that the consumer is closed."""
