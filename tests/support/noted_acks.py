"""A consumer of a connection whose subscription notes what is acknowledged, and ACKs of it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from magnetar.broker.connection.listener import Listener
from magnetar.broker.connection.open_handles import OpenConsumer
from magnetar.protocol import codec
from magnetar.protocol import commands as c


class Noting:
    """A subscription that notes its calls."""

    def __init__(self) -> None:
        self.acks = self
        self.calls: list[Any] = []
        self.name = "s"

    def take(self, consumer: object, ordinals: list[int], done: Callable[[], None] | None = None) -> None:
        self.calls.append(("ack", list(ordinals)))
        if done is not None:
            done()

    def redeliver(self, consumer: object, ordinals: list[int] | None, epoch: int | None) -> None:
        self.calls.append(("redeliver", ordinals))

    def flow(self, consumer: object, permits: int) -> None:
        self.calls.append(("flow", permits))

    def resume(self, consumer: object) -> None:
        self.calls.append("resumed")

    def remove_consumer(self, consumer: object, *, lost: bool) -> None:
        self.calls.append("lost" if lost else "left")


def consumer_of(listener: Listener, consumer_id: int = 7) -> Noting:
    subscription = Noting()
    ledger = SimpleNamespace(id=1, entries=1_000, ordinal=0)
    table = SimpleNamespace(ledgers=[ledger], holding=lambda ordinal: ledger)
    log = SimpleNamespace(table=table, exact_ordinal=lambda position: position.entry)
    topic = SimpleNamespace(log=log, log_of=lambda subscription: log, consumer_gone=lambda subscription: None)
    held = OpenConsumer(cast(Any, topic), cast(Any, subscription), cast(Any, object()))
    listener.session.consumers[consumer_id] = held
    return subscription


def ack(*entries: int, **fields: Any) -> bytes:
    ids = tuple(c.MessageIdData(1, entry) for entry in entries)
    return codec.encode(c.CommandAck(7, c.AckType.Individual, ids, **fields))
