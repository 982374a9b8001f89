"""Facts that a directory without any takes over from elsewhere, and what a metadata log refuses."""

from __future__ import annotations

import random

import pytest

from magnetar.metadata.store import Record
from magnetar.model.errors import MetadataError
from magnetar.storage.backends.files import FileSystem
from magnetar.storage.metadata_log.metadata_log import MetadataLog
from magnetar.storage.metadata_log.metadata_scan import COPIES
from magnetar.testing.faultfiles import FaultFileSystem
from tests.support.at_once import at_once
from tests.support.whole_files import content, replace

FACTS = [("/b", Record(b"2", 7)), ("/a/x", Record(b"1", 0)), ("/c", Record(b"3", 1))]


def disk() -> FaultFileSystem:
    return FaultFileSystem(random.Random(0))


def opened(files: FileSystem, imported: list[tuple[str, Record]] | None = None) -> MetadataLog:
    return MetadataLog(files, imported=imported)


def test_imported_facts_are_durable_with_their_versions_and_changes_are_counted_on() -> None:
    files = disk()
    log = opened(files, FACTS)
    assert list(log.records()) == sorted(FACTS)
    assert log.last == len(FACTS)
    assert at_once(log.put("/b", b"4")) == 8
    assert log.last == len(FACTS) + 1
    at_once(log.close())
    left = files.crash(random.Random(0))
    again = opened(left)
    assert dict(again.records()) == {**dict(FACTS), "/b": Record(b"4", 8)}
    assert (again.damage, again.doubt, again.in_both) == ([], None, True)
    assert content(left, COPIES[0]) == content(left, COPIES[1])


def test_a_directory_that_has_facts_takes_no_others() -> None:
    files = disk()
    log = opened(files)
    at_once(log.put("/mine", b"1"))
    at_once(log.close())
    again = opened(files, FACTS)
    assert [path for path, _ in again.records()] == ["/mine"]


@pytest.mark.parametrize("path", ["no/root", "/two words", "/line\n", ""])
def test_a_path_that_a_line_cannot_hold_is_refused_and_changes_nothing(path: str) -> None:
    log = opened(disk(), FACTS)
    with pytest.raises(MetadataError, match="cannot be the path"):
        at_once(log.put(path, b"1"))
    assert list(log.records()) == sorted(FACTS)
    assert log.last == len(FACTS)


def test_a_doubt_stays_if_the_disk_refuses_what_was_accepted() -> None:
    files = disk()
    log = opened(files, FACTS)
    at_once(log.close())
    for name in COPIES:
        lines = content(files, name).splitlines(keepends=True)
        replace(files, name, b"".join(lines[:-1]) + b"?" + lines[-1][1:])
    doubtful = opened(files)
    doubt = doubtful.doubt
    assert doubt is not None
    files.fail("append")
    with pytest.raises(MetadataError):
        doubtful.accept()
    assert doubtful.doubt == doubt
    doubtful.accept()
    assert doubtful.doubt is None
    assert doubtful.in_both
    at_once(doubtful.close())
    assert opened(files).doubt is None
