"""One producer on one topic, and the rule who may be there at the same time (SEMANTICS 3.1).

A producer belongs to a connection, which is reached through its sink. Publishing is one call per entry; results come
back once per group commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from magnetar.broker.topic.ports import TopicLog
from magnetar.model.errors import PersistenceError, ProducerBusyError


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
        """Consecutive entries are durable."""
        ...

    def failed(self, results: Sequence[Pending], error: PersistenceError) -> None:
        """These entries were not accepted."""
        ...

    def dropped(self, count: int) -> None:
        """So many entries were decided, either way, after the producer had been closed."""
        ...

    def unstored(self, results: Sequence[Pending], *, dropped: bool) -> None:
        """These entries of a non-persistent topic passed, or were dropped on the way in (13.3)."""
        ...

    def close(self) -> None:
        """The topic lets the producer go: CLOSE_PRODUCER (SEMANTICS 1.3.9)."""
        ...


class ProducerInfo(NamedTuple):
    """What statistics show of a producer and never changes."""

    producer_id: int
    name: str
    user_provided_name: bool
    epoch: int
    access_mode: str
    address: str
    connected_since: str
    client_version: str
    metadata: dict[str, str]
    supports_partial: bool
    schema_version: bytes = b""


class Producer:
    """An open producer. Counters are of durable messages and their bytes as sent."""

    __slots__ = ("append", "bytes_in", "chunks_in", "info", "log", "msg_dropped", "msg_in", "open", "sink")

    def __init__(self, info: ProducerInfo, log: TopicLog, sink: ProducerSink) -> None:
        self.info = info
        self.log = log
        self.append: Callable[[bytes, int, object], int] = log.append
        """How its entries get into the log; the topic may put something in between."""
        self.sink = sink
        self.open = True
        self.msg_in = 0
        self.bytes_in = 0
        self.msg_dropped = 0
        """Refused by a non-persistent topic for too many on their way (13.3)."""
        self.chunks_in = 0

    def publish(self, entry: bytes, messages: int, sequence_id: int, highest_sequence_id: int) -> None:
        """Fix the entry's place; the receipt follows when it is durable. Raises what ``append`` does."""
        self.append(entry, messages, _new_pending(Pending, (self, sequence_id, highest_sequence_id)))


_new_pending = tuple.__new__  # a third of what calling the class takes, once per message


class Producers:
    """The open producers of one topic, by name."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._by_name: dict[str, Producer] = {}

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[Producer]:
        return iter(list(self._by_name.values()))

    def holder(self, name: str) -> Producer | None:
        """Who has this name now."""
        return self._by_name.get(name)

    def add(self, producer: Producer) -> None:
        """Raises ProducerBusyError if the name is taken, except by an older life of the same producer (3.1.2)."""
        info = producer.info
        held = self._by_name.get(info.name)
        if held is not None:
            same = held.sink.connection is producer.sink.connection and held.info.producer_id == info.producer_id
            if not (same and info.epoch > held.info.epoch):
                raise ProducerBusyError(
                    "org.apache.pulsar.broker.service.BrokerServiceException$NamingException: "
                    f"Producer with name '{info.name}' is already connected to topic '{self._topic}'"
                )
            held.open = False
        self._by_name[info.name] = producer

    def remove(self, producer: Producer) -> None:
        """The producer left; its entries in flight still become durable, their receipts go nowhere."""
        producer.open = False
        if self._by_name.get(producer.info.name) is producer:
            del self._by_name[producer.info.name]

    def close_all(self) -> None:
        """Let every producer go (unload, deletion, failed write)."""
        for producer in list(self._by_name.values()):
            producer.open = False
            producer.sink.close()
        self._by_name.clear()
