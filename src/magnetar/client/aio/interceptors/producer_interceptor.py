"""What hears of messages on their way out, with Java's callbacks in Python's spelling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.outgoing.outgoing_message import OutgoingMessage

if TYPE_CHECKING:
    from magnetar.client.aio.producers.producer import Producer


class ProducerInterceptor:
    """The root of producers' interceptors: override what you need. All run on the event loop and must not block."""

    def before_send(self, producer: Producer, message: OutgoingMessage) -> OutgoingMessage:
        """Return the message to send: this one, or another made of it with `dataclasses.replace`."""
        return message

    def on_send_acknowledgement(
        self, producer: Producer, message: OutgoingMessage, message_id: MessageId | None, error: BaseException | None
    ) -> None:
        """Hear where a message is stored, or why it is not; ``message`` is what `before_send` returned."""

    def on_partitions_change(self, topic: str, partitions: int) -> None:
        """Hear that the topic has more partitions."""

    def close(self) -> None:
        """Hear that the producer is closed."""
