"""One reader of one topic at a broker: it starts at a read position and leaves no lasting trace (rule 4.3.6)."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import TypeAlias

from magnetar.client.connection import Connection
from magnetar.client.errors import ClientTimeoutError, ConnectionLostError
from magnetar.client.lookup import Lookup
from magnetar.client.read_position import START, ReadPosition, after_entry
from magnetar.protocol import commands as c
from magnetar.runtime.clock import steady_seconds

ConsumerEnd: TypeAlias = c.CommandCloseConsumer | c.CommandTopicMigrated
"""The broker serves a consumer no more; the connection stays."""


def consumer_ended(pushes: Iterable[c.Command]) -> bool:
    """Whether the broker has ended the consumer of a connection that has only one."""
    return any(isinstance(push, ConsumerEnd) for push in pushes)


class ReaderSession:
    """One connection with one non-durable consumer; nothing of it stays at the broker when it is closed."""

    def __init__(self, lookup: Lookup, topic: str, start: ReadPosition, *, back: int = 0, at_end: bool = False) -> None:
        """Begin at ``start``, or at what was published ``back`` seconds ago.

        Apache Pulsar takes a start after everything for the beginning unless ``at_end``.
        """
        self.topic = topic
        self.connection: Connection = lookup.connect(topic)
        self.consumer_id = self.connection.new_handle()
        first = c.MessageIdData(-1, -1)
        if start.ledger >= 0:
            # With a batch index the broker begins with that entry, without one after it (rule 4.3.6).
            first = c.MessageIdData(start.ledger, start.entry, batch_index=start.batch)
        try:
            self.connection.request(
                c.CommandSubscribe(
                    topic,
                    f"reader-{uuid.uuid4().hex[:10]}",
                    c.SubType.Exclusive,
                    self.consumer_id,
                    self.connection.new_request_id(),
                    durable=False,
                    start_message_id=first,
                    initial_position=c.InitialPosition.Latest if at_end else c.InitialPosition.Earliest,
                    force_topic_creation=False,
                    start_message_rollback_duration_sec=back,
                ),
                c.CommandSuccess,
                f"read {topic}",
            )
        except BaseException:
            self.connection.close()
            raise

    def __enter__(self) -> ReaderSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def last_position(self) -> ReadPosition:
        """Return the position after the last message that can be read now; START if there is none."""
        return after_entry(self._last().last_message_id)

    def placed_at(self) -> ReadPosition:
        """Return where the broker has placed the reader; START if it does not say."""
        marked = self._last().consumer_mark_delete_position
        return START if marked is None else after_entry(marked)

    def _last(self) -> c.CommandGetLastMessageIdResponse:
        return self.connection.request(
            c.CommandGetLastMessageId(self.consumer_id, self.connection.new_request_id()),
            c.CommandGetLastMessageIdResponse,
            f"ask for the last message of {self.topic}",
        )

    def flow(self, permits: int) -> None:
        """Permit the broker that many more messages; it sends entries whole."""
        self.connection.send(c.CommandFlow(self.consumer_id, permits))

    def messages(self, wait: float) -> list[c.CommandMessage]:
        """Return the first messages that come within ``wait`` seconds; ConnectionLostError if the broker ends the
        consumer."""
        pushes = self.connection.receive(wait)
        if consumer_ended(pushes):
            raise ConnectionLostError(f"the broker does not serve the reader of {self.topic} any more")
        return [push for push in pushes if type(push) is c.CommandMessage]

    def next_messages(self) -> list[c.CommandMessage]:
        """Return the next messages where some have to come, however slow the broker: ClientTimeoutError if none do."""
        deadline = steady_seconds() + self.connection.timeout
        while (left := deadline - steady_seconds()) > 0:
            if found := self.messages(left):
                return found
        raise ClientTimeoutError(
            f"{self.topic}: the broker says that there are messages, and sent none in {self.connection.timeout} s"
        )
