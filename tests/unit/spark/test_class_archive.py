"""Which archive of classes a session's Java is told to map, and how one comes to be; without Java."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from pyspark import SparkContext

from magnetar.model.errors import NotFoundError, ServiceNotReadyError
from magnetar.spark.class_archive import archive as making
from magnetar.spark.class_archive import rehearsal
from magnetar.spark.class_archive.__main__ import main
from magnetar.spark.class_archive.archive import make
from magnetar.spark.java import options
from magnetar.spark.java.options import find, option, with_archive

KEY = "0123456789abcdef"


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where an archive of `KEY` lies."""
    place = tmp_path / 'it\'s "here"'
    place.mkdir()
    monkeypatch.setattr(options, "BESIDE", place)
    monkeypatch.setattr(options, "key", lambda: KEY)
    monkeypatch.setattr(making, "check_java", lambda: None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "own"))
    return place


def archive(place: Path, data: bytes = b"classes", size: int = 7, key: str = KEY, mode: int = 0o444) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    file = place / f"spark-{key}-{size}.jsa"
    file.write_bytes(data)
    file.chmod(mode)
    return file


def test_the_first_place_that_has_one(tmp_path: Path) -> None:
    """A place that is not there is passed over."""
    assert find(KEY, tmp_path / "no", tmp_path / "a") is None
    second = archive(tmp_path / "b")
    assert find(KEY, tmp_path / "no", tmp_path / "a", tmp_path / "b") == second
    first = archive(tmp_path / "a")
    assert find(KEY, tmp_path / "a", tmp_path / "b") == first


def test_what_is_not_whole_not_ours_or_not_for_this_is_left_alone(tmp_path: Path) -> None:
    """Java ends with SIGBUS where the file is shorter than it says, and believes what it is given."""
    archive(tmp_path / "short", b"class")
    archive(tmp_path / "other", key="f" * 16)
    archive(tmp_path / "open", mode=0o666)
    archive(tmp_path / "group", mode=0o464)
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / f"spark-{KEY}-7.jsa").symlink_to(archive(tmp_path / "elsewhere", key="e" * 16))
    (tmp_path / "folder" / f"spark-{KEY}-7.jsa").mkdir(parents=True)
    for place in ("short", "other", "open", "group", "link", "folder"):
        assert find(KEY, tmp_path / place) is None, place


def test_nobody_elses_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root's is, who installed it for all."""
    archive(tmp_path)
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    assert (find(KEY, tmp_path) is not None) == (owner == 0)


def test_a_path_with_quotes_is_one_word_of_sparks(beside: Path) -> None:
    """Spark takes Java's options apart as a shell does."""
    file = archive(beside)
    words = shlex.split(with_archive("-XX:+UseSerialGC"))
    assert words[:2] == ["-XX:+UseSerialGC", f"-XX:SharedArchiveFile={file}"]
    assert "-XX:+VerifySharedSpaces" in words


def test_options_that_name_an_archive_stay_as_they_are(beside: Path) -> None:
    """So do all where there is none."""
    assert (with_archive("-Xmx1g"), with_archive(""), option()) == ("-Xmx1g", "", "")
    archive(beside)
    for own in ("-XX:SharedArchiveFile=/mine.jsa", "-XX:ArchiveClassesAtExit=/new.jsa", "-Xshare:off"):
        assert with_archive(own) == own


def test_without_java_there_is_no_option(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`local_session` says it better; to make an archive is refused."""
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert option() == ""
    with pytest.raises(NotFoundError, match="Java"):
        make()
    assert main([]) == 1 and "Java" in capsys.readouterr().err


def test_one_is_made_whole_or_not_at_all(
    beside: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is written is found under its length only when it is complete; a second call makes nothing."""
    sessions: list[str] = []

    def rehearsed(options: str) -> None:
        (written,) = (word for word in shlex.split(options) if word.startswith("-XX:ArchiveClassesAtExit="))
        sessions.append(written)
        new = Path(written.partition("=")[2])
        new.write_bytes(b"half")
        assert find(KEY, beside) is None and option() == ""
        new.write_bytes(b"classes")
        new.chmod(0o444)

    monkeypatch.setattr(rehearsal, "rehearse", rehearsed)
    made = make()
    assert made == beside / f"spark-{KEY}-7.jsa" and os.listdir(beside) == [made.name]
    assert main([]) == 0 and capsys.readouterr().out == f"{made}\n" and len(sessions) == 1


@pytest.mark.parametrize("left", [b"", b"half"])
def test_what_failed_leaves_nothing(beside: Path, monkeypatch: pytest.MonkeyPatch, left: bytes) -> None:
    """Java may write no file at all, or the disk is full in the middle of one."""

    def failing(options: str) -> None:
        if left:
            (beside / f"spark-{KEY}.{os.getpid()}.new").write_bytes(left)
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(rehearsal, "rehearse", failing)
    with pytest.raises((ServiceNotReadyError, OSError)):
        make()
    assert os.listdir(beside) == []


def test_where_nobody_may_write_beside_the_module_it_is_the_users(
    beside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory is made for the user alone."""
    monkeypatch.setattr(os, "access", lambda *_: False)

    def rehearsed(options: str) -> None:
        (tmp_path / "own" / "magnetar" / f"spark-{KEY}.{os.getpid()}.new").write_bytes(b"classes")

    monkeypatch.setattr(rehearsal, "rehearse", rehearsed)
    made = make()
    assert made == tmp_path / "own" / "magnetar" / f"spark-{KEY}-7.jsa"
    assert made.parent.stat().st_mode & 0o777 == 0o700 and shlex.split(option())[0].endswith(str(made))


def test_what_a_kill_left_is_removed_by_the_next_one(beside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the size of an archive; what another process is writing stays."""
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    left = beside / f"spark-{KEY}.{ended.pid}.new"
    others = [beside / f"spark-{'f' * 16}.{os.getppid()}.new", beside / "spark-of-mine.new"]
    for one in (left, *others):
        one.write_bytes(b"half")
    monkeypatch.setattr(
        rehearsal, "rehearse", lambda _: (beside / f"spark-{KEY}.{os.getpid()}.new").write_bytes(b"all")
    )
    made = make()
    assert sorted(beside.iterdir()) == sorted([made, *others])


def test_a_user_without_a_home_has_no_archive(beside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a number for a user in a container; a session starts without."""

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", no_home)
    assert option() == ""


@pytest.mark.parametrize("code", [0, -9, 1])
def test_an_archive_of_a_java_that_was_killed_is_none(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """It would be as long as its name says, and shorter than Java believes, which ends with SIGBUS then."""

    class Java:
        returncode = code

    class Gateway:
        proc = Java()

    session: Any = MagicMock()
    monkeypatch.setattr(SparkContext, "_gateway", Gateway())
    monkeypatch.setattr(rehearsal, "local_session", lambda *_, **__: session)
    monkeypatch.setattr(rehearsal, "end_session", lambda *_, **__: None)
    if code:
        with pytest.raises(ServiceNotReadyError, match=f"Java ended with {code}"):
            rehearsal.rehearse("")
    else:
        rehearsal.rehearse("")
