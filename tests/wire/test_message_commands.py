"""`magnetar produce`, `consume` and `read` against a broker: what is printed, exit codes, the official client."""

from __future__ import annotations

import base64
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tools.servers.process import Server
from typer.testing import CliRunner

from magnetar.cli.messages.consume import command as consume
from magnetar.cli.messages.produce import command as produce
from magnetar.cli.messages.read import command as read
from magnetar.client.machines.outgoing.pending_bytes import PendingBytes
from tests.support.encrypted_entries import pair
from tests.support.interruptible import interruptible
from tests.wire.conftest import received

APPS = {"produce": produce.app, "consume": consume.app, "read": read.app}


@pytest.fixture
def run(server: Server, topic: str) -> Any:
    def called(command: str, *arguments: str) -> Any:
        return CliRunner().invoke(APPS[command], [topic, "--url", server.broker_url, *arguments])

    return called


def contents(output: str) -> list[str]:
    return re.findall(r"^publishTime:.* content:(.*)$", output, re.MULTILINE)


def test_there_and_back(run: Any) -> None:
    sent = run("produce", "-m", "a;b", "-s", ";", "-n", "2", "-k", "key", "-p", "x=1,y=2")
    assert (sent.exit_code, sent.stdout) == (0, "4 messages successfully produced\n")
    got = run("consume", "-s", "s", "-p", "Earliest", "-n", "3")
    assert got.exit_code == 0 and contents(got.stdout) == ["a", "b", "a"]
    lines = got.stdout.splitlines()
    assert lines[0] == "----- got message -----" and "key:[key], properties:[x=1, y=2], content:a" in lines[1]
    assert lines[-1] == "3 messages successfully consumed"
    rest = run("consume", "-s", "s", "-n", "1", "--hide-content")
    assert rest.stdout == "1 messages successfully consumed\n"
    seen = run("read", "-m", "earliest", "-n", "4", "--json")
    assert [json.loads(line)["content"] for line in seen.stdout.splitlines()] == ["a", "b", "a", "b"]


def test_what_the_official_client_sees(run: Any, client: Any, topic: str) -> None:
    """A key with a value, apart: the key travels in base64 (rule 10.13)."""
    consumer = client.subscribe(topic, "s")
    assert run("produce", "-m", "v", "-kvet", "separated", "-kvk", "k").exit_code == 0
    (message,) = received(consumer, 1)
    assert (message.data(), message.partition_key()) == (b"v", base64.b64encode(b"k").decode())


def test_messages_that_only_a_key_opens(run: Any, tmp_path: Path) -> None:
    """Keys by file or as data, as ``pulsar-client`` takes them (rule 6.11.2)."""
    private, public = pair()
    (tmp_path / "public.pem").write_text(public)
    key = "data:application/x-pem-file;base64," + base64.b64encode(private.encode()).decode()
    sent = run("produce", "-m", "secret", "-ekn", "k", "-ekv", f"file://{tmp_path}/public.pem")
    assert sent.exit_code == 0, sent.stderr
    assert contents(run("consume", "-s", "s", "-p", "Earliest", "-ekv", key).stdout) == ["secret"]
    assert contents(run("read", "-m", "earliest", "-ekv", key).stdout) == ["secret"]
    raw = run("consume", "-s", "raw", "-p", "Earliest", "-ca", "consume")
    assert raw.exit_code == 0 and "secret" not in raw.stdout
    for wrong in (("-ekn", "k"), ("-ekv", key), ("-ekn", "k", "-ekv", "k.pem")):
        said = run("produce", "-m", "x", *wrong)
        assert said.exit_code != 0 and "file:///" in said.stderr and key not in said.stderr, said.stderr
    assert "is none of FAIL" in run("consume", "-s", "s", "-ca", "NEVER").stderr


def test_values_by_schema(run: Any) -> None:
    """What was written with a schema is shown by it, whatever the reader knows (``-st auto_consume``)."""
    schema = '{"type":"record","name":"P","fields":[{"name":"n","type":"string"},{"name":"age","type":["null","int"]}]}'
    sent = run("produce", "-vs", f"avro:{schema}", "-m", '{"n":"x","age":null}', "-s", "")
    assert sent.exit_code == 0, sent.stderr
    assert contents(run("consume", "-s", "s", "-p", "Earliest", "-st", "auto_consume").stdout) == ["{n=x, age=NULL}"]
    line = run("read", "-m", "earliest", "-st", "auto_consume", "--json").stdout
    assert json.loads(line)["content"] == {"n": "x", "age": None}
    refused = run("read", "-m", "earliest", "-st", "other")
    assert refused.exit_code == 2 and "'bytes' or 'auto_consume'" in refused.stderr


def test_the_memory_of_messages_that_wait(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """--memory-limit is the client's: with room for one message, each waits for the receipt of the one before."""
    limits, waiting = [], []

    class Watched(PendingBytes):
        def __init__(self, limit: int = 0, *, threads: bool = False) -> None:
            limits.append(limit)
            super().__init__(limit, threads=threads)

        def release(self, size: int) -> None:
            waiting.append(self.used)
            super().release(size)

    monkeypatch.setattr("magnetar.client.aio.client.PendingBytes", Watched)
    most = []
    for given in ((), ("-ml", "1k")):
        waiting.clear()
        assert run("produce", "-m", "x" * 900, "-n", "20", *given).exit_code == 0
        most.append(max(waiting))
    assert limits == [64 << 20, 1024]
    assert most[1] < 4000 < most[0]
    for wrong in ("x", "-1", "1e9", "99999999999999999999"):
        assert run("produce", "-m", "x", "-ml", wrong).exit_code == 2, wrong


def test_failures(run: Any, topic: str) -> None:
    bad = CliRunner().invoke(produce.app, ["a/b", "-m", "x", "--url", "pulsar://127.0.0.1:1"])
    assert bad.exit_code == 255 and "Invalid topic name" in bad.stderr
    assert bad.stdout == "0 messages successfully produced\n"
    for arguments in (("produce",), ("produce", "-m", "x", "-n", "0"), ("produce", "-m", "x", "-ekn", "k"),
                      ("consume",), ("consume", "-s", "s", "-t", "Some"), ("read", "-m", "1")):  # fmt: skip
        assert run(*arguments).exit_code == 2, arguments


@pytest.mark.parametrize("before", [signal.default_int_handler, signal.SIG_IGN], ids=["terminal", "background"])
def test_ctrl_c(server: Server, topic: str, before: Any) -> None:
    """It says how many there were, and leaves the subscription to others; however the tests were started."""
    command = [sys.executable, "-m", "magnetar.app.main", "consume", topic, "-s", "s", "-n", "0", "-p", "Earliest"]
    kept = signal.signal(signal.SIGINT, before)
    try:
        with interruptible():
            process = subprocess.Popen(
                [*command, "--url", server.broker_url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
    finally:
        signal.signal(signal.SIGINT, kept)
    sent = CliRunner().invoke(produce.app, [topic, "--url", server.broker_url, "-m", "a"])
    assert sent.exit_code == 0 and process.stdout is not None
    assert process.stdout.readline() == "----- got message -----\n"
    assert process.stdout.readline().endswith("content:a\n")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (out, err, process.returncode) == ("1 messages successfully consumed\n", "", 130)
