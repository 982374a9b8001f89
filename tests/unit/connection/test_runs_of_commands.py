"""SENDs that came in one piece: what is left of it when it stops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

from magnetar.broker.connection.listener import Connections, Listener
from magnetar.protocol import codec
from magnetar.protocol import commands as c
from tests.support.connections import FakeTransport, fake_service, hang_up, publisher, sends


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
