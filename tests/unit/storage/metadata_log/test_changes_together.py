"""Changes of the metadata that are made together: all of them or none, whatever the disk refuses or a crash cuts."""

from __future__ import annotations

import random

import pytest

from magnetar.metadata.store import RecordWrite
from magnetar.model.errors import MetadataError
from magnetar.storage.backends.files import FileSystem
from magnetar.storage.metadata_log.metadata_log import MetadataLog, examine
from magnetar.storage.metadata_log.metadata_scan import COPIES
from magnetar.testing.faultfiles import FaultFileSystem, Operation
from tests.support.at_once import at_once
from tests.support.whole_files import content, replace

A, B = COPIES
BEFORE = {"/a": b"{}", "/b": b"{}", "/bytes": b"\x00\n"}
TOGETHER = [
    RecordWrite("/a", None),
    RecordWrite("/b", b'{"b":1}'),
    RecordWrite("/c", b"\xff\n"),
    RecordWrite("/bytes", None),
    RecordWrite("/d", b"d"),
]
AFTER = {"/b": b'{"b":1}', "/c": b"\xff\n", "/d": b"d"}


def opened(files: FileSystem) -> MetadataLog:
    return MetadataLog(files)


def facts(log: MetadataLog) -> dict[str, bytes]:
    return {path: record.data for path, record in log.records()}


def filled(seed: int = 0) -> tuple[FaultFileSystem, MetadataLog]:
    files = FaultFileSystem(random.Random(seed))
    log = opened(files)
    for path, data in BEFORE.items():
        at_once(log.put(path, data))
    return files, log


def test_each_line_but_the_last_says_that_another_belongs_to_it() -> None:
    files, log = filled()
    at_once(log.write(TOGETHER))
    lines = content(files, A).decode().splitlines()[-5:]
    assert [line[9:].rsplit(" ", 1)[0] for line in lines] == [
        "4 delete +0", "5 put +1 /b", "6 put64 +0 /c", "7 delete +0", "8 put 0 /d",
    ]  # fmt: skip
    assert content(files, A) == content(files, B)
    at_once(log.close())
    again = opened(files)
    assert (facts(again), again.damage, again.last) == (AFTER, [], 8)


@pytest.mark.parametrize("operation", ["append", "sync"])
@pytest.mark.parametrize("skip", [0, 1])
def test_what_the_disk_refuses_it_refuses_whole(operation: Operation, skip: int) -> None:
    for seed in range(10):
        files, log = filled(seed)
        files.fail(operation, skip=skip)
        with pytest.raises(MetadataError, match="nothing was changed"):
            at_once(log.write(TOGETHER))
        assert facts(log) == BEFORE
        at_once(log.put("/later", b"1"))
        again = opened(files.crash(random.Random(seed)))
        assert (facts(again), again.damage) == ({**BEFORE, "/later": b"1"}, [])


def test_a_crash_leaves_all_of_them_or_none_and_no_damage() -> None:
    found = set()
    for seed in range(150):
        files, log = filled(seed)
        files.stop_after(random.Random(seed).randint(0, 4), lambda: None)
        try:
            at_once(log.write(TOGETHER))
        except (MetadataError, OSError):
            pass
        after = files.crash(random.Random(seed)) if seed % 2 else files.reopened()
        assert examine(after).facts.damage == []
        again = opened(after)
        assert again.damage == []
        assert facts(again) in (BEFORE, AFTER), seed
        found.add(facts(again) == AFTER)
        at_once(again.put("/later", b"1"))
        at_once(again.close())
        once_more = opened(after)
        assert (once_more.get("/later"), once_more.damage) == (again.get("/later"), [])
    assert found == {True, False}


def test_the_second_copy_may_end_anywhere_in_what_was_under_way() -> None:
    files, log = filled()
    whole = len(content(files, B))
    at_once(log.write(TOGETHER))
    written = content(files, B)
    at_once(log.close())
    for end in range(whole, len(written)):
        replace(files, B, written[:end])
        found = examine(files).facts
        torn = [f"{B} is unreadable from offset {whole} to {end}, its end"] if end > whole else []
        assert (found.damage, found.torn) == ([], torn), "what was under way is one piece"
    replace(files, B, written[: whole - 1])
    assert examine(files).facts.damage != []


def test_a_line_lost_in_one_copy_is_taken_from_the_other() -> None:
    files, log = filled()
    whole = len(content(files, A))
    at_once(log.write(TOGETHER))
    size = len(content(files, A))
    at_once(log.close())
    for name, other in ((A, B), (B, A)):
        for offset in range(whole, size):
            files.flip_bit(name, offset)
            again = opened(files)
            assert facts(again) == AFTER, (name, offset)
            assert again.doubt is None
            at_once(again.close())
            replace(files, name, content(files, other))
    # the first copy lost the last line, the second one another one
    files, log = filled()
    at_once(log.write(TOGETHER))
    at_once(log.close())
    files.flip_bit(A, size - 3)
    files.flip_bit(B, whole + 3)
    again = opened(files)
    assert (facts(again), again.doubt) == (AFTER, None)
