"""A command that reaches no broker says so at once, once, and goes on trying."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from magnetar.cli.connection import ConnectionFlags
from magnetar.cli.messages.session import run


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


@pytest.mark.parametrize("server", [nobody, web_server])
def test_a_wrong_address_is_said_at_once(
    capsys: pytest.CaptureFixture[str], server: Callable[[], contextlib.AbstractContextManager[int]]
) -> None:
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

    with server() as port:
        run(ConnectionFlags(service_url=f"pulsar://127.0.0.1:{port}"), work, lambda: None)
    first, second = said_within
    assert first.startswith("magnetar: ") and first.count("\n") == 1
    assert f"127.0.0.1:{port}" in first and "trying again for up to 30 s" in first
    assert second == "", "once is enough"
