"""What REST's answers to a lookup mean: refusals by their codes, answers that make no sense."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from magnetar.client.address import Address, ServiceUrl
from magnetar.client.aio.client import Client
from magnetar.client.errors import ClientError, ClientTimeoutError, RefusedError
from magnetar.model.errors import InvalidValueError, ServerError


class _Answer(BaseHTTPRequestHandler):
    """Answers every question in the same way."""

    status, body, login = 200, b"{}", False
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(self.status)
        if self.login:
            self.send_header("WWW-Authenticate", "Bearer")
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None:
        """Be quiet."""


@pytest.fixture
def door() -> Iterator[tuple[str, type[_Answer]]]:
    handler = type("Handler", (_Answer,), {"asked": []})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", handler
        finally:
            server.shutdown()
            thread.join()


def ask(url: str) -> Exception:
    """The last refusal, also of those that are asked again until the time is over: as much as one answer needs."""

    async def main() -> Exception:
        async with Client(url, operation_timeout_seconds=seconds) as client:
            with pytest.raises(ClientError) as raised:
                await client.create_producer("t")
            return raised.value

    seconds = 0.05
    while isinstance(found := asyncio.run(main()), ClientTimeoutError) and seconds < 60:
        seconds *= 4
    return found


@pytest.mark.parametrize(
    ("status", "login", "code"),
    [
        (401, True, ServerError.AuthenticationError),
        (401, False, ServerError.AuthorizationError),
        (403, False, ServerError.AuthorizationError),
        (404, False, ServerError.TopicNotFound),
        (412, False, ServerError.InvalidTopicName),
        (429, False, ServerError.TooManyRequests),
        (500, False, ServerError.UnknownError),
        (503, False, ServerError.ServiceNotReady),
    ],
)
def test_a_refusal_is_that_of_the_binary_protocol(
    door: tuple[str, type[_Answer]], status: int, login: bool, code: ServerError
) -> None:
    url, handler = door
    handler.status, handler.login, handler.body = status, login, b'{"reason": "no way"}'
    error = ask(url)
    assert isinstance(error, RefusedError) and error.code is code
    assert "no way" in str(error) and url in str(error)
    path = "/admin/v2/persistent/public/default/t/partitions?checkAllowAutoCreation=true"
    assert set(handler.asked) == {path}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<html>", "answered with something else than JSON"),
        (b"[]", "without a number of partitions"),
        (b'{"partitions": "x"}', "without a number of partitions"),
        (b'{"partitions": 0}', "named no pulsar:// address"),
    ],
)
def test_an_answer_that_makes_no_sense(door: tuple[str, type[_Answer]], body: bytes, said: str) -> None:
    url, handler = door
    handler.body = body
    assert said in str(ask(url))


def test_what_a_service_url_says() -> None:
    assert ServiceUrl.parse("https://a,b:1/") == ((Address("a", 8443, True), Address("b", 1, True)), True, True)
    assert ServiceUrl.parse("http://[::1]") == ((Address("::1", 8080),), False, True)
    assert ServiceUrl.parse("pulsar://a:1,b") == ((Address("a", 1), Address("b", 6650)), False, False)
    with pytest.raises(InvalidValueError, match="https://host:8443 for lookups by REST"):
        ServiceUrl.parse("ftp://a")


def test_no_login_is_named_also_where_no_challenge_fits(door: tuple[str, type[_Answer]]) -> None:
    """A broker whose only method is TLS has no challenge for HTTP: the words of 401 say that it knows nobody."""
    url, handler = door
    handler.status, handler.body = 401, b'{"reason": "Authentication required"}'
    found = ask(url)
    assert isinstance(found, RefusedError) and found.code is ServerError.AuthenticationError
    assert "shows no credentials: give authentication=" in str(found)
