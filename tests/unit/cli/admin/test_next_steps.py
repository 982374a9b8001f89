"""What ``magnetar admin`` says to do next fits what went wrong."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from magnetar.cli.admin.command import run
from magnetar.client.rest import RestAnswer, login_advice
from magnetar.security.credentials.method import NOBODY
from tests.support.certificates import Authority

LIST = ["topics", "list", "public/default"]


class Page:
    """What stands for a web page."""


@contextmanager
def broker(status: int, answer: object, context: ssl.SSLContext | None = None, /, **headers: str) -> Iterator[str]:
    """A broker that has one answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(b" <!DOCTYPE html>" if isinstance(answer, Page) else json.dumps(answer).encode())

        do_POST = do_PUT = do_GET

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that leaves the handshake
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("status", "reason", "headers", "wanted", "unwanted"),
    [
        (401, "This operation requires super-user access", {}, "permissions explain ROLE", "log in"),
        (401, "Authentication required", {"www_authenticate": "Bearer"}, "log in with --token", "permissions explain"),
        (403, "Unauthorized to validateTopicOperation", {}, "permissions explain ROLE", "log in"),
        (403, "Invalid cluster id: west", {}, "magnetar admin clusters create west --url", "permissions"),
        (403, "Cluster [b] is not in the list of allowed clusters", {}, "403 Forbidden", "follows from"),
    ],
)
def test_a_refusal_leads_to_what_helps(
    capsys: pytest.CaptureFixture[str], status: int, reason: str, headers: dict[str, str], wanted: str, unwanted: str
) -> None:
    with broker(status, {"reason": reason}, **headers) as url:
        assert run(["--admin-url", url, "topics", "set-replication-clusters", "-c", "west", "t"]) == 1
    said = capsys.readouterr().err
    assert wanted in said and unwanted not in said, said


@pytest.mark.parametrize(
    ("reason", "words", "step"),
    [
        ("Tenant does not exist", ["namespaces", "create", "acme/jobs"], "magnetar admin tenants create acme adds"),
        ("Tenant does not exist", ["tenants", "get", "a b"], "magnetar admin tenants create 'a b' adds"),
        ("Namespace does not exist", ["topics", "list", "acme/jobs"], "namespaces list acme shows"),
        (
            "Topic's namespace does not exist",
            ["namespaces", "grant-permission", "acme/jobs", "--role", "r", "--actions", "consume"],
            "magnetar admin namespaces create acme/jobs adds",
        ),
    ],
)
def test_what_is_missing_can_be_made(
    capsys: pytest.CaptureFixture[str], reason: str, words: list[str], step: str
) -> None:
    with broker(404, {"reason": reason}) as url:
        assert run(["--admin-url", url, *words]) == 1
        assert step in capsys.readouterr().err
    with broker(404, {"reason": "Topic not found"}) as url:
        assert run(["--admin-url", url, *words]) == 1
        assert "Next" not in capsys.readouterr().err


def test_a_web_page_is_no_answer(capsys: pytest.CaptureFixture[str]) -> None:
    """Its letters were listed as topics, one a line, with exit code 0."""
    with broker(200, Page()) as url:
        assert run(["--admin-url", url, *LIST]) == 1
        assert run(["--admin-url", url, "tenants", "create", "acme"]) == 1
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("the answer is a web page") == 2 and "--admin-url" in printed.err


def test_a_reason_that_is_no_permissions_is_not_explained_by_credentials() -> None:
    def refused(reason: str) -> RestAnswer:
        return RestAnswer(403, {}, json.dumps({"reason": reason}).encode())

    assert login_advice(refused("Invalid cluster id: west"), NOBODY) is None
    assert login_advice(refused("Unauthorized to do that"), NOBODY)


def test_a_certificate_that_is_not_trusted_names_the_flag_of_this_command(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The cause is wrapped once more where a connection is refused than where an answer is."""
    own = Authority(tmp_path).issue("localhost")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(own.certificate_file, own.key_file)
    with broker(200, [], context) as url:
        assert run(["--admin-url", url.replace("http:", "https:"), *LIST]) == 1
    said = capsys.readouterr().err
    assert "is not trusted" in said and "--tls-trust-cert-path" in said
    assert "tlsTrustCertsFilePath" not in said and "is the broker running" not in said


def test_flags_of_the_connection_are_taken_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    with broker(200, ["persistent://public/default/t"]) as url:
        for words in ([*LIST, "--admin-url", url], [*LIST, f"--admin-url={url}", "--request-timeout", "9"],
                      ["--admin-url", "http://127.0.0.1:1", *LIST, "--admin-url", url]):  # fmt: skip
            assert run(words) == 0, capsys.readouterr().err
            assert "persistent://public/default/t" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "did"),
    [("offload-status", "offloading"), ("compaction-status", "compaction")],
    ids=["offload", "compaction"],
)
def test_what_came_to_nothing_is_an_error_and_no_traceback(
    command: str, did: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with broker(200, {"status": "ERROR", "lastError": "the directory is gone"}) as url:
        assert run(["--admin-url", url, "topics", command, "orders"]) == 1
    said = capsys.readouterr()
    assert (said.out, said.err) == (
        "",
        f"magnetar admin topics {command}: {did} ended with an error: the directory is gone\n",
    )
