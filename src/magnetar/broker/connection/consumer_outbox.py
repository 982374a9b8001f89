"""The way back to a consumer's client: its messages, and the commands that the broker sends about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from magnetar.broker.connection.bounds.outbox import Outbox
from magnetar.broker.connection.session import Session
from magnetar.broker.topic.ports import EntryRun
from magnetar.protocol import commands as c
from magnetar.protocol.handmade_frames.deliveries import Deliveries

HEADER_ESTIMATE = 40
CLOSING_VERSION: Final = 5
"""The first protocol version whose clients can be told to close one consumer or producer (rule 1.2.4)."""
_END_OF_TOPIC_VERSION: Final = 9
_ACTIVE_CHANGE_VERSION: Final = 12


class ConsumerOutbox:
    """Puts one consumer's messages into its connection's outbox: the ConsumerConnection of a subscription."""

    __slots__ = ("_consumer_id", "_deliveries", "_out", "_session")

    def __init__(self, session: Session, consumer_id: int, partition: int) -> None:
        self._session = session
        self._out: Outbox = session.out
        self._consumer_id = consumer_id
        self._deliveries = Deliveries(consumer_id, partition)

    @property
    def session(self) -> Session:
        """The session that the consumer belongs to."""
        return self._session

    @property
    def writable(self) -> bool:
        """Whether the connection takes more."""
        return self._out.writable

    def deliver(self, run: EntryRun, start: int, stop: int, epoch: int | None) -> None:
        """Send MESSAGE frames for consecutive entries."""
        entries = run.entries
        if stop - start == 1:
            entry, out = entries[start], self._out
            header = self._deliveries.header(run.ledger, run.entry + start, len(entry), 0, (), epoch)
            out.parts += header, entry
            out.grew(len(entry) + HEADER_ESTIMATE)
            return
        if start or stop < len(entries):
            entries = entries[start:stop]
        out = self._out
        numbers = range(run.entry + start, run.entry + stop)
        self._deliveries.frames(run.ledger, numbers, entries, out.parts, epoch)
        out.grew(sum(map(len, entries)) + HEADER_ESTIMATE * len(entries))

    def deliver_picked(self, run: EntryRun, indexes: Sequence[int], epoch: int | None) -> None:
        """Send MESSAGE frames for these entries of ``run``, ascending."""
        entries = [run.entries[index] for index in indexes]
        first, out = run.entry, self._out
        self._deliveries.frames(run.ledger, [first + index for index in indexes], entries, out.parts, epoch)
        out.grew(sum(map(len, entries)) + HEADER_ESTIMATE * len(entries))

    def deliver_one(
        self, run: EntryRun, index: int, redelivery_count: int, ack_set: tuple[int, ...], epoch: int | None
    ) -> None:
        """Send one MESSAGE with its redelivery count and ack set."""
        entry = run.entries[index]
        out = self._out
        out.parts.append(
            self._deliveries.header(run.ledger, run.entry + index, len(entry), redelivery_count, ack_set, epoch)
        )
        out.parts.append(entry)
        out.grew(len(entry) + HEADER_ESTIMATE)

    def deliver_unstored(self, entries: Sequence[bytes]) -> None:
        """Send MESSAGE frames that all carry the id 0:0."""
        out = self._out
        self._deliveries.alike(0, 0, entries, out.parts)
        out.grew(sum(map(len, entries)) + HEADER_ESTIMATE * len(entries))

    def active_change(self, active: bool) -> None:
        """Send ACTIVE_CONSUMER_CHANGE to a client that knows it; a Failover consumer receives it after its SUCCESS."""
        if self._session.protocol_version >= _ACTIVE_CHANGE_VERSION:
            self._session.send(c.CommandActiveConsumerChange(self._consumer_id, active))

    def close(self) -> None:
        """Send CLOSE_CONSUMER: the broker closes the consumer."""
        session = self._session
        if session.consumers.pop(self._consumer_id, None) is None or session.closed:
            return
        if session.protocol_version >= CLOSING_VERSION:
            session.send(c.CommandCloseConsumer(self._consumer_id, -1))
        else:
            session.close("a consumer is closed, and the client knows no command for that", fault=False)

    def end_of_topic(self) -> None:
        """Send REACHED_END_OF_TOPIC to a client that knows it."""
        if self._session.protocol_version >= _END_OF_TOPIC_VERSION:
            self._session.send(c.CommandReachedEndOfTopic(self._consumer_id))
