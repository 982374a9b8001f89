"""A copy of the metadata that is written anew while the disk refuses."""

from __future__ import annotations

import random

import pytest

from magnetar.storage.metadata_log import metadata_log
from magnetar.storage.metadata_log.metadata_copy import MetadataCopy, Rewriting
from magnetar.storage.metadata_log.metadata_log import MetadataLog
from magnetar.storage.metadata_log.metadata_scan import Head, MetadataChange, change_line, head_line
from magnetar.testing.faultfiles import FaultFileSystem
from tests.support.at_once import at_once
from tests.support.whole_files import content


def test_a_refused_sync_of_the_directory_is_nobody_elses_doing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The new file has the name, and is not known to keep it: it is written once more, and nothing is set aside."""
    monkeypatch.setattr(metadata_log, "SLACK_BYTES", 300)
    files = FaultFileSystem(random.Random(0))
    log = MetadataLog(files)
    at_once(log.put("/a", b"first"))
    files.fail("sync_directory")
    wanted = dict[str, bytes]()
    for i in range(100):
        wanted[f"/{i % 3}"] = b"%d" % i
        at_once(log.put(f"/{i % 3}", b"%d" % i))
    assert "cannot be written anew" in caplog.text
    assert "removed or replaced" not in caplog.text
    assert [name for name in files.names() if name.startswith("quarantine-")] == []
    assert log.in_both
    assert {path: record.data for path, record in MetadataLog(files.crash(random.Random(1))).records()} == {
        "/a": b"first",
        **wanted,
    }


@pytest.mark.parametrize("left", [b"", b"x" * 10, b"\n" * 10_000, b'{"path": "/z"}\n' * 1000])
def test_what_an_interrupted_attempt_left_is_no_part_of_the_new_file(left: bytes) -> None:
    """Whether it was longer or shorter than what is written now."""
    files = FaultFileSystem(random.Random(0))
    log = MetadataLog(files)
    for name in ("metadata-a.new", "metadata-b.new"):
        file = files.open(name, create=True)
        file.append([left])
        file.sync()
    at_once(log.put("/a", b"first"))
    assert not [name for name in files.names() if name.endswith(".new")], "both were written anew"
    assert log.in_both
    later = files.crash(random.Random(1))
    assert {path: record.data for path, record in MetadataLog(later).records()} == {"/a": b"first"}
    assert sorted(later.names()) == ["metadata-a", "metadata-b"], "nothing is set aside"


@pytest.mark.parametrize("cut_short", [True, False])
def test_a_line_that_was_taken_back_does_not_come_back_with_the_power(cut_short: bool) -> None:
    """Its writer heard that it failed, and has gone on from there."""
    files = FaultFileSystem(random.Random(0))
    at_once(MetadataLog(files).put("/a", b"first"))
    copy = MetadataCopy(files, "metadata-a")
    copy.open()
    before = copy.length
    if cut_short:
        files.fail("sync")
        with pytest.raises(OSError, match="simulated"):
            copy.append(b"refused\n")
    else:
        copy.append(b"refused\n")
    copy.undo()
    assert copy.length == before
    for seed in range(20):
        left = files.crash(random.Random(seed)).open("metadata-a")
        assert left.size() == before
    copy.close()


@pytest.mark.parametrize(
    ("size", "count", "steps"),
    [(50, 450, [200, 400, 450]), (50, 200, [200]), (32 << 10, 7, [3, 6, 7]), ((32 << 10) + 1, 5, [2, 4, 5])],
)
def test_a_change_waits_for_200_lines_of_the_new_file_or_for_64_kb(size: int, count: int, steps: list[int]) -> None:
    """One line may be longer; what came since the first step follows with the last one."""
    files = FaultFileSystem(random.Random(0))
    MetadataLog(files, imported=())
    head = Head(7, count, count, None)
    room = size - len(change_line(MetadataChange(100, 0, "/p", b""), 7))
    living = (MetadataChange(100 + i, 0, "/p", b"x" * room) for i in range(count))
    copy = MetadataCopy(files, "metadata-a")
    rewriting = Rewriting(copy, head, living, count)
    later = change_line(MetadataChange(1, 0, "/later", b""), 7)
    written = []
    while not rewriting.step():
        written.append(content(files, "metadata-a.new").count(b"\n") - 1)
        rewriting.later = [later]
    whole = content(files, "metadata-a")
    assert [*written, whole.count(b"\n") - 1 - len(rewriting.later)] == steps
    assert whole.startswith(head_line(head))
    assert whole.endswith(b"".join(rewriting.later))
    assert copy.length == len(whole)
    copy.close()
