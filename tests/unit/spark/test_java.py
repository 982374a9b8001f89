"""A missing or wrong Java is reported in one sentence, with the fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from magnetar.model.errors import NotFoundError
from magnetar.spark.java.installation import check_java, explain_failed_start
from magnetar.spark.session import local_session


def test_a_missing_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(NotFoundError, match=r"there is none: install Java 17 .*openjdk-17-jre-headless"):
        local_session("x")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(NotFoundError, match=f"JAVA_HOME is {tmp_path}, where there is no bin/java: install"):
        check_java()


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("echo 'openjdk version \"17.0.9\" 2023-10-17' >&2", None),
        ("echo 'openjdk version \"21\" 2023-09-19' >&2", None),
        ("echo 'java version \"1.8.0_392\"' >&2", "is Java 8: install Java 17"),
        ("echo 'openjdk version \"11.0.21\" 2023-10-17' >&2", "is Java 11: install Java 17"),
        ("echo what", "does not say its version: install"),
    ],
)
def test_a_java_of_another_version_is_named(
    said: str, why: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\n{said}\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    check_java()
    found = explain_failed_start()
    assert (found is None) == (why is None)
    assert why is None or why in (found or "")
    java.unlink()
    assert "does not run" in (explain_failed_start() or "")
