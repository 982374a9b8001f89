"""``magnetar backup NAME`` waits for a broker that goes away meanwhile."""

from __future__ import annotations

import json
import signal
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from typer.testing import CliRunner

from magnetar.cli.backup.broker_backup import back_up_broker
from magnetar.cli.backup.command import app as backup
from magnetar.cli.permissions.command import app as permissions
from magnetar.contexts.broker_connection import ConnectionFlags
from magnetar.model.errors import PersistenceError


class _OneAnswer(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.dumps({"name": "monday", "status": "RUNNING", "taken": 1, "bytes": 0, "totalBytes": 9}).encode()
        assert isinstance(self.server, HTTPServer)
        self.server.socket.close()
        self.send_response(202)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def test_a_broker_that_goes_away_says_what_may_be_there_and_what_next() -> None:
    """It said "does not answer: Connection refused" and nothing of the backup."""
    server = HTTPServer(("127.0.0.1", 0), _OneAnswer)
    url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.handle_request)
    thread.start()
    with pytest.raises(PersistenceError) as refused:
        back_up_broker(ConnectionFlags(web_url=url), "monday")
    thread.join()
    said = str(refused.value)
    assert said.startswith(f"{url} does not answer: ")
    assert "it was writing backup monday: if that is whole there is a manifest.json in it" in said
    assert said.endswith("if not the same command begins it again")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_it_waits_says_what_goes_on(monkeypatch: pytest.MonkeyPatch, number: signal.Signals) -> None:
    """It ended with 1, as after a failure."""
    server = HTTPServer(("127.0.0.1", 0), _OneAnswer)
    thread = threading.Thread(target=server.handle_request)
    thread.start()
    monkeypatch.setattr("time.sleep", lambda seconds: signal.raise_signal(number))
    done = CliRunner().invoke(backup, ["monday", "--admin-url", f"http://127.0.0.1:{server.server_port}"])
    thread.join()
    said = "magnetar: interrupted; the broker goes on writing backup monday; GET /admin/v2/brokers/backup says how far"
    assert (done.exit_code, done.stderr) == (130, f"{said} it is\n")


def test_a_broker_that_is_away_has_a_next_step() -> None:
    for app, words in ((backup, ["monday"]), (permissions, ["explain", "bob", "produce", "t"])):
        result = CliRunner().invoke(app, [*words, "--admin-url", "http://127.0.0.1:1"])
        assert result.exit_code == 1
        said, step = result.stderr.splitlines()
        assert said == "magnetar: http://127.0.0.1:1 does not answer: Connection refused"
        assert step.startswith("is the broker running? Another address: --admin-url, or magnetar contexts")
        assert ("magnetar backup --data DIRECTORY TO" in step) == (app is backup)
