"""Names that a broker knows are offered, and what is wrong with a broker never reaches the user's shell."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from magnetar.cli.completion import broker_names
from magnetar.cli.completion.candidates import candidates
from magnetar.cli.completion.command import app

P = "persistent://public/default/"
ANSWERS = {
    "tenants": ["acme", "public"],
    "namespaces/acme": ["acme/jobs", "acme/orders"],
    "namespaces/public": ["public/default"],
    "persistent/public/default": [f"{P}orders", f"{P}jobs-partition-0", f"{P}jobs-partition-1", f"{P}a-partition-0"],
    "persistent/public/default/partitioned": [f"{P}jobs"],
    "persistent/acme/jobs": ["persistent://acme/jobs/nightly"],
    "persistent/acme/jobs/partitioned": [],
    "persistent/public/default/orders/subscriptions": ["audit", "billing"],
    "persistent/acme/jobs/nightly/subscriptions": ["audit"],
}


@contextmanager
def broker(answers: Mapping[str, object], status: int = 200) -> Iterator[str]:
    """A REST interface with answers by paths."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = answers.get(self.path.removeprefix("/admin/v2/"))
            self.send_response(404 if found is None else status)
            self.end_headers()
            self.wfile.write(found if isinstance(found, bytes) else json.dumps(found).encode())

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(autouse=True)
def _patience(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_names, "SECONDS", 60.0)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def _context(url: str, more: str = "") -> None:
    file = Path(os.environ["XDG_CONFIG_HOME"]) / "magnetar" / "contexts.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f'current = "dev"\n[contexts.dev]\nweb_url = "{url}"\n{more}')


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("produce ", ["a-partition-0", "jobs", "orders"]),
        ("produce o", ["orders"]),
        ("produce -m x -k y o", ["orders"]),
        ("produce -m o", []),
        ("consume persistent://ac", ["persistent://acme/jobs/", "persistent://acme/orders/"]),
        ("consume acme/j", ["acme/jobs/"]),
        ("consume acme/jobs/", ["acme/jobs/nightly"]),
        ("consume persistent://acme/jobs/n", ["persistent://acme/jobs/nightly"]),
        ("consume kafka://", []),
        ("consume orders -s ", ["audit", "billing"]),
        ("consume -s ", []),
        ("consume acme/jobs/nightly --subscription-name a", ["audit"]),
        ("consume orders --sub", ["--subscription-mode", "--subscription-name", "--subscription-position"]),
        ("explain subscription orders b", ["billing"]),
        ("perf consume orders -ss ", ["audit", "billing"]),
        ("admin topics stats j", ["jobs"]),
        ("admin topics skip -n 1 orders -s b", ["billing"]),
        ("admin topics list ac", ["acme/jobs", "acme/orders"]),
        ("admin namespaces list p", ["public"]),
        ("admin tenants get ", ["acme", "public"]),
        ("permissions explain app consume --tenant a", ["acme"]),
        ("verify ", []),
    ],
)
def test_names_of_a_broker(line: str, offered: list[str]) -> None:
    with broker(ANSWERS) as url:
        _context(url)
        assert [one for one in candidates(line.split(" ")) if one != "--subscription-type"] == offered


def test_bash_gets_what_follows_a_colon() -> None:
    """It parts words there, and replaces the last part."""
    with broker(ANSWERS) as url:
        _context(url)
        words = ["words", "--line", "--breaks", " :=", "--", "magnetar consume persistent://acme/j"]
        assert CliRunner().invoke(app, words).output == "//acme/jobs/\n"


def test_the_broker_is_the_one_that_the_line_names() -> None:
    with broker(ANSWERS) as url:
        assert candidates(["admin", "--admin-url", url, "tenants", "get", ""]) == ["acme", "public"]
        assert candidates(["explain", "subscription", "--admin-url", url, "orders", "b"]) == ["billing"]
        _context(url)
        assert candidates(["produce", "--url", "pulsar://elsewhere:6650", ""]) == []


def test_a_name_from_which_a_shell_reads_more_is_not_offered() -> None:
    """Who may create a topic would have a command in the line of who completes it."""
    names = ["$(reboot)", "a b", "a;b", "`b`", "*", "-m", "a'b", "x\ny", "~root", "fine", "größe", "a-b=1"]
    answers = {"persistent/public/default": [P + name for name in names], "persistent/public/default/partitioned": []}
    with broker(answers) as url:
        _context(url)
        assert candidates(["produce", ""]) == ["a-b=1", "fine", "größe"]


@pytest.mark.parametrize(
    ("answers", "status"), [(ANSWERS, 401), ({}, 200), ({"tenants": b"<html>"}, 200), ({"tenants": {"a": [1]}}, 200)]
)
def test_a_broker_that_refuses_has_no_names(answers: Mapping[str, object], status: int) -> None:
    with broker(answers, status) as url:
        _context(url)
        assert candidates(["admin", "tenants", "get", "a"]) == []


def test_a_broker_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_names, "SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        _context(f"http://127.0.0.1:{silent.getsockname()[1]}")
        assert candidates(["produce", ""]) == []
    assert candidates(["produce", ""]) == []


def test_no_program_is_run_for_a_key_press(tmp_path: Path) -> None:
    """It might ask the user something, or take its time."""
    with broker(ANSWERS) as url:
        _context(url, f'token = "command:touch {tmp_path}/ran"\n')
        assert candidates(["produce", ""]) == []
    assert not (tmp_path / "ran").exists()
