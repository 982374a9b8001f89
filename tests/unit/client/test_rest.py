"""The client of REST: what it sends goes to the broker only, and what comes back is bounded."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from magnetar.client import rest
from magnetar.client.rest import Rest
from magnetar.model.errors import NotAvailableError


class Answers(BaseHTTPRequestHandler):
    """Answers as the path says."""

    def do_GET(self) -> None:
        if self.path == "/no-http":
            self.wfile.write(b"HTTP/1.1 what\r\n\r\n")
            return
        body = b"[" + b" " * 5000 + b"]"
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def url() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_proxy_of_the_environment_is_not_asked(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would read the credentials."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert Rest(url).ask("GET", "/x") == []


def test_a_long_answer_is_not_read(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "ANSWER_MAX", 4096)
    with pytest.raises(NotAvailableError, match="with more than 4096 bytes"):
        Rest(url).ask("GET", "/x")


def test_what_is_no_http_is_named(url: str) -> None:
    with pytest.raises(NotAvailableError, match="does not answer as HTTP does: BadStatusLine"):
        Rest(url).ask("GET", "/no-http")
