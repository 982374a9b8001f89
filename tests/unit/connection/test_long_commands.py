"""ACK and REDELIVER with very many ids are done in pieces, so that others get their turns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest

from magnetar.broker.connection.bounds.turns import ROUND
from magnetar.broker.connection.handlers import consumer_commands
from magnetar.broker.connection.listener import Connections, Listener
from magnetar.broker.connection.open_handles import OpenConsumer
from magnetar.protocol import codec
from magnetar.protocol import commands as c
from magnetar.protocol.unparsed_commands import PART_IDS
from tests.support.connections import PING, connected, hang_up, pongs, until


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test())


class Acked:
    """A subscription that notes the acknowledgements it is given."""

    def __init__(self) -> None:
        self.acks = self
        self.taken: list[int] = []
        self.calls: list[int] = []
        self.redelivered: list[int] = []

    def take(self, consumer: object, ordinals: list[int], done: Callable[[], None] | None = None) -> None:
        self.taken += ordinals
        self.calls.append(len(ordinals))
        if done is not None:
            done()

    def redeliver(self, consumer: object, ordinals: list[int] | None, epoch: int | None) -> None:
        assert ordinals is not None
        self.redelivered += ordinals
        self.calls.append(len(ordinals))


class Log:
    """One ledger whose entries are their ordinals."""

    def exact_ordinal(self, position: Any) -> int | None:
        return cast(int, position.entry)


def consumer_of(flood: Listener) -> Acked:
    subscription = Acked()
    held = OpenConsumer.__new__(OpenConsumer)
    table = SimpleNamespace(holding=lambda ordinal: held.ledger)
    held.topic = cast(Any, SimpleNamespace(log=SimpleNamespace(table=table)))
    held.subscription = cast(Any, subscription)
    held.consumer = cast(Any, object())
    held.log = cast(Any, Log())
    held.ledger = cast(Any, SimpleNamespace(id=1, entries=0, ordinal=0))
    held.acks = []
    flood.session.consumers[7] = held
    return subscription


IDS_PER_ROUND: Final = PART_IDS * (ROUND // consumer_commands._UNITS_OF_PIECE + 1)


@pytest.mark.parametrize("count", [3_000, 100_000])
def test_one_ack_of_very_many_ids_is_taken_in_pieces(count: int) -> None:
    async def scenario() -> None:
        connections = Connections()
        flood, transport = connected(connections)
        subscription = consumer_of(flood)
        ids = tuple(c.MessageIdData(1, i) for i in range(count))
        flood.data_received(codec.encode(c.CommandAck(7, c.AckType.Individual, ids, request_id=5)) + PING)
        turns = 0
        while not pongs(transport):
            before = len(subscription.taken)
            await asyncio.sleep(0)
            turns += 1
            assert len(subscription.taken) - before <= IDS_PER_ROUND
        assert subscription.taken == list(range(count))
        assert max(subscription.calls) <= 250
        answers = [x for x in transport.heard() if isinstance(x, c.CommandAckResponse | c.CommandPong)]
        assert [type(x) for x in answers] == [c.CommandAckResponse, c.CommandPong]
        assert turns > count / IDS_PER_ROUND
        flood.session.consumers.clear()
        hang_up(flood)

    run(scenario)


def test_one_redelivery_of_very_many_ids_is_done_in_pieces() -> None:
    async def scenario() -> None:
        connections = Connections()
        flood, transport = connected(connections)
        subscription = consumer_of(flood)
        ids = tuple(c.MessageIdData(1, i) for i in range(30_000))
        flood.data_received(codec.encode(c.CommandRedeliverUnacknowledgedMessages(7, ids)) + PING)
        await until(lambda: pongs(transport) > 0)
        assert subscription.redelivered == list(range(30_000))
        assert max(subscription.calls) <= 250
        flood.session.consumers.clear()
        hang_up(flood)

    run(scenario)


def test_a_long_ack_that_cannot_be_read_acknowledges_nothing() -> None:
    async def scenario() -> None:
        connections = Connections()
        flood, transport = connected(connections)
        subscription = consumer_of(flood)
        ids = tuple(c.MessageIdData(1, i) for i in range(5_000))
        frame = bytearray(codec.encode(c.CommandAck(7, c.AckType.Individual, ids)))
        frame[-3:] = b"\xff\xff\xff"
        flood.data_received(bytes(frame))
        for _ in range(100):
            await asyncio.sleep(0)
        assert transport.closing
        assert subscription.taken == []
        flood.session.consumers.clear()
        hang_up(flood)

    run(scenario)
