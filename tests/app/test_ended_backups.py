"""A backup or a restore that a signal ends: it says so, and leaves things as they were."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from magnetar.storage.backup.data_directories import back_up_directory
from tests.support.real_broker import real_broker

_PROGRAM = """
import os, sys
from magnetar.storage.backup.file_copy import FileCopy

step, pending = FileCopy.step, [int(sys.argv.pop(1))]

def interrupted(copy):
    done = step(copy)
    if pending and copy._target is not None and copy._name.startswith("segment"):
        os.kill(os.getpid(), pending.pop())
    return done

FileCopy.step = interrupted
from magnetar.__main__ import main
main()
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With ``data``, whose broker has stopped, and ``saved``, a backup of it."""
    place = tmp_path_factory.mktemp("stopped")

    async def fill() -> None:
        async with real_broker(place / "data") as broker:
            producer = await (await broker.client()).producer("persistent://public/default/t")
            await producer.publish(b"kept")

    asyncio.run(fill())
    back_up_directory(str(place / "data"), str(place / "saved"))
    return place


def ended(number: int, cwd: Path, *words: str, nohup: bool = False) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _PROGRAM, str(int(number)), *words]
    return subprocess.run(
        ["nohup", *command] if nohup else command,
        cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )  # fmt: skip


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("backup", "--data", "data", "new"), "magnetar: interrupted; nothing was left at new\n"),
        (("restore", "saved", "--data", "new"), "magnetar: interrupted; new is as it was\n"),
    ],
    ids=["backup", "restore"],
)
def test_a_signal_leaves_nothing(place: Path, number: int, words: tuple[str, ...], said: str) -> None:
    """SIGTERM and SIGHUP left half of the files without a word."""
    done = ended(number, place, *words)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", said)
    assert sorted(os.listdir(place)) == ["data", "saved"]


def test_a_backup_goes_on_when_its_terminal_is_closed_under_nohup(place: Path, tmp_path: Path) -> None:
    done = ended(signal.SIGHUP, place, "backup", "--data", "data", str(tmp_path / "new"), nohup=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"backup {tmp_path}/new is whole: ")
