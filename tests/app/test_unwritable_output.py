"""Output that cannot be written is said in one line, whatever prints it, and a closed pipe ends a command quietly."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.standalone import ports

_COMMANDS = (
    *(["--help"], ["--version"], ["completion", "bash"], ["pipeline", "--help"], ["admin", "--help"], ["config"]),
    ["tokens", "create-secret-key"],
)
_SCRIPT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["scripts"]["magnetar"]
"""The function that the command ``magnetar`` calls."""
_MAIN = "from magnetar.app.main import main; main()"


@pytest.mark.parametrize("words", _COMMANDS, ids=" ".join)
def test_a_full_device_is_said_in_one_line(words: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-c", _MAIN, *words], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert done.stderr == b"magnetar: the output cannot be written: No space left on device\n"


_PRINTS = """
import asyncio, sys
import typer
from magnetar.contexts.broker_connection import ConnectionFlags
from magnetar.cli.messages.session import run
from magnetar.runtime.command_line import written

async def work(client):
    print("x" * 20_000, flush=True)

def connected():
    try:
        run(ConnectionFlags(), work, lambda: print("the end", flush=True))
    except typer.Exit as ending:
        sys.exit(ending.exit_code)

written(connected)
"""


def test_a_full_device_is_said_alike_by_commands_that_are_connected() -> None:
    """`magnetar produce`, `consume`, `read` and `perf` said an error number."""
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-c", _PRINTS], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert done.stderr == b"magnetar: the output cannot be written: No space left on device\n"


def test_ctrl_c_before_a_command_is_loaded_is_no_traceback() -> None:
    program = "import signal; from magnetar.runtime.command_line import written; "
    program += "written(lambda: signal.raise_signal(signal.SIGINT))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (130, b"")


@pytest.mark.parametrize("module", ["magnetar.app.main", "typer", "magnetar.cli.tokens.command"])
def test_ctrl_c_while_the_program_itself_is_loaded_is_no_traceback(module: str) -> None:
    """What takes longest to load is what a Ctrl-C at once meets."""
    program = f"""
import signal, sys
class Interrupted:
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupted())
from {_SCRIPT.partition(":")[0]} import {_SCRIPT.partition(":")[2]}
main()
"""
    words = [sys.executable, "-c", program, "tokens", "--help"]
    done = subprocess.run(words, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (130, b"")


@pytest.mark.parametrize("program", [*((_MAIN, *words) for words in _COMMANDS), (_PRINTS, "connected")])
def test_a_closed_pipe_ends_a_command_as_a_shell_expects(program: tuple[str, ...]) -> None:
    """Whichever code writes when it is noticed: 1 and 255 are said of what failed, and ``| head`` is no failure."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([sys.executable, "-c", *program], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_what_an_encoding_lacks_is_printed_as_its_number(encoding: str) -> None:
    program = "from magnetar.runtime.command_line import written; written(lambda: print('a → b'))"
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"a \\u2192 b\n", b"")


@pytest.mark.parametrize("output", ["a full device", "a closed pipe"])
def test_a_broker_serves_without_its_output(tmp_path: Path, output: str) -> None:
    """Where it listens is in the log then: a full disk that takes its output must not keep it from starting."""
    if output == "a full device":
        writing = os.open("/dev/full", os.O_WRONLY)
    else:
        reading, writing = os.pipe()
        os.close(reading)
    # the first of them makes a notice, which is printed, too
    settings = ("numIOThreads=3", "brokerServicePort=0", "webServicePort=0", "bindAddress=127.0.0.1")
    command = ["standalone", "--data", str(tmp_path / "data"), *(part for one in settings for part in ("--set", one))]
    process = subprocess.Popen(
        [sys.executable, "-c", _MAIN, *command], stdout=writing, stderr=subprocess.PIPE, text=True
    )
    os.close(writing)
    try:
        assert process.stderr is not None
        lines: list[str] = []
        while not lines or (lines[-1] and "magnetar is ready" not in lines[-1]):
            lines.append(process.stderr.readline())
        ports(lines[-1])
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=30)
        assert process.returncode == 0 and "stopping" in rest, rest
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("words", [[], ["--json"]], ids=["plain", "json"])
def test_nothing_is_consumed_where_nobody_will_see_it(words: list[str]) -> None:
    """With standard output closed, messages went to /dev/null and were acknowledged."""
    typed = ["consume", "t", "-s", "s", "--url", "pulsar://127.0.0.1:1", *words]
    script = f'exec "{sys.executable}" -c "{_MAIN}" {" ".join(typed)} >&-'
    done = subprocess.run(["/bin/sh", "-c", script], stderr=subprocess.PIPE, text=True, check=False, timeout=120)
    assert done.returncode == 2
    assert done.stderr.startswith("magnetar: standard output is closed (>&-): messages would be acknowledged and never")
