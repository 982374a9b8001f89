"""A command that is called without its arguments has done nothing: it shows its help and fails."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from magnetar.app import main


@pytest.mark.parametrize("command", [*(one for one in main.PASSED_ON if one != "doctor"), "rescue", ""])
def test_a_command_alone_shows_its_help_and_fails(command: str) -> None:
    """``magnetar backup $NAME`` was a success where the variable was not set, and no backup was made."""
    done = CliRunner().invoke(main.app, [command] if command else [])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: ")
    assert "--help" in done.stderr
    assert done.stderr == CliRunner().invoke(main.app, [*([command] if command else []), "--help"]).stdout
