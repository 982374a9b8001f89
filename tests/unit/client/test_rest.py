"""The client of REST: what it sends goes to the broker only, and what comes back is bounded."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from typer.testing import CliRunner

from magnetar.cli.doctor.command import app as doctor
from magnetar.cli.explain.command import app as explain
from magnetar.client import rest
from magnetar.client.rest import Rest
from magnetar.model.errors import NotAvailableError

ANSWERS = {
    "/page": b"<html>a page for people</html>",
    "/deep": b"[" * 100_000 + b"]" * 100_000,
    "/digits": b"1" + b"0" * 5000,
}


class Answers(BaseHTTPRequestHandler):
    """Answers as the path says."""

    def do_GET(self) -> None:
        if self.path == "/no-http":
            self.wfile.write(b"HTTP/1.1 what\r\n\r\n")
            return
        body = ANSWERS.get(self.path, b"[" + b" " * 5000 + b"]")
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


@pytest.mark.parametrize("path", ANSWERS)
def test_what_is_no_json_is_named(url: str, path: str) -> None:
    """A server of another kind may have the port; its answer ended commands in a traceback, or in words of JSON."""
    with pytest.raises(NotAvailableError, match=f"{url} answers GET {path} with what is no JSON; is it the HTTP port"):
        Rest(url).ask("GET", path)


@pytest.mark.parametrize("arguments", [[], ["--key", "k"]])
def test_an_answer_that_is_no_explanation_is_named(url: str, arguments: list[str]) -> None:
    done = CliRunner().invoke(explain, ["subscription", "orders", "s", "--admin-url", url, *arguments])
    assert done.exit_code == 1 and "answers something that is no explanation" in done.stderr, done.output


@pytest.mark.parametrize(
    ("arguments", "said"), [(["o", ""], "SUB is empty"), (["o", "s", "--key", "a", "--hash", "1"], "either")]
)
def test_what_cannot_be_explained_is_said(url: str, arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(explain, ["subscription", *arguments, "--admin-url", url])
    assert done.exit_code == 1 and said in done.stderr, done.output


def test_a_server_of_another_kind_is_no_broker_that_is_ready(url: str) -> None:
    done = CliRunner().invoke(doctor, ["--only", "broker", "--admin-url", url])
    assert done.exit_code == 1 and "not as a broker does" in done.stdout, done.output


def test_what_is_no_http_is_named(url: str) -> None:
    with pytest.raises(NotAvailableError, match="does not answer as HTTP does: BadStatusLine"):
        Rest(url).ask("GET", "/no-http")


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (
            b"<!DOCTYPE HTML>\n<html><head>\n<TITLE lang='en'>\n 404 &lt;Not\n Found&gt;</title></head>",
            "'404 <Not Found>'",
        ),
        (b"<html><body>no title</body></html>", "'HTTP 502'"),
        (b"<title>" + b"x" * 5000, f"'{'x' * 100}'"),
    ],
)
def test_a_page_of_html_is_named_and_not_shown(page: bytes, said: str) -> None:
    """Port 8080 is popular: commands printed the whole error page of whatever else listens there."""
    answer = rest.RestAnswer(502, {"content-type": "Text/HTML; charset=utf-8"}, page)
    assert answer.reason == f"a page of HTML, {said}; is that the HTTP port of a broker?"


def test_what_is_no_page_is_shown_as_it_is() -> None:
    assert rest.RestAnswer(500, {"content-type": "text/plain"}, b"<title>x</title>").reason == "<title>x</title>"
    assert rest.RestAnswer(500, {}, b'{"reason": "no"}').reason == "no"
