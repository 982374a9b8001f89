"""A session that has ended does no more of its work and keeps nothing of it."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from magnetar.broker.connection import listener as listening
from magnetar.broker.connection.bounds.turns import TURN
from magnetar.broker.connection.handlers import command_table
from magnetar.broker.connection.listener import Connections, Listener
from magnetar.broker.connection.session import Session
from magnetar.protocol import codec
from magnetar.protocol import commands as c
from tests.support.connections import PING, FakeTransport, connected, fake_service, hang_up, pongs

LONG = codec.encode(c.CommandLookupTopic("t", 1))


def _let_go(client: Listener, transport: FakeTransport) -> weakref.ref[Session]:
    """The loop's transports let go of what they served."""
    transport.protocol = asyncio.Protocol()
    return weakref.ref(client.session)


def test_a_command_whose_step_ends_the_session_takes_no_further_step(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []

    def long(session: Session, command: c.CommandLookupTopic) -> Iterator[int]:
        for step in range(3):
            done.append(step)
            session.close("for a test")
            yield 1

    monkeypatch.setattr(listening, "HANDLERS", {**command_table.HANDLERS, c.CommandLookupTopic: long})

    async def scenario() -> None:
        client, transport = connected(Connections())
        client.data_received(LONG + PING)
        await asyncio.sleep(0)
        assert done == [0]
        assert not pongs(transport)
        hang_up(client)

    asyncio.run(scenario())


@pytest.mark.parametrize("behind", [b"", PING], ids=["a command under way", "commands behind it"])
def test_what_was_not_done_is_freed_without_the_collector(monkeypatch: pytest.MonkeyPatch, behind: bytes) -> None:
    """A command under way holds its session, which holds the command."""

    def long(session: Session, command: c.CommandLookupTopic) -> Iterator[int]:
        while True:
            yield TURN

    monkeypatch.setattr(listening, "HANDLERS", {**command_table.HANDLERS, c.CommandLookupTopic: long})

    async def scenario() -> None:
        client, transport = connected(Connections())
        client.data_received(LONG + behind)
        session = client.session
        assert session.busy
        hang_up(client)
        assert session._steps is None and not session._commands
        end = _let_go(client, transport)
        del client, transport, session
        for _ in range(3):
            await asyncio.sleep(0)
        assert end() is None

    gc.disable()
    try:
        asyncio.run(scenario())
    finally:
        gc.enable()


def test_who_is_lost_while_it_is_asked_for_a_sign_of_life_is_freed_at_once() -> None:
    """The timer of the question holds the session, for minutes if that is what is set."""

    async def scenario() -> None:
        client, transport = connected(Connections(), fake_service(connectionLivenessCheckTimeoutMillis=600_000))
        answers: list[bool] = []
        client.session.probe(answers.append)
        hang_up(client)
        end = _let_go(client, transport)
        del client, transport
        for _ in range(3):
            await asyncio.sleep(0)
        assert answers == [False]
        assert end() is None

    gc.disable()
    try:
        asyncio.run(scenario())
    finally:
        gc.enable()
