"""How many connections there were and are, by how they began and ended."""

from __future__ import annotations

import asyncio

from magnetar.broker.connection.bounds.socket_pauses import RATE
from magnetar.broker.connection.listener import Connections, Listener
from tests.support.connections import FakeTransport, connected, fake_service, hang_up


def test_each_connection_is_counted_once_when_it_comes_and_once_when_it_goes() -> None:
    async def scenario() -> None:
        connections = Connections()

        def counts() -> tuple[int, int, int, int, int]:
            found = connections
            return len(found), found.opened, found.accepted(), found.refused, found.closed

        assert counts() == (0, 0, 0, 0, 0)
        first, _ = connected(connections)
        assert counts() == (1, 1, 1, 0, 0)
        second, _ = connected(connections)
        silent = Listener(fake_service(), connections)
        silent.connection_made(FakeTransport(silent))
        assert counts() == (3, 3, 2, 0, 0)
        hang_up(silent)
        assert counts() == (2, 3, 2, 1, 1)
        hang_up(first)
        assert counts() == (1, 3, 2, 1, 2)
        assert first not in connections and list(connections) == [second]
        assert connections.throttled() == 0
        second.session.stop_reading(RATE)
        assert connections.throttled() == 1
        hang_up(second)
        assert counts() == (0, 3, 2, 1, 3)

    asyncio.run(scenario())
