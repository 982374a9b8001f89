"""SENDs and ACKs that came in one piece: what is left of it when it stops, and how often its ids are looked up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest

from magnetar.broker.connection.listener import Connections, Listener
from magnetar.model.ids import Position
from magnetar.protocol import codec
from magnetar.protocol import commands as c
from tests.support.connections import WINDOW, FakeTransport, connected, fake_service, hang_up, publisher, sends
from tests.support.noted_acks import ack, consumer_of


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(scenario())


def test_a_rate_is_used_up_by_what_came_with_connect() -> None:
    """What is behind it waits, and in order, though the first commands of a connection go another way."""

    async def scenario() -> None:
        service = fake_service()
        listener, _, _, published = publisher(Connections(), service)
        producers = listener.session.producers
        fresh = Listener(service, Connections())
        fresh.connection_made(FakeTransport(fresh))
        fresh.session.producers = producers

        def publish(message: c.CommandSend) -> None:
            published.append(message.sequence_id)
            fresh.session.halted = message.sequence_id == 1

        cast(Any, producers[1]).publish = publish
        ping = codec.encode(c.CommandPing())
        fresh.data_received(codec.encode(c.CommandConnect("test", 21)) + sends(4) + ping + sends(2, first=4))
        assert published == [0, 1]
        fresh.session.halted = False
        fresh.turn()
        assert published == list(range(6))
        hang_up(listener, fresh)

    run(scenario)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("frames", [[(2, 3, 4, 5)], [(2,), (3,), (4,), (5,)]], ids=("one command", "one each"))
def test_acknowledgements_that_are_alike_are_handed_over_in_one_piece(
    known: bool, frames: list[tuple[int, ...]]
) -> None:
    """Also if some of them do not exist, or none: who names entries of the future makes no more work."""

    async def scenario() -> None:
        listener, _ = connected(Connections())
        subscription = consumer_of(listener)
        held = cast(Any, listener.session.consumers[7])
        held.ledger.entries = 4
        held.topic.log.exact_ordinal = lambda position: position.entry if known and position.entry < 4 else None
        listener.data_received(b"".join(ack(*entries) for entries in frames))
        assert subscription.calls == [("ack", [2, 3] if known else [])]
        hang_up(listener)

    run(scenario)


def test_acknowledgements_of_another_ledger_need_one_look() -> None:
    async def scenario() -> None:
        listener, _ = connected(Connections())
        subscription = consumer_of(listener)
        held = cast(Any, listener.session.consumers[7])
        held.ledger = SimpleNamespace(id=0, entries=4, ordinal=0)
        looks: list[int] = []

        def exact_ordinal(position: Position) -> int:
            looks.append(position.entry)
            return position.entry

        held.topic.log.exact_ordinal = exact_ordinal
        listener.data_received(ack(*range(100, 200)))
        assert subscription.calls == [("ack", list(range(100, 200)))]
        assert looks == [100]
        hang_up(listener)

    run(scenario)


def test_messages_that_are_alike_are_stored_in_one_piece_and_each_is_pending() -> None:
    """The connection is not read while as many as it may have are on their way."""

    async def scenario() -> None:
        listener, transport, _, published = publisher(Connections())
        producer = cast(Any, listener.session.producers[1])
        stored: list[list[int]] = []
        producer.log = SimpleNamespace(
            append_all=lambda entries, tags: stored.append([tag.sequence_id for tag in tags])
        )
        producer.publish = producer.store
        listener.data_received(sends(WINDOW - 1))
        assert (stored, listener.session.pending_publishes) == ([list(range(WINDOW - 1))], WINDOW - 1)
        assert transport.reading
        listener.data_received(sends(2, first=20))
        assert (stored[1:], listener.session.pending_publishes) == ([[20, 21]], WINDOW + 1)
        assert not transport.reading
        assert published == []
        hang_up(listener)

    run(scenario)
