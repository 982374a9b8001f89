"""A command that reaches no broker says so at once, once, and goes on trying; at a port of HTTP it ends."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
import typer

from magnetar.cli.messages.session import run
from magnetar.client import lookup
from magnetar.client.errors import ConnectionLostError
from magnetar.client.login import ClientLogin
from magnetar.contexts.broker_connection import ConnectionFlags

if TYPE_CHECKING:
    from magnetar.cli.messages.interrupts import Interrupts


@pytest.fixture(autouse=True)
def no_log_of_earlier_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that called `standalone` in this process has left a log whose stream is closed, and which says so."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])


@contextlib.contextmanager
def nobody() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port: int = reserved.getsockname()[1]
    yield port


@contextlib.contextmanager
def web_server() -> Iterator[int]:
    """A port where HTTP is spoken: it refuses what it does not understand, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    with connection:
                        connection.recv(1000)
                        connection.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        yield listening.getsockname()[1]


def test_a_broker_that_is_away_is_said_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    said_within: list[str] = []

    async def work(client: Any) -> None:
        said, trying = "", asyncio.create_task(client.create_producer("orders"))
        while not said and not trying.done():
            await asyncio.sleep(0.01)
            said = capsys.readouterr().err
        assert not trying.done(), "it goes on trying"
        trying.cancel()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.7):
                await client.create_producer("others")
        said_within.extend((said, capsys.readouterr().err))

    with nobody() as port:
        run(ConnectionFlags(service_url=f"pulsar://127.0.0.1:{port}"), work, lambda: None)
    first, second = said_within
    assert first.startswith("magnetar: ") and first.count("\n") == 1
    assert f"127.0.0.1:{port}" in first and "trying again for up to 30 s" in first
    assert second == "", "once is enough"


def test_a_port_of_http_is_said_and_ends_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    async def work(client: Any) -> None:
        await client.create_producer("orders")

    with web_server() as port, pytest.raises(typer.Exit):
        run(ConnectionFlags(service_url=f"pulsar://127.0.0.1:{port}"), work, lambda: None)
    said = capsys.readouterr().err
    assert said.startswith(f"magnetar: the broker at 127.0.0.1:{port} answers as HTTP does") and said.count("\n") == 1


def test_a_query_says_so_as_well(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def pause(_: float) -> None:
        raise ConnectionLostError("the test does not wait")

    from magnetar.cli.sql.read_bounds import ReadBounds
    from magnetar.cli.sql.topic_query import Query
    from magnetar.cli.sql.topic_table import reading_options

    signals = cast("Interrupts", SimpleNamespace(heard=False))
    with nobody() as port:
        options = reading_options(f"pulsar://127.0.0.1:{port}", ClientLogin(), "auto", strict=True)
        monkeypatch.setattr(lookup, "time", SimpleNamespace(sleep=pause))
        bounds = ReadBounds(max_rows=1, max_bytes=1 << 20, timeout=0, max_memory=0)
        with pytest.raises(ConnectionLostError, match="the test does not wait"):
            Query(text="SELECT count(*) FROM orders", options=options, bounds=bounds).run(signals)
    said = capsys.readouterr().err
    assert said.startswith(f"magnetar: cannot connect to the broker at 127.0.0.1:{port}") and said.count("\n") == 1
    assert said.endswith("; trying again for up to 30 s\n")
