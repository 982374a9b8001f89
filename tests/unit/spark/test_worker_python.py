"""Workers run the driver's Python, or one that has what they need, or the error of the session says what to set."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from magnetar.model.errors import InvalidValueError
from magnetar.spark import worker_python
from magnetar.spark.interpreter import of_session
from magnetar.spark.worker_python import settle_workers


def script(directory: Path, text: str) -> str:
    path = directory / "python-of-another"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_without_a_word_workers_run_this_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    context = SimpleNamespace(master="local[2]", pythonExec="python3")
    settle_workers(context)
    assert context.pythonExec == of_session()
    # What machines of a cluster have is their affair.
    context = SimpleNamespace(master="spark://host:7077", pythonExec="python3")
    settle_workers(context)
    assert context.pythonExec == "python3"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("echo 'ModuleNotFoundError: no magnetar' >&2; exit 1", "has not what is needed here: ModuleNotFoundError"),
        ("echo 2.7", "which is Python 2.7, and the driver is"),
    ],
)
def test_a_python_without_what_is_needed_is_refused(
    text: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = script(tmp_path, text)
    monkeypatch.setenv("PYSPARK_PYTHON", named)
    with pytest.raises(InvalidValueError) as caught:
        settle_workers(SimpleNamespace(master="local[*]", pythonExec=named))
    assert told in str(caught.value) and f"set PYSPARK_PYTHON={of_session()}" in str(caught.value)


def test_another_python_with_what_is_needed_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = script(tmp_path, f'echo asked >> "$0.log"; echo {sys.version_info[0]}.{sys.version_info[1]}')
    monkeypatch.setenv("PYSPARK_PYTHON", named)
    monkeypatch.setattr(worker_python, "_good", set())
    for _ in range(2):
        context = SimpleNamespace(master="local[1]", pythonExec=named)
        settle_workers(context)
        assert context.pythonExec == named
    # It is asked once.
    assert Path(f"{named}.log").read_text() == "asked\n"
    monkeypatch.setenv("PYSPARK_PYTHON", str(tmp_path / "none"))
    with pytest.raises(InvalidValueError, match="which is not there"):
        settle_workers(SimpleNamespace(master="local[1]", pythonExec=str(tmp_path / "none")))
