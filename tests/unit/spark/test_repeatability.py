"""Tasks note that they read from a stream, and writers find the notes of their own task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkFiles, TaskContext

from magnetar.spark import repeatability


class Task:
    """A stand-in for Spark's TaskContext, with as much of it as is looked at."""

    def __init__(self, attempt: int, application: str = "app-1") -> None:
        self._attempt = attempt
        self._application = application

    def taskAttemptId(self) -> int:
        return self._attempt

    def getLocalProperty(self, key: str) -> str:
        assert key == "spark.app.id"
        return self._application


@pytest.fixture
def within(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setattr(SparkFiles, "getRootDirectory", lambda: str(tmp_path))
    monkeypatch.setattr(repeatability, "_written", {})

    def within(task: Task | None) -> None:
        monkeypatch.setattr(TaskContext, "get", lambda: task)

    return within


def test_a_task_that_reads_is_found_and_no_other(within: Any) -> None:
    within(Task(0))
    assert not repeatability.is_repeatable()
    repeatability.note_source_read()
    assert repeatability.is_repeatable()
    within(Task(1))
    assert not repeatability.is_repeatable()
    within(Task(0, "app-2"))
    assert not repeatability.is_repeatable()


def test_the_file_does_not_grow(within: Any, tmp_path: Path) -> None:
    for attempt in range(1_200):
        within(Task(attempt))
        repeatability.note_source_read()
        assert repeatability.is_repeatable()
    (file,) = tmp_path.iterdir()
    assert file.stat().st_size == 512 * 8
    within(Task(1_200 - 512))
    assert repeatability.is_repeatable()
    within(Task(1_199 - 512))
    assert not repeatability.is_repeatable()


def test_outside_a_task_nothing_is_noted(within: Any, tmp_path: Path) -> None:
    within(None)
    repeatability.note_source_read()
    assert not repeatability.is_repeatable()
    assert not list(tmp_path.iterdir())
