"""Why a connection was closed: what its client did is a complaint, of which a host has a few lines a minute; what the
broker did is said otherwise."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from magnetar.broker.connection import listener as listening
from magnetar.broker.connection.handlers import command_table
from magnetar.broker.connection.handlers.metadata_write import write_metadata
from magnetar.broker.connection.listener import Connections, Listener
from magnetar.broker.connection.session import Session
from magnetar.model.errors import ConflictError, MagnetarError
from magnetar.protocol import codec
from magnetar.protocol import commands as c
from magnetar.runtime.tasks import TaskGroup
from tests.support.connections import FakeTransport, connected, fake_service, hang_up

Story = Callable[[Listener, FakeTransport, list[str], pytest.LogCaptureFixture], Coroutine[Any, Any, None]]
CLOSED = "closing the connection"


@pytest.fixture
def tell(caplog: pytest.LogCaptureFixture) -> Callable[[Story], None]:
    """Runs a story of one connection and the complaints about its client."""

    def run(story: Story) -> None:
        async def main() -> None:
            service: Any = fake_service()
            service.tasks = TaskGroup("broker")
            listener, transport = connected(Connections(), service)
            with caplog.at_level(logging.INFO):
                await story(listener, transport, service.said, caplog)
            await service.tasks.close()
            hang_up(listener)

        asyncio.run(main())

    return run


def test_bytes_that_are_no_command_are_the_clients_fault(tell: Callable[[Story], None]) -> None:
    async def story(
        listener: Listener, transport: FakeTransport, said: list[str], log: pytest.LogCaptureFixture
    ) -> None:
        listener.data_received(b"\xff" * 16)
        (complaint,) = said
        assert transport.closing and f"/10.0.0.1:5000: {CLOSED}: a frame of" in complaint
        assert CLOSED not in log.text
        listener.session.close("again")
        assert len(said) == 1, "once"

    tell(story)


def test_a_complaint_is_as_long_as_a_line_may_be(tell: Callable[[Story], None]) -> None:
    """Clients choose names of topics and properties, and a log is not theirs to fill."""

    async def story(
        listener: Listener, transport: FakeTransport, said: list[str], log: pytest.LogCaptureFixture
    ) -> None:
        for length in (500, 501):
            listener.session.complain("name", "%s", "x" * length)
        assert said == [f"/10.0.0.1:5000: {'x' * 500}", f"/10.0.0.1:5000: {'x' * 500}... (501 characters)"]

    tell(story)


def test_a_broker_that_stops_blames_nobody(tell: Callable[[Story], None]) -> None:
    async def story(
        listener: Listener, transport: FakeTransport, said: list[str], log: pytest.LogCaptureFixture
    ) -> None:
        listener.close("the broker stops")
        assert (transport.closing, said) == (True, [])
        assert f"/10.0.0.1:5000: {CLOSED}: the broker stops" in log.text

    tell(story)


def test_a_handler_that_fails_is_in_the_log_with_its_traceback(
    tell: Callable[[Story], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And whose command it was, since it may have been made to fail."""

    def fail(session: Session, command: c.CommandPing) -> None:
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr(listening, "HANDLERS", {**command_table.HANDLERS, c.CommandPing: fail})

    async def story(
        listener: Listener, transport: FakeTransport, said: list[str], log: pytest.LogCaptureFixture
    ) -> None:
        listener.data_received(codec.encode(c.CommandPing()))
        assert transport.closing
        assert "a command could not be handled" in log.text and "RuntimeError: a mistake of ours" in log.text
        assert said == [f"/10.0.0.1:5000: {CLOSED}: an internal error, see the log"]

    tell(story)


@pytest.mark.parametrize("waits", [False, True])
def test_a_write_that_fails_for_no_reason_of_the_clients_closes_without_blame(
    tell: Callable[[Story], None], waits: bool
) -> None:
    """There is no answer to it, so the client has to ask again; the fault is the caller's to see or in the log."""

    async def story(
        listener: Listener, transport: FakeTransport, said: list[str], log: pytest.LogCaptureFixture
    ) -> None:
        answers: list[Any] = []

        async def write() -> int:
            if waits:
                await asyncio.sleep(0)
            raise RuntimeError("a mistake of ours")

        def done(value: int | None, error: MagnetarError | None) -> None:
            answers.append((value, error))

        if waits:
            write_metadata(listener.session, write(), done, "SUBSCRIBE")
            for _ in range(5):
                await asyncio.sleep(0)
            assert "SUBSCRIBE failed" in log.text and "a mistake of ours" in log.text
        else:
            with pytest.raises(RuntimeError, match="a mistake of ours"):
                write_metadata(listener.session, write(), done, "SUBSCRIBE")
        assert (transport.closing, said, answers) == (True, [], [])
        assert f"{CLOSED}: a fault of the broker" in log.text

    tell(story)


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("gone", [False, True])
def test_a_write_is_answered_with_its_result_or_refusal_unless_the_client_is_gone(
    tell: Callable[[Story], None], waits: bool, gone: bool
) -> None:
    async def story(
        listener: Listener, transport: FakeTransport, said: list[str], log: pytest.LogCaptureFixture
    ) -> None:
        answers: list[Any] = []
        refusal = ConflictError("it is there")

        async def write(value: int | Exception) -> int:
            if waits:
                await asyncio.sleep(0)
            if gone:
                listener.session.close("gone", fault=False)
            if isinstance(value, Exception):
                raise value
            return value

        def done(value: int | None, error: MagnetarError | None) -> None:
            answers.append((value, error))

        for value in (5, refusal):
            write_metadata(listener.session, write(value), done, "SUBSCRIBE")
        for _ in range(5):
            await asyncio.sleep(0)
        assert answers == ([] if gone else [(5, None), (None, refusal)])
        assert (transport.closing, said) == (gone, [])

    tell(story)
