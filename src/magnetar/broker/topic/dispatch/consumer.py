"""One connected consumer of a subscription: its delivery state, its way out, its counters."""

from __future__ import annotations

from typing import Any

from magnetar.broker.delivery.consumer_state import ConsumerState
from magnetar.broker.topic.ports import ConsumerConnection
from magnetar.broker.topic.throughput import UNSEEN, Pace


class Consumer:
    """Made by ``Subscription.add_consumer``; the connection keeps it as its handle for flow, ack and redeliver."""

    __slots__ = (
        "acked_entries", "average_messages", "bytes_out", "chunks_out", "connection", "consumer_id", "entries_out",
        "epoch", "info", "last_acked_ms", "last_flow_ms", "last_sent_ms", "messages_out", "messages_redelivered",
        "pace", "state",
    )  # fmt: skip

    def __init__(
        self,
        state: ConsumerState,
        connection: ConsumerConnection,
        consumer_id: int,
        epoch: int | None,
        info: dict[str, Any],
    ) -> None:
        self.state = state
        self.connection = connection
        self.consumer_id = consumer_id
        self.epoch = epoch
        """Echoed in MESSAGE; None: the client does not use epochs (rule 5.8.5)."""
        self.info = info
        """Shown in statistics as it is: address, clientVersion, connectedSince, metadata."""
        self.entries_out = 0
        self.messages_out = 0
        self.bytes_out = 0
        self.chunks_out = 0
        self.messages_redelivered = 0
        self.acked_entries = 0
        self.average_messages = 0
        self.last_flow_ms = 0
        self.last_sent_ms = 0
        self.last_acked_ms = 0
        self.pace: Pace = UNSEEN

    @property
    def name(self) -> str:
        return self.state.name

    def sent(self, entries: int, messages: int, size: int, now_ms: int) -> None:
        """Count what went out in one slice."""
        self.entries_out += entries
        self.messages_out += messages
        self.bytes_out += size
        self.last_sent_ms = now_ms
        if messages == entries and self.average_messages == 1:
            return
        each = round(messages / entries)
        self.average_messages = round(0.9 * self.average_messages + 0.1 * each) if self.average_messages else each
