"""One producer on one topic (rules 3.1, 3.3).

A producer belongs to a client's connection, which takes the results. Publishing is one call per entry, ``publish``,
chosen when the producer is admitted and again when the topic's policies change: most topics check nothing and pay
nothing. Results come back once per group commit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from magnetar.broker.topic.ports import WritableLog
from magnetar.broker.topic.throughput import UNSEEN, Pace
from magnetar.model.errors import PersistenceError, ServiceNotReadyError
from magnetar.protocol.commands import CommandSend, ProducerAccessMode, SendRun
from magnetar.protocol.entries import DELIVER_AT, messages_in


class ProducerConnection(Protocol):
    """The connection of one producer, as its topic sees it."""

    @property
    def session(self) -> object:
        """The client's connection: one object for all its producers."""
        ...

    def receipts(self, ledger: int, first_entry: int, results: Sequence[PendingEntry]) -> None:
        """Consecutive entries are durable; ledger and entry -1 for one that was there already (rule 3.4.3)."""
        ...

    def failed(self, results: Sequence[PendingEntry], error: PersistenceError) -> None:
        """These entries were not accepted."""
        ...

    def dropped(self, count: int) -> None:
        """So many entries were decided, either way, after the producer had been closed."""
        ...

    def unstored(self, results: Sequence[PendingEntry], *, dropped: bool) -> None:
        """These entries of a non-persistent topic passed, or were dropped on the way in (rule 13.3)."""
        ...

    def close(self) -> None:
        """The topic lets the producer go: CLOSE_PRODUCER (rule 1.3.9)."""
        ...

    def fence(self) -> None:
        """Another producer took its place.

        The client is not notified, its next message ends the connection (rule 3.2.3).
        """
        ...


class ProducerInfo(NamedTuple):
    """What statistics show of a producer and never changes."""

    producer_id: int
    name: str
    user_provided_name: bool
    epoch: int
    access_mode: ProducerAccessMode
    encrypted: bool
    address: str
    connected_since: str
    client_version: str
    metadata: dict[str, str]
    supports_partial: bool
    """Shown as a producer that need not have opened every partition, where statistics go by that."""
    schema_version: bytes = b""


Append: TypeAlias = Callable[[bytes, int, object], int]
Publish: TypeAlias = Callable[[CommandSend], None]


class Producer:
    """An open producer. Counters are of durable messages and their bytes as sent."""

    __slots__ = (
        "_plain", "append", "bytes_in", "chunks_in", "connection", "info", "log", "msg_dropped", "msg_in", "open",
        "pace", "publish", "topic_epoch",
    )  # fmt: skip

    def __init__(self, info: ProducerInfo, log: WritableLog, connection: ProducerConnection) -> None:
        self.info = info
        self.log = log
        self._plain: Append = log.append
        self.append: Append = log.append
        """How its entries get into the log; the topic may put something in between."""
        self.connection = connection
        self.open = True
        self.topic_epoch: int | None = None
        """The topic epoch when it was admitted."""
        self.msg_in = 0
        self.bytes_in = 0
        self.msg_dropped = 0
        """Refused by a non-persistent topic for too many on their way (rule 13.3)."""
        self.chunks_in = 0
        self.pace: Pace = UNSEEN
        self.publish: Publish = self.store
        """What is done with a SEND; raises the MagnetarError that refuses it."""

    def close(self) -> None:
        """The topic or its client has let the producer go: nothing more is published."""
        self.open = False
        self.publish = _refuse
        self.append = self._plain

    def store(self, message: CommandSend) -> None:
        """Fix the entry's place; the receipt follows when it is durable. Raises what ``append`` does."""
        entry, messages, sequence_id = message.entry, message.num_messages, message.sequence_id
        highest = message.highest_sequence_id
        if not highest or highest < sequence_id:  # it means nothing then (rule 3.3.3)
            highest = 0
        append = self._plain
        # what comes between only wants single messages that may be delayed (rule 7.11); nearly all have less than 256
        # bytes of metadata, which one search goes through
        if messages <= 1 and (entry.find(DELIVER_AT, 10, 10 + entry[9]) >= 0 or entry[8] or entry[7]):
            append = self.append
        count = messages_in(entry, messages) if messages > 1 else 1
        append(entry, count, _new_pending(PendingEntry, (self, sequence_id, highest)))

    def store_run(self, run: SendRun) -> bool:
        """Do with many SENDs what :meth:`store` does with each; False, and nothing, if each has to be looked at."""
        entries = run.entries
        if self.publish != self.store or (run.may_be_delayed and any(map(_may_be_delayed, entries))):
            return False
        self.log.append_all(entries, [_new_pending(PendingEntry, (self, number, 0)) for number in run.sequence_ids])
        return True


class PendingEntry(NamedTuple):
    """What the log gives back with the result of one entry."""

    producer: Producer
    sequence_id: int
    highest_sequence_id: int
    """0 if the SEND had none (rule 3.3.2)."""


def _may_be_delayed(entry: bytes) -> bool:
    return entry.find(DELIVER_AT, 10, 10 + entry[9]) >= 0 or entry[8] > 0 or entry[7] > 0


def _refuse(message: CommandSend) -> None:
    raise ServiceNotReadyError("the producer is closed")


_new_pending = tuple.__new__  # a third of what calling the class takes, once per message
