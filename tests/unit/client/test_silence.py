"""A port, a broker or an issuer of tokens that is silent holds a client no longer than operation_timeout_seconds, and
the error says which it was; what is being opened ends with the client."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvloop

from magnetar.client.aio.authentication import AuthenticationOauth2, AuthenticationToken
from magnetar.client.aio.client import Client
from magnetar.client.errors import AlreadyClosedError, ClientTimeoutError
from tests.support.minted_secrets import kept, password

Run = Callable[[Coroutine[Any, Any, None]], None]
LOOPS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
LONG = 60.0
"""Seconds that no test may last: each ends by a time-out of 0.3 s."""


@contextmanager
def silent_port() -> Iterator[str]:
    """A port that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


async def opened(url: str, **given: Any) -> None:
    async with Client(url, operation_timeout_seconds=0.3, connection_timeout_ms=int(LONG * 1000), **given) as client:
        await client.create_producer("t")


@LOOPS
def test_a_port_that_is_silent_about_tls(run: Run) -> None:
    began = time.monotonic()
    with (
        silent_port() as where,
        pytest.raises(ClientTimeoutError, match=f"handshake with the broker at {where} in 0.3 s"),
    ):
        run(opened(f"pulsar+ssl://{where}"))
    assert time.monotonic() - began < LONG


@LOOPS
def test_a_port_that_does_not_answer_connect(run: Run) -> None:
    with silent_port() as where, pytest.raises(ClientTimeoutError, match="did not answer CONNECT in 0"):
        run(opened(f"pulsar://{where}"))


@pytest.mark.parametrize("scheme", ["pulsar", "http"])
def test_a_function_that_gives_no_token(scheme: str) -> None:
    """Its thread goes on, and is let go here."""
    go_on = threading.Event()
    token = password()

    def supply() -> str:
        go_on.wait(LONG)
        return token

    async def main(where: str) -> None:
        try:
            await opened(f"{scheme}://{where}", authentication=AuthenticationToken(supply))
        finally:
            go_on.set()

    with (
        silent_port() as where,
        pytest.raises(ClientTimeoutError, match="the token that a function gives has not come") as caught,
    ):
        asyncio.run(main(where))
    assert where in str(caught.value) and token not in str(caught.value)


def test_an_issuer_that_gives_no_token(tmp_path: Path) -> None:
    """It is closed before the loop is, which waits for the thread that asks."""
    key = kept(tmp_path, "key.json", f'{{"client_id": "me", "client_secret": "{password()}"}}')

    async def main() -> None:
        with silent_port() as where, silent_port() as issuer:
            login = AuthenticationOauth2(f'{{"issuer_url": "http://{issuer}", "private_key": "{key}"}}')
            await opened(f"pulsar://{where}", authentication=login)

    with pytest.raises(ClientTimeoutError, match=r"no login to the broker at .* in 0.\d+ s: the token that http://"):
        asyncio.run(main())


@LOOPS
@pytest.mark.parametrize("scheme", ["pulsar", "pulsar+ssl"])
def test_closing_waits_for_what_is_being_opened(run: Run, scheme: str) -> None:
    async def main() -> None:
        with silent_port() as where:
            client = Client(f"{scheme}://{where}")
            opening = asyncio.ensure_future(client.create_producer("t"))
            await asyncio.sleep(0.05)
            await client.close()
            others = asyncio.all_tasks() - {asyncio.current_task(), opening}
            assert not others, others
            with pytest.raises((AlreadyClosedError, asyncio.CancelledError)):
                await opening

    run(main())
