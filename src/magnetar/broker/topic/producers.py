"""One producer on one topic (SEMANTICS 3.1, 3.3).

A producer belongs to a connection, which is reached through its sink. Publishing is one call per entry, ``publish``,
chosen when the producer is admitted and again when the topic's policies change: most topics check nothing and pay
nothing. Results come back once per group commit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from magnetar.model.errors import MagnetarError
from magnetar.protocol.commands import ProducerAccessMode, Send
from magnetar.storage.managed_ledger import ManagedLedger


class Pending(NamedTuple):
    """What the log gives back with the result of one entry."""

    producer: Producer
    sequence_id: int
    highest_sequence_id: int
    """0 if the SEND had none (SEMANTICS 3.3.2)."""


class ProducerSink(Protocol):
    """The way back to the client; made by broker.connection."""

    @property
    def connection(self) -> object:
        """The same object for all producers of one connection."""
        ...

    def receipts(self, ledger: int, first_entry: int, results: Sequence[Pending]) -> None:
        """Consecutive entries are durable; ledger and entry -1 for one that was there already (SEMANTICS 3.4.3)."""
        ...

    def failed(self, results: Sequence[Pending], error: MagnetarError) -> None:
        """These entries were not accepted."""
        ...

    def dropped(self, count: int) -> None:
        """So many entries were decided, either way, after the producer had been closed."""
        ...

    def close(self) -> None:
        """The topic lets the producer go: CLOSE_PRODUCER (SEMANTICS 1.3.9)."""
        ...

    def fence(self) -> None:
        """Another one took its place; it is not told, its next message ends the connection (SEMANTICS 3.2.3)."""
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


Publish: TypeAlias = Callable[[Send], None]


class Producer:
    """An open producer. Counters are of durable messages and their bytes as sent."""

    __slots__ = ("bytes_in", "info", "log", "msg_in", "open", "publish", "sink", "topic_epoch")

    def __init__(self, info: ProducerInfo, log: ManagedLedger, sink: ProducerSink) -> None:
        self.info = info
        self.log = log
        self.sink = sink
        self.open = True
        self.topic_epoch: int | None = None
        """Of the topic when it was admitted."""
        self.msg_in = 0
        self.bytes_in = 0
        self.publish: Publish = self.append

    def append(self, message: Send) -> None:
        """Fix the entry's place; the receipt follows when it is durable."""
        messages = message[2]
        self.log.append(
            message[8],
            messages if messages > 0 else 1,
            _new_pending(Pending, (self, message[1], message[3] or 0)),
        )

    def refuse(self, message: Send, error: MagnetarError) -> None:
        """SEND_ERROR; the producer stays."""
        self.sink.failed((Pending(self, message.sequence_id, message.highest_sequence_id or 0),), error)


_new_pending = tuple.__new__  # a third of what calling the class takes, once per message
