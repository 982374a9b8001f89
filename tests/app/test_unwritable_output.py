"""Output that cannot be written is said in one line, whatever prints it, and a closed pipe ends a command quietly."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_COMMANDS = (["--help"], ["--version"], ["completion", "bash"], ["pipeline", "--help"], ["admin", "--help"], ["config"])
_MAIN = "from magnetar.app.main import main; main()"


@pytest.mark.parametrize("words", _COMMANDS, ids=" ".join)
def test_a_full_device_is_said_in_one_line(words: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-c", _MAIN, *words], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert done.stderr == b"magnetar: the output cannot be written: No space left on device\n"


@pytest.mark.parametrize("words", [["--help"], ["completion", "bash"]], ids=" ".join)
def test_a_closed_pipe_ends_a_command_quietly(words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([sys.executable, "-c", _MAIN, *words], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert done.returncode in (1, 141) and done.stderr == b""
