"""Command lines in another order, or of another program, are answered with the line that was meant."""

from __future__ import annotations

import subprocess
import sys

import pytest

from magnetar.app.misplaced_words import misplaced

COMMANDS = {"standalone", "produce", "admin", "sql"}
GROUPS = {"topics", "tenants", "persistent"}


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["topics", "list", "public/default"], "magnetar admin topics list public/default"),
        (["tenants"], "magnetar admin tenants"),
        (["start"], "magnetar standalone"),
        (["version"], "magnetar --version"),
        (["status", "-v"], "magnetar doctor --only broker"),
        (["--data", "a b", "standalone"], "magnetar standalone --data 'a b'"),
        (["--conf=x", "standalone", "--set", "a=b"], "magnetar standalone --conf=x --set a=b"),
    ],
)
def test_the_line_that_was_meant(words: list[str], meant: str) -> None:
    said = misplaced(words, COMMANDS, GROUPS)
    assert said is not None and said.endswith(f": {meant}")


@pytest.mark.parametrize(
    "words", [[], ["produce", "topics"], ["--help", "sql"], ["--version"], ["nothing"], ["--data"]]
)
def test_other_lines_are_left_alone(words: list[str]) -> None:
    assert misplaced(words, COMMANDS, GROUPS) is None


def test_the_module_is_the_command() -> None:
    def ran(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "magnetar", *words], capture_output=True, text=True, check=False, timeout=120
        )

    assert ran("--version").stdout.startswith("magnetar ")
    wrong = ran("topics", "list")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "it is a group of magnetar admin: magnetar admin topics list" in wrong.stderr
    assert "No such command 'topic'" in ran("topic").stderr
