"""`magnetar perf` against a broker: every message is counted, and what is sent is what consumers and readers get."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from magnetar.cli.perf.command import app
from tests.support.live_broker import LiveBroker, live_broker


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    with live_broker(tmp_path_factory.mktemp("perf"), transactionCoordinatorEnabled="true") as started:
        yield started


def run(broker: LiveBroker, *arguments: str) -> str:
    done = CliRunner().invoke(app, [*arguments, "-u", broker.url])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_there_and_back(broker: LiveBroker, tmp_path: Path) -> None:
    """Several topics, producers and threads; by subscription and by reader; the file has a line."""
    file = tmp_path / "h.hlog"
    options = ("-r", "0", "-m", "4000", "-s", "50", "-t", "2", "-n", "2", "-threads", "2", "-z", "LZ4")
    out = run(broker, "produce", "load", *options, "-mk", "autoIncrement", "--warmup-time", "0",
              "--histogram-file", str(file))  # fmt: skip
    assert "4000 records sent" in out and out.count("DONE (reached the maximum number: 4000 of production)") == 2
    assert "HISTFAAA" in file.read_text()
    consumed = run(broker, "consume", "load", "-t", "2", "-ss", "s", "-sp", "Earliest", "-st", "Shared", "-n", "2",
                   "-m", "4000")  # fmt: skip
    assert "4000 records received" in consumed and "ack failed 0 msg" in consumed
    assert "4000 records received" in run(broker, "read", "load", "-t", "2", "-m", "earliest", "-n", "4000")


def test_transactions(broker: LiveBroker) -> None:
    run(broker, "produce", "in", "-r", "0", "-m", "30", "-s", "10")
    out = run(broker, "transaction", "--topics-c", "in", "--topics-p", "out", "-ntxn", "10", "-nmp", "3", "-nmc", "2")
    assert "10 transaction end successfully --- 0 transaction end failed" in out
    assert "20 message ack success --- 30 message send success" in out
    assert "30 records received" in run(broker, "read", "out", "-n", "30")
    txn = run(broker, "produce", "more", "-r", "0", "-m", "20", "-s", "10", "-txn", "-nmt", "5")
    assert "4 transaction end successfully" in txn and "20 records sent" in txn
    acked = run(broker, "consume", "more", "-ss", "s", "-sp", "Earliest", "-m", "20", "-txn", "-nmt", "10")
    assert "20 records received" in acked


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("produce", "t", "-v", "file"), "--encryption-key-value-file is not built"),
        (("produce", "t", "-z", "GZIP"), "is none of NONE, LZ4"),
        (("consume", "t", "-n", "2"), "Only one consumer is allowed"),
        (("read", "t", "-m", "nowhere"), "must be 'latest'"),
    ],
)
def test_what_cannot_be(arguments: tuple[str, ...], said: str) -> None:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == 1 and said in done.stderr and not re.search("Traceback", done.output)
