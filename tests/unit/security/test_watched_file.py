"""When a file counts as changed, and how large it may be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from magnetar.security.authentication.watched_file import Reading, WatchedFile
from tests.support.pipes import named_pipe


def write(file: Path, text: str, ns: int) -> None:
    file.write_text(text)
    os.utime(file, ns=(ns, ns))


@pytest.mark.parametrize("what", ["time", "size", "file"])
def test_a_file_of_another_time_or_size_or_another_file_is_read_again(tmp_path: Path, what: str) -> None:
    """And once more when the next look finds the same; a file that was moved there may have the old one's time."""
    path = tmp_path / "f"
    write(path, "one", 1_000)
    file = WatchedFile(str(path), 100)
    assert file.changed() == Reading("one", True)
    assert file.changed() is None
    new = "longer" if what == "size" else "two"
    if what == "file":
        write(tmp_path / "other", new, 1_000)
        os.replace(tmp_path / "other", path)
    else:
        write(path, new, 2_000 if what == "time" else 1_000)
    assert file.changed() == Reading(new, False)
    assert file.changed() == Reading(new, True)
    assert file.changed() is None


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    with named_pipe(tmp_path / "pipe") as pipe, pytest.raises(ValueError, match="it is a pipe"):
        WatchedFile(pipe, 100).changed()


def test_a_file_that_changes_at_each_look_has_not_settled(tmp_path: Path) -> None:
    path = tmp_path / "f"
    write(path, "0", 1_000)
    file = WatchedFile(str(path), 100)
    file.changed()
    for number in range(1, 4):
        write(path, str(number), 1_000 + number)
        assert file.changed() == Reading(str(number), False)
    assert file.changed() == Reading("3", True)


def test_a_file_may_be_as_large_as_it_was_said_and_not_a_byte_more(tmp_path: Path) -> None:
    """One that is too large is looked at again, and so is one that is no text."""
    path = tmp_path / "f"
    file = WatchedFile(str(path), 10)
    write(path, "x" * 10, 1_000)
    assert file.changed() == Reading("x" * 10, True)
    write(path, "x" * 11, 2_000)
    for _ in range(2):
        with pytest.raises(ValueError, match="more than 10 bytes"):
            file.changed()
    path.write_bytes(b"\xff")
    os.utime(path, ns=(3_000, 3_000))
    for _ in range(2):
        with pytest.raises(ValueError):
            file.changed()
    write(path, "ok", 4_000)
    assert file.changed() == Reading("ok", False)


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    """The first user of a password file could not log in, and the first entry of a revocation list was none."""
    path = tmp_path / "file"
    path.write_bytes(b"\xef\xbb\xbfsub alice\n")
    assert WatchedFile(str(path), 100).changed() == Reading("sub alice\n", True)
