"""A file that a flag names and that cannot be read: the flag, the file and why, before anything is connected."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from magnetar.cli.messages.consume.command import app as consume
from magnetar.cli.messages.produce.command import app as produce
from magnetar.cli.messages.read.command import app as read


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-f", "/not-there"], "--files: '/not-there' cannot be read: No such file or directory; commas stand between"),
        (["-f", "pyproject.toml, b"], "--files: ' b' cannot be read: No such file or directory"),
        (["-f", "/"], "--files: '/' cannot be read: Is a directory"),
        (["-f", ""], "--files names no file: is a variable not set, or a comma too many?"),
        (
            ["-m", "x", "-kvkf", "/not-there", "-kvet", "inline"],
            "--key-value-key-file: '/not-there' cannot be read: No",
        ),
        (["-m", "x", "-kvkf", "", "-kvet", "inline"], "--key-value-key-file names no file"),
        (
            ["-m", "x", "-ekn", "k", "-ekv", "file:///not-there"],
            "--encryption-key-value: '/not-there' cannot be read: No",
        ),
        (["-m", "x", "-ekn", "k", "-ekv", "/k.pem"], "--encryption-key-value is file:///path or"),
    ],
)
def test_produce_names_the_flag_and_the_file(words: list[str], said: str) -> None:
    """It was "[Errno 2] No such file or directory", and for a key "(FileNotFoundError)" after a connection."""
    result = CliRunner().invoke(produce, ["t", *words], env={"NO_COLOR": "1"})
    assert (result.exit_code, result.stderr[: len(said) + 10]) == (2, f"magnetar: {said}"), result.stderr


@pytest.mark.parametrize("command", ["consume", "read"])
def test_a_private_key_is_missed_at_once(command: str, tmp_path: Path) -> None:
    """A consumer said nothing before the first message that was encrypted, however long that took to come."""
    app, words = (consume, ["t", "-s", "s"]) if command == "consume" else (read, ["t"])
    for name, why in ((tmp_path / "not-there.pem", "No such file or directory"), (tmp_path, "Is a directory")):
        result = CliRunner().invoke(app, [*words, "-ekv", f"file://{name}"])
        assert (result.exit_code, result.stderr) == (
            2,
            f"magnetar: --encryption-key-value: '{name}' cannot be read: {why}\n",
        )
