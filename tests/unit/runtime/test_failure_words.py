"""Why there is no connection: the cause, and no numbers."""

from __future__ import annotations

import asyncio
import socket
import ssl

import pytest

from magnetar.runtime.connections.failure_words import why_failed
from tests.support.live_broker import free_port


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_broker_that_is_not_there(host: str) -> None:
    """It said "[Errno 111] Connect call failed", of localhost twice."""

    async def connect() -> str:
        try:
            await asyncio.open_connection(host, free_port())
        except OSError as error:
            return why_failed(error)
        raise AssertionError

    said = asyncio.run(connect())
    assert "Errno" not in said and said.startswith("Connection refused")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError("Multiple exceptions: [Errno 111] Connect call failed, [Errno 111] Connect"), "Connection refused"),
        (OSError("Multiple exceptions: [Errno 111] a, [Errno 113] b"), "Connection refused, No route to host"),
        (socket.gaierror(-2, "Name or service not known"), "Name or service not known"),
        (FileNotFoundError(2, "No such file or directory", "/x"), "[Errno 2] No such file or directory: '/x'"),
        (TimeoutError(), "TimeoutError"),
        (TimeoutError("timed out"), "timed out"),
        (ValueError("x"), "x"),
    ],
)
def test_words(error: Exception, said: str) -> None:
    assert why_failed(error) == said


def test_numbers_of_openssl_are_not_the_systems() -> None:
    assert "WRONG" in why_failed(ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER]"))
