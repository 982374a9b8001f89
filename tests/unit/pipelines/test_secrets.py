"""Secrets are resolved late and never printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from magnetar.model.errors import InvalidValueError
from magnetar.pipelines.declaration.secrets import is_reference, problem_of, redact, resolve


def test_references_are_resolved_and_redacted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-a-file\n")
    monkeypatch.setenv("PIPELINE_TOKEN", "very-secret")
    assert resolve("a ${env:PIPELINE_TOKEN} b") == "a very-secret b"
    assert resolve(f"${{file:{tmp_path}/token}}") == "from-a-file"
    assert redact("refused: very-secret, from-a-file") == "refused: ***, ***"


def test_references_that_cannot_be_resolved_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIPELINE_TOKEN", raising=False)
    with pytest.raises(InvalidValueError, match="PIPELINE_TOKEN"):
        resolve("${env:PIPELINE_TOKEN}")
    with pytest.raises(InvalidValueError, match="/nowhere"):
        resolve("${file:/nowhere}")


def test_wrong_forms_of_references_are_named() -> None:
    assert is_reference("${env:X}") and not is_reference("x${env:X}")
    assert problem_of("${env:X} and ${file:/a}") is None
    assert "${env:NAME}" in str(problem_of("${X}"))
