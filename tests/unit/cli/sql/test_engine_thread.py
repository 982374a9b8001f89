"""A command that ends while the engine of a query is at work ends at once, and does not wait or abort."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import atexit, sys, threading
from magnetar.cli.sql import command
from magnetar.cli.sql.engine_thread import engine_at_work, start_engine
busy, going = threading.Event(), threading.Event()
atexit.register(print, "the interpreter ended")
if {at_work}:
    start_engine(lambda: (going.set(), busy.wait()))
    going.wait()
assert engine_at_work() is {at_work}
print("rows")
command.leave_with(7)
"""


@pytest.mark.parametrize("at_work", [True, False])
def test_the_interpreter_does_not_end_under_a_working_engine(at_work: bool) -> None:
    """An engine in native code aborted the process then: exit code 134 instead of 255, at times."""
    command = [sys.executable, "-c", PROGRAM.format(at_work=at_work)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines()[0] == "rows"
    assert ("the interpreter ended" in done.stdout) is not at_work
    if at_work:
        assert done.returncode == 7
    else:
        assert "Exit" in done.stderr  # typer's, which its runner turns into the code
