"""The explanation of a failed pipeline has cause, place and next step, and neither traces nor secrets."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException

from magnetar.model.errors import InvalidValueError
from magnetar.pipelines.declaration.functions import called
from magnetar.pipelines.declaration.parser import parse
from magnetar.pipelines.declaration.secrets import resolve
from magnetar.pipelines.execution import run as module
from magnetar.pipelines.execution.frames import short
from magnetar.pipelines.execution.progress import ProgressView
from magnetar.pipelines.execution.run import Stop, cause_of, explanation
from magnetar.spark.durable_files import write_whole
from tests.unit.pipelines.example import TEXT

TRACE = """[STREAM_FAILED] Query ended: Job aborted: Traceback (most recent call last):
  File "x.py", line 1, in read
    raise DataLossError("gone")
magnetar.client.bulk.data_loss.DataLossError: t: 1:2:0 to 1:9:0 is gone; set failOnDataLoss=false to go on without it

\tat org.apache.spark.Task(Task.scala)
"""


def test_the_innermost_cause_is_shown() -> None:
    assert cause_of(InvalidValueError("this")) == "this"
    assert cause_of(RuntimeError(TRACE)).startswith("t: 1:2:0 to 1:9:0 is gone")
    own = TRACE.replace("magnetar.client.bulk.data_loss.DataLossError: t: 1:2:0", "ValueError: row 3")
    own = own.replace('  File "x.py"', '  File "/a/site-packages/y.py", line 7, in call\n  File "/home/me/x.py"')
    assert cause_of(RuntimeError(own)).startswith("ValueError: row 3 to 1:9:0 is gone")
    assert cause_of(RuntimeError(own)).endswith(" (/home/me/x.py:1)")
    assert cause_of(RuntimeError("no worker\n=== Streaming Query ===\nIdentifier: x")) == "RuntimeError: no worker"
    assert short(RuntimeError("[A] `m` is not there;\n'Project ['m]\n")) == "[A] `m` is not there"


def test_a_failure_is_one_paragraph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = parse(TEXT, str(tmp_path / "f.yaml"))
    monkeypatch.setenv("PIPELINE_PASSWORD", "swordfish")
    resolve("${env:PIPELINE_PASSWORD}")
    said = explanation(pipeline, RuntimeError("swordfish was refused"))
    assert "has failed at its start: RuntimeError: *** was refused. Nothing is lost" in said
    assert f"magnetar pipeline run {tmp_path}/f.yaml" in said
    write_whole(tmp_path / "work/offsets/3", "v1\n{}")
    assert "in micro-batch 3" in explanation(pipeline, None)
    write_whole(tmp_path / "work/commits/3", "v1\n{}")
    assert "after micro-batch 3" in explanation(pipeline, None)


def test_the_first_signal_asks_and_the_second_insists() -> None:
    """The first signal requests a stop, the second interrupts; afterwards the handlers are as before."""
    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    for number in numbers:
        stop = Stop()
        with stop.listening():
            os.kill(os.getpid(), number)
            assert stop.asked.is_set()
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
    assert [signal.getsignal(number) for number in numbers] == before


def test_a_run_that_nohup_started_goes_on_when_the_terminal_closes() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        stop = Stop()
        with stop.listening():
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stop.asked.is_set()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (InvalidValueError("3 rows do not meet 'known'"), ["the last micro-batch has failed", "do not meet 'known'"]),
        (RuntimeError("a worker has ended"), []),
        (None, []),
    ],
)
def test_a_failure_beside_a_signal_is_reported(
    failure: Exception | None, said: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query that a signal ended has not failed, but its error is shown."""
    pipeline, stop, lines = parse(TEXT, str(tmp_path / "f.yaml")), Stop(), list[str]()
    batches, query = SimpleNamespace(failure=failure), SimpleNamespace(isActive=False, exception=lambda: failure)

    def start(*_: Any) -> Any:
        stop.asked.set()
        return query

    for name, value in {"prepare": None, "register": None, "analyse": None, "BatchRun": batches}.items():
        monkeypatch.setattr(module, name, lambda *_, value=value: value)
    monkeypatch.setattr(module, "_start", start)
    monkeypatch.setattr(ProgressView, "say", lambda _, line: lines.append(line))
    spark: Any = None
    assert module.run(spark, pipeline, ProgressView(pipeline), stop).stopped
    assert [part in " ".join(lines) for part in said] == [True] * len(said) and bool(lines) == bool(said)


STEPS = """
def broken(frame, weight):
    return frame["nothing"] * weight
"""


def test_a_step_that_raises_is_named_with_the_line_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "raising_steps.py").write_text(STEPS)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InvalidValueError) as caught:
        called("raising_steps:broken", [{}], {"weight": 2})
    assert str(caught.value) == f"raising_steps:broken has raised KeyError: 'nothing' ({tmp_path}/raising_steps.py:3)"
    # Errors of ours and of Spark say themselves what is wrong, and where.
    with pytest.raises(PySparkException, match="ours"):
        called("tests.unit.pipelines.test_errors:raising", [PySparkException("ours")], {})


def raising(error: Exception) -> None:
    raise error
