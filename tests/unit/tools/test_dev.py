"""`make test`: which tests run, side by side, and what becomes of one that fails or is stopped."""

from __future__ import annotations

import fcntl
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tools import dev
from tools.dev import AT_ONCE, HALF_OF_UNIT, REST, RUNS, SPARK, Runs

from tests.support.interruptible import interruptible

TESTS = Path(__file__).resolve().parents[2]


@pytest.fixture
def programme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In pytest's place: says its arguments; waits for a file, fails, or ends."""
    program = tmp_path / "pytest"
    program.write_text(
        f"#!/bin/sh\ntouch {tmp_path}/$1.began\necho ran $@\n"
        f'[ "$2" = wait ] && while [ ! -e {tmp_path}/go ]; do sleep 0.02; done\n[ "$2" != fail ]\n'
    )
    program.chmod(0o755)
    monkeypatch.setattr(dev, "BIN", tmp_path)
    return tmp_path


def test_all_run_and_a_failure_is_the_result(programme: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with Runs([("a",), ("b", "fail"), ("c",)], 2) as runs:
        assert runs.finish() == 1
    said = capfd.readouterr().out
    assert all(f"ran {name}" in said for name in ("a", "b fail", "c"))
    with Runs([("a",), ("c",)], 2) as runs:
        assert runs.finish() == 0


def test_as_many_as_asked_go_on_at_a_time(programme: Path) -> None:
    with Runs([("a", "wait"), ("b", "wait"), ("c", "wait")], 2) as runs:
        until(lambda: (programme / "a.began").exists() and (programme / "b.began").exists())
        assert not (programme / "c.began").exists()
        (programme / "go").touch()
        assert runs.finish() == 0
    assert (programme / "c.began").exists()


def test_runs_of_spark_begin_when_the_classes_of_java_are_archived(
    programme: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Others go on meanwhile; where there is no archive, those of Spark begin all the same."""
    archive = programme / "python"
    for ends in ("true", "false"):
        archive.write_text(
            f"#!/bin/sh\ntouch {programme}/archive.began\n"
            f"while [ ! -e {programme}/archived ]; do sleep 0.02; done\necho archived $@\n{ends}\n"
        )
        archive.chmod(0o755)
        with Runs([*SPARK, ("a",), ("b",)], 3) as runs:
            until(lambda: all((programme / f"{name}.began").exists() for name in ("archive", "a", "b")))
            (programme / "archived").touch()
            assert runs.finish() == 0
        said = capfd.readouterr().out
        ended = said.index("archived -m magnetar.spark.class_archive\n")
        assert all(said.index(f"ran {' '.join(run)}\n") > ended for run in SPARK)
        for left in (programme / "archived", *programme.rglob("*.began")):
            left.unlink()


def test_leaving_ends_what_goes_on_and_begins_nothing(programme: Path) -> None:
    with interruptible(), pytest.raises(SystemExit), Runs([("a", "wait"), ("b", "wait")], 1):
        until(lambda: (programme / "a.began").exists())
        raise SystemExit(1)
    assert not (programme / "b.began").exists()


def test_an_old_python_is_refused_before_anything_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 13))
    monkeypatch.setattr(sys, "argv", ["dev.py", "test"])
    monkeypatch.setitem(dev.COMMANDS, "test", lambda _: pytest.fail("it began"))
    with pytest.raises(SystemExit, match=r"needs Python 3\.11 or later"):
        dev.main()


@pytest.mark.parametrize(("made", "told"), [("3.99.1", True), (sys.version.split()[0], False)])
def test_an_environment_of_another_python_is_told(
    made: str, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pyvenv.cfg").write_text(f"home = /usr/bin\nversion = {made}\n")
    monkeypatch.setattr(dev, "VENV", tmp_path)
    dev.tell_other_python()
    assert (f".venv is of Python {made}" in capsys.readouterr().out) == told


def test_an_environment_that_venv_did_not_make_is_used_without_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dev, "VENV", tmp_path)
    dev.tell_other_python()
    assert not capsys.readouterr().out


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files that say what is installed, and an environment that is not there yet; ``fill`` only notes that it ran."""
    for name in ("Makefile", "pyproject.toml", "run.lock"):
        (tmp_path / name).touch()
    venv = tmp_path / ".venv"
    for name, path in (("ROOT", tmp_path), ("VENV", venv), ("BIN", venv / "bin"), ("LOCKS", tmp_path)):
        monkeypatch.setattr(dev, name, path)
    monkeypatch.setattr(dev, "fill", lambda python, *_: subprocess.run([python, "-m", "pip", "--version"], check=True))
    return tmp_path


def test_an_environment_that_was_interrupted_is_completed(checkout: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C in the first `make run` left a Python without pip, and every later one said "No module named pip"."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", dev.VENV], check=True)
    dev.install("run")
    said = capfd.readouterr().out
    assert "making .venv" in said and "installing run.lock" in said
    dev.install("run")
    assert not capfd.readouterr().out
    (dev.VENV / ".installed-run").unlink()
    dev.install("run")
    said = capfd.readouterr().out
    assert "making .venv" not in said and "installing run.lock" in said, "one that is whole stays"


def test_where_there_is_no_environment_it_is_made_in_the_same_way(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Only the call: each that is really made costs eight seconds, most of them pip's."""
    called: list[object] = []

    def run(command: object, **_: object) -> subprocess.CompletedProcess[bytes]:
        called.append(command)
        dev.VENV.mkdir(exist_ok=True)
        return subprocess.CompletedProcess([], 0)

    monkeypatch.setattr(subprocess, "run", run)
    dev.install("run")
    assert called[0] == [sys.executable, "-m", "venv", dev.VENV]
    said = capfd.readouterr().out
    assert "making .venv" in said and "installing run.lock" in said


def test_one_at_a_time_makes_the_environment(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began = threading.Event()
    monkeypatch.setattr(dev, "make_environment", began.set)
    (dev.VENV).mkdir()
    (dev.BIN).mkdir()
    (dev.BIN / "python").symlink_to(sys.executable)
    with (checkout / "Makefile").open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        waits = threading.Thread(target=dev.install, args=("run",))
        waits.start()
        assert not began.wait(0.3)
    waits.join()
    assert began.is_set()


def test_ctrl_c_ends_a_chore_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: Sequence[str]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "argv", ["dev.py", "test"])
    monkeypatch.setitem(dev.COMMANDS, "test", interrupted)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    with pytest.raises(SystemExit) as ended:
        dev.main()
    assert ended.value.code == 130


def test_compiled_modules_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("OTHER", "2")
    found = dev.environment()
    assert "PYTHONDONTWRITEBYTECODE" not in found and found["OTHER"] == "2"
    assert found["PATH"].startswith(f"{dev.BIN}:")


def until(true: Callable[[], bool]) -> None:
    for _ in range(500):
        if true():
            return
        time.sleep(0.02)
    raise AssertionError


def test_every_folder_is_in_one_run() -> None:
    """What no run names is in one, which leaves out just what the others name."""
    assert RUNS.count(REST) == 1
    for name in {run[0] for run in RUNS if run != REST} | {*HALF_OF_UNIT}:
        assert (TESTS.parent / name).is_dir(), name
    assert [run for run in RUNS if run[:1] == ("tests/unit",)] == [
        ("tests/unit", *(f"--ignore={name}" for name in HALF_OF_UNIT))
    ]
    assert HALF_OF_UNIT in RUNS and all(name.startswith("tests/unit/") for name in HALF_OF_UNIT)
    assert 1 <= AT_ONCE <= len(RUNS)
    marked = sorted(run[1:] for run in RUNS if run[:1] == ("tests/spark",))
    assert marked == [("-m", "drivers"), ("-m", "not drivers")]
