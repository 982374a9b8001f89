"""`magnetar perf` against a broker: every message is counted, and what is sent is what consumers and readers get."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from magnetar.aio import Client
from magnetar.cli.perf.command import app
from magnetar.cli.perf.consumer_load import ConsumerLoad
from magnetar.cli.perf.producer_load import ProducerLoad
from magnetar.cli.perf.run import Load
from magnetar.cli.perf.transaction_load import TransactionLoad
from magnetar.client.rest import Rest
from tests.support.live_broker import HOST, LiveBroker, free_port, live_broker


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


def test_as_many_messages_as_asked_are_sent_by_threads_together(broker: LiveBroker) -> None:
    """Also where they cannot be divided, and where there are fewer than threads: those went on for ever."""
    for flags in ((), ("-txn", "-nmt", "2")):
        assert "10 records sent" in run(broker, "produce", "ten", "-r", "0", "-m", "10", "-threads", "3", *flags)
        assert "1 records sent" in run(broker, "produce", "one", "-r", "0", "-m", "1", "-threads", "2", *flags)


def test_what_is_counted_of_transactions_is_committed(tmp_path: Path) -> None:
    """The last one of each consumer was left open, and its messages came again."""
    port = free_port()
    with live_broker(tmp_path, transactionCoordinatorEnabled="true", webServicePort=port) as broker:
        run(broker, "produce", "last", "-r", "0", "-m", "20", "-s", "10", "-db")
        consumed = run(broker, "consume", "last", "-ss", "s", "-sp", "Earliest", "-st", "Shared", "-n", "2", "-q", "3",
                       "-m", "11", "-txn", "-nmt", "4")  # fmt: skip
        stats = Rest(f"http://{HOST}:{port}").ask("GET", "/admin/v2/persistent/public/default/last/stats")
    assert "11 records received" in consumed
    assert stats["subscriptions"]["s"]["msgBacklog"] == 9


def test_transactions_end_though_one_thread_has_fetched_all_messages(broker: LiveBroker) -> None:
    run(broker, "produce", "few", "-r", "0", "-m", "30", "-s", "10")
    options = ("--topics-c", "few", "--topics-p", "made", "-ntxn", "10", "-threads", "3")
    assert "10 transaction end successfully" in run(broker, "transaction", *options)


def test_transactions_that_cannot_begin_are_an_error(tmp_path: Path) -> None:
    """It was a count of failures and an exit code of 0."""
    with live_broker(tmp_path) as without:
        done = CliRunner().invoke(app, ["transaction", "-ntxn", "3", "-u", without.url])
    assert done.exit_code == 1 and "set transactionCoordinatorEnabled=true" in done.stderr


def test_figures_that_cannot_be_written_end_the_test(broker: LiveBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, with one line that names the file; the reports stopped, and the test went on."""
    done = CliRunner().invoke(app, ["produce", "t", "--histogram-file", "/dev/full", "-u", broker.url])
    assert done.exit_code == 1 and "--histogram-file /dev/full cannot be written: No space left" in done.stderr
    monkeypatch.setattr("magnetar.cli.perf.latencies._HEADER", "")
    monkeypatch.setattr("magnetar.cli.perf.run.INTERVAL", 0.05)
    done = CliRunner().invoke(app, ["produce", "t", "--histogram-file", "/dev/full", "-u", broker.url])
    assert done.exit_code == 1 and "--histogram-file /dev/full cannot be written: No space left" in done.stderr
    assert "Aggregated latency stats" in done.stdout and "Traceback" not in done.output


Work = Sequence[Coroutine[Any, Any, None]]


def once_prepared(
    monkeypatch: pytest.MonkeyPatch, kind: type[Load], then: Callable[[Load], Coroutine[Any, Any, None]]
) -> None:
    """Have something happen between the opening of producers and consumers and their first message."""
    prepare = kind.prepare

    async def prepared(self: Load, clients: Sequence[Client]) -> Work:
        work = await prepare(self, clients)
        await then(self)
        return work

    monkeypatch.setattr(kind, "prepare", prepared)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (ProducerLoad, ("produce", "t")),
        (ProducerLoad, ("produce", "t", "-txn")),
        (ConsumerLoad, ("consume", "t", "-txn")),
        (ConsumerLoad, ("read", "t")),
        (TransactionLoad, ("transaction",)),
    ],
)
def test_a_broker_that_has_gone_is_said_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Load], arguments: tuple[str, ...]
) -> None:
    """It was an exit code of 0."""
    with live_broker(tmp_path, transactionCoordinatorEnabled="true") as broker:

        async def killed(load: Load) -> None:
            broker.end(signal.SIGKILL)
            while any(one.is_connected() for one in load.handles):  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.01)

        once_prepared(monkeypatch, kind, killed)
        done = CliRunner().invoke(app, [*arguments, "-time", "0.2", "-u", broker.url])
    assert done.exit_code == 1 and "Aggregated" in done.stdout
    assert re.search(r"\d of \d .* had no connection when the test ended", done.stderr), done.stderr


def test_a_broker_that_does_not_answer_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing waited for it for a minute, twice the time-out of an operation."""
    monkeypatch.setattr("magnetar.cli.perf.run.PATIENCE", 0.2)
    with live_broker(tmp_path) as broker:

        async def stopped(load: Load) -> None:
            broker.stop_for_now()

        once_prepared(monkeypatch, ProducerLoad, stopped)
        try:
            done = CliRunner().invoke(app, ["produce", "t", "-time", "0.2", "-u", broker.url])
        finally:
            broker.end(signal.SIGKILL)
    assert done.exit_code == 1 and "Aggregated" in done.stdout
    assert "does not answer; left after 0.2 s without waiting for it" in done.stderr


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
