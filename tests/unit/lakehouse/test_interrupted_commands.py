"""A command on a table that a signal ends: it says so at once, and what is left."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from magnetar.lakehouse.abandonable_work import done_or_abandoned
from magnetar.model.errors import NotFoundError

_PROGRAM = """
import ctypes, sys
from magnetar.lakehouse.lake import Lake

def busy(*_, **__):
    print("began", flush=True)
    ctypes.CDLL(None).sleep(600)  # as a library does that hears no signal

Lake.history = Lake.verify = Lake.compact = Lake.vacuum = busy
from magnetar.__main__ import main
main()
"""
_SAID = {
    "history": "nothing was changed",
    "verify": "nothing was changed",
    "compact": "the table is whole, with its files as they were or put together; what no version needs of this attempt "
    "goes with: magnetar lake vacuum 't t'",
    "vacuum": "the table is whole; the same command removes the other files",
}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("command", list(_SAID))
def test_a_signal_ends_it_with_a_line(number: signal.Signals, command: str, tmp_path: Path) -> None:
    """SIGTERM and SIGHUP ended it without a word, and Ctrl-C when the library had come to its end."""
    (tmp_path / "t t").mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, "lake", command, "t t", "--kind", "parquet"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as run:  # fmt: skip
        assert run.stdout is not None and run.stdout.readline() == "began\n"
        run.send_signal(number)
        said, error = run.communicate()
    assert (run.returncode, said, error) == (130, "", f"magnetar: interrupted; {_SAID[command]}\n")


def test_what_the_work_raises_is_raised() -> None:
    def refuse() -> int:
        raise NotFoundError("there is none")

    with pytest.raises(NotFoundError, match="there is none"):
        done_or_abandoned(refuse, "")
    assert done_or_abandoned(lambda: 7, "") == 7
