"""Arguments that are not UTF-8, directories that nobody may look at and closed streams: a line, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from magnetar.app.main import app as magnetar
from magnetar.app.rescue import app as rescue
from magnetar.cli.backup.command import app as backup

_MAIN = "from magnetar.app.main import main; main()"
_COMMANDS = {
    "sql": ([b"SELECT \xff"], 2),
    "consume": ([b"t", b"-s", b"s", b"--url", b"pulsar://\xff:1"], 2),
    "produce": ([b"t", b"-m", b"\xff", b"-k", b"\xfe"], 2),
    "explain": ([b"subscription", b"t", b"s\xff"], 2),
    "permissions": ([b"explain", b"\xff", b"GET /"], 2),
    "standalone": ([b"--data", b"none\xff"], 2),
    "admin": ([b"topics", b"create-subscription", b"t", b"-s", b"s\xff"], 1),
}


@pytest.mark.parametrize("command", _COMMANDS)
def test_what_is_not_utf_8_is_refused_in_one_line(command: str, tmp_path: Path) -> None:
    words, code = _COMMANDS[command]
    program = [os.fsencode(sys.executable), b"-c", _MAIN.encode(), command.encode(), *words]
    done = subprocess.run(program, capture_output=True, check=False, timeout=120, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, b"")
    assert b"is not UTF-8: arguments are text" in done.stderr and b"surrogates" not in done.stderr
    assert b"\\xf" in done.stderr and b"Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", ["--help", "produce --help", "admin --help", "admin", "config --changed"])
def test_closed_streams_are_as_dev_null(words: str) -> None:
    script = f'exec "{sys.executable}" -c "{_MAIN}" {words} >&-'
    done = subprocess.run(["/bin/sh", "-c", script], stderr=subprocess.PIPE, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (int(words == "admin"), b"")
    all_closed = subprocess.run(["/bin/sh", "-c", f"{script} 2>&- <&-"], check=False, timeout=120)
    assert all_closed.returncode == done.returncode


def test_a_directory_that_nobody_may_look_at_is_not_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "data"
    (data / "ledgers").mkdir(parents=True)
    found = os.stat

    def refused(path: object, *rest: object, **more: object) -> os.stat_result:
        if str(path).startswith(str(data / "ledgers")):
            raise PermissionError(13, "Permission denied", str(path))
        return found(path, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr("os.stat", refused)
    for command, words in (
        (magnetar, ["verify", str(data)]),
        (rescue, ["metadata", str(data)]),
        (backup, ["--data", str(data), str(tmp_path / "to")]),
    ):
        result = CliRunner().invoke(command, words)
        said = f"magnetar: {data}/ledgers cannot be looked at: Permission denied; run this as the user that the"
        assert (result.exit_code, result.stderr[: len(said)]) == (1, said), result
