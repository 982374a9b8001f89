"""A current directory that somebody has removed: what is named from there is refused with its name and a next step."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def in_removed_directory(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    gone = tmp_path / "gone"
    gone.mkdir()
    run = "import os, sys; os.rmdir(os.getcwd()); os.execv(sys.argv[1], sys.argv[1:])"
    command = [sys.executable, "-c", run, sys.executable, "-m", "magnetar", *arguments]
    return subprocess.run(command, cwd=gone, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    "arguments",
    [
        ("backup", "saved", "--data", "{there}"),
        ("backup", "{there}/to", "--data", "saved"),
        ("restore", "saved", "--data", "{there}/data"),
        ("restore", "{there}", "--data", "saved"),
    ],
)
def test_a_name_that_leads_nowhere_is_said(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """Backup and restore said "[Errno 2] No such file or directory" and nothing else."""
    there = tmp_path / "there"
    (there / "ledgers").mkdir(parents=True)
    done = in_removed_directory(tmp_path, *(one.format(there=there) for one in arguments))
    assert done.returncode in (1, 2)
    said = " ".join(done.stderr.replace("\u2502", " ").split())
    assert "saved lies in the current directory, which was removed" in said
    assert "the whole path" in said
    assert "Errno" not in said


def test_the_doctor_says_it_too(tmp_path: Path) -> None:
    done = in_removed_directory(tmp_path, "doctor", "--only", "disk", "--data", "saved")
    assert done.returncode == 1
    assert "saved lies in the current directory, which was removed" in done.stdout
    assert "Errno" not in done.stdout
