"""A lost connection with thousands of things open leaves them over many turns of the loop."""

from __future__ import annotations

import asyncio

from magnetar.broker.connection.listener import Connections
from magnetar.broker.connection.open_handles import PendingOpen
from magnetar.broker.connection.session import LEAVE_AT_ONCE
from magnetar.model.names import NamespaceName
from tests.support.connections import connected


class Counted:
    """A watch that notes when it is closed."""

    def __init__(self, closed: list[Counted]) -> None:
        self._closed = closed
        self.namespace = NamespaceName.parse("public/default")

    def close(self) -> None:
        self._closed.append(self)


def test_few_leave_in_each_turn_and_whoever_wants_their_place_waits_for_all() -> None:
    async def scenario() -> None:
        listener, _ = connected(Connections())
        session = listener.session
        closed: list[Counted] = []
        opened = [Counted(closed) for _ in range(2 * LEAVE_AT_ONCE + 10)]
        session.watches.update(enumerate(opened))
        pending = PendingOpen()
        session.consumers[1] = pending
        answers: list[bool] = []
        session.probe(answers.append)
        listener.connection_lost(None)
        assert pending.cancelled
        assert not session.out.writable
        assert closed == opened[:LEAVE_AT_ONCE]
        session.probe(answers.append)
        await asyncio.sleep(0)
        assert len(closed) == 2 * LEAVE_AT_ONCE
        assert answers == []
        await asyncio.sleep(0)
        assert closed == opened
        assert answers == [False, False]

    asyncio.run(scenario())


def test_all_leave_although_the_socket_ends_while_they_do() -> None:
    """A silent connection is given up before its socket has ended; the end of the socket comes while things leave."""

    async def scenario() -> None:
        listener, _ = connected(Connections())
        closed: list[Counted] = []
        opened = [Counted(closed) for _ in range(2 * LEAVE_AT_ONCE)]
        listener.session.watches.update(enumerate(opened))
        answers: list[bool] = []
        listener.session.probe(answers.append)
        listener.session.lost()
        assert closed == opened[:LEAVE_AT_ONCE]
        listener.connection_lost(None)
        for _ in range(3):
            await asyncio.sleep(0)
        assert closed == opened
        assert answers == [False]

    asyncio.run(scenario())


def test_who_asks_for_a_sign_of_life_of_a_connection_that_has_ended_is_answered_once() -> None:
    async def scenario() -> None:
        listener, _ = connected(Connections())
        listener.connection_lost(None)
        answers: list[bool] = []
        listener.session.probe(answers.append)
        await asyncio.sleep(0.01)
        assert answers == [False]
        assert not listener.session._probes, "nobody is waited for"

    asyncio.run(scenario())
