"""The metadata log: what power cuts, refusals and damage leave of it, against a dictionary."""

from __future__ import annotations

import errno
import random

import pytest

from magnetar.metadata.store import Record
from magnetar.model.errors import MetadataError, PersistenceError
from magnetar.storage.backends.files import File, FileSystem
from magnetar.storage.log import records
from magnetar.storage.metadata_log import metadata_copy, metadata_log
from magnetar.storage.metadata_log.metadata_log import MetadataLog, examine
from magnetar.storage.metadata_log.metadata_scan import COPIES, change_line, read_copy
from magnetar.testing.faultfiles import FaultFileSystem, Operation
from tests.support.at_once import at_once
from tests.support.whole_files import content, replace

A, B = COPIES
State = dict[str, bytes]


def disk(seed: int = 0) -> FaultFileSystem:
    return FaultFileSystem(random.Random(seed))


def state(log: MetadataLog) -> State:
    return {path: record.data for path in log._paths if (record := log.get(path)) is not None}


def filled(files: FileSystem, count: int = 12) -> State:
    log = MetadataLog(files)
    for i in range(count):
        at_once(log.put(f"/policies/{i % 5}", b'{"ttl":%d}' % i))
    at_once(log.delete("/policies/1"))
    at_once(log.put("/odd", b"two\nlines \xff"))
    at_once(log.close())
    return state(log)


def test_it_is_text_that_can_be_read() -> None:
    files = disk()
    filled(files, 2)
    lines = content(files, A).decode().splitlines()
    assert [line[9:] for line in lines[1:3]] == ['1 put 0 /policies/0 {"ttl":0}', '2 put 0 /policies/1 {"ttl":1}']
    assert content(files, A) == content(files, B)


def test_a_change_is_durable_when_it_returns() -> None:
    for seed in range(40):
        files = disk(seed)
        expected = filled(files)
        again = MetadataLog(files.crash(random.Random(seed)))
        assert state(again) == expected
        assert len(again) == len(expected) == len(list(again.records()))
        assert again.damage == []
        assert again.doubt is None


def test_every_single_flip_is_healed_named_and_kept() -> None:
    """Damage in one copy, wherever it is: the facts stay, the damaged file stays, the second start finds nothing."""
    files = disk()
    expected = filled(files)
    size = len(content(files, A))
    for name in COPIES:
        for offset in range(size):
            rng = random.Random(offset)
            files = disk()
            filled(files)
            files.flip_bit(name, offset, rng.randrange(8))
            damaged = content(files, name)
            found = examine(files)
            log = MetadataLog(files)
            at_once(log.close())
            assert state(log) == expected, (name, offset)
            assert log.doubt is None
            if not log.damage:
                # the newline after the second copy's last line looks like a write that was cut off
                assert name == B, (name, offset)
                assert offset >= content(files, A).rfind(b"\n", 0, size - 1)
            assert log.damage == found.facts.damage
            kept = [content(files, one) for one in files.names() if one.startswith("quarantine-")]
            assert kept == [damaged], (name, offset)
            assert examine(files).facts.damage == []


def test_zeroed_cut_swapped_and_missing_copies_are_healed() -> None:
    expected = filled(disk())
    for seed in range(120):
        rng = random.Random(seed)
        files = disk(seed)
        filled(files)
        name = rng.choice(COPIES)
        data = bytearray(content(files, name))
        at = rng.randrange(len(data))
        kind = rng.choice(("zero", "cut", "gone", "empty", "noise"))
        if kind == "gone":
            files.remove(name)
        elif kind == "zero":
            data[at : at + 64] = bytes(len(data[at : at + 64]))
            replace(files, name, bytes(data))
        elif kind == "noise":
            data[at : at + 64] = rng.randbytes(len(data[at : at + 64]))
            replace(files, name, bytes(data))
        else:
            replace(files, name, bytes(data[: at if kind == "cut" else 0]))
        log = MetadataLog(files)
        assert state(log) == expected, (seed, kind)
        assert log.doubt is None
        assert log.damage or name == B, (seed, kind)
        at_once(log.close())


def test_different_records_lost_in_both_copies_are_put_together() -> None:
    files = disk()
    expected = filled(files)
    lines = content(files, A).splitlines(keepends=True)
    files.flip_bit(A, len(b"".join(lines[:3])) + 12)
    files.flip_bit(B, len(b"".join(lines[:7])) + 12)
    log = MetadataLog(files)
    assert state(log) == expected
    assert log.doubt is None
    assert len(log.damage) == 2


def test_the_same_record_lost_in_both_is_a_doubt_that_stays_until_somebody_accepts() -> None:
    files = disk()
    expected = filled(files)
    at = len(b"".join(content(files, A).splitlines(keepends=True)[:11])) + 12
    for name in COPIES:
        files.flip_bit(name, at)
    log = MetadataLog(files)
    assert log.doubt is not None
    assert "1 changes (11)" in log.doubt
    assert state(log) != expected
    at_once(log.put("/new", b"1"))
    at_once(log.close())
    log = MetadataLog(files.reopened())
    assert log.doubt is not None, "mended files must not hide what was lost"
    assert log.get("/new") == Record(b"1", 0)
    log.accept()
    assert log.doubt is None
    at_once(log.close())
    assert MetadataLog(log._files).doubt is None
    assert len([name for name in log._files.names() if name.startswith("quarantine-metadata")]) == 2


def test_both_ends_unreadable_is_a_doubt() -> None:
    files = disk()
    filled(files)
    for name in COPIES:
        files.flip_bit(name, len(content(files, name)) - 5)
    assert MetadataLog(files).doubt is not None


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_whose_bytes_the_disk_does_not_give_is_put_aside_as_it_is(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bad sector must not refuse every change for ever."""
    files = disk()
    expected = filled(files)
    lost, opened = content(files, name), files.open
    rotten = files._disk.directory.live[name]

    def open_file(found: str, *, create: bool = False) -> File:
        if files._disk.directory.live.get(found) is rotten:
            raise OSError(errno.EIO, "a bad sector")
        return opened(found, create=create)

    monkeypatch.setattr(files, "open", open_file)
    log = MetadataLog(files)
    assert log.doubt is None
    assert any(f"{name} cannot be read" in text for text in log.damage)
    at_once(log.put("/new", b"1"))
    assert state(log) == expected | {"/new": b"1"}
    at_once(log.close())
    monkeypatch.undo()
    assert content(files, f"quarantine-{name}-1") == lost
    again = MetadataLog(files)
    assert again.damage == []
    assert state(again) == expected | {"/new": b"1"}


@pytest.mark.parametrize("operation", ["append", "sync", "truncate", "rename", "open", "sync_directory"])
def test_a_refused_change_leaves_things_as_before(operation: Operation) -> None:
    for skip in range(4):
        files = disk(skip)
        expected = filled(files)
        log = MetadataLog(files)
        if operation == "truncate":
            files.fail("append", skip=skip % 2)
        files.fail(operation, skip=skip, times=2)
        for i in range(3):
            try:
                at_once(log.put("/policies/0", b"new %d" % i))
                expected["/policies/0"] = b"new %d" % i
            except MetadataError as error:
                assert "nothing was changed" in str(error)
            assert state(log) == expected
        at_once(log.put("/last", b"1"))
        expected["/last"] = b"1"
        at_once(log.close())
        again = MetadataLog(files.crash(random.Random(skip)))
        assert state(again) == expected, (operation, skip)
        assert again.doubt is None


def test_crashes_in_the_middle_of_changes_and_refusals() -> None:
    """Power cuts inside any disk call: what was answered holds, what was under way is there or not, no doubt."""
    for seed in range(300):
        rng = random.Random(seed)
        files = disk(seed)
        expected: State = {}
        refused: list[tuple[str, bytes | None]] = []
        for _ in range(4):
            log = MetadataLog(files)
            assert log.doubt is None, (seed, log.damage)
            found = state(log)
            # of those refused since the last that was answered one may have happened
            possible = [expected, *(_done(expected, *one) for one in refused)]
            assert found in possible, seed
            expected = found
            refused.clear()
            stopped: list[bool] = []
            files.stop_after(rng.randint(0, 30), lambda done=stopped: done.append(True))  # type: ignore[misc]
            while not stopped:
                path = f"/p/{rng.randrange(4)}"
                data = None if path in expected and rng.random() < 0.3 else rng.randbytes(rng.randint(0, 900))
                if rng.random() < 0.1:
                    files.fail(rng.choice(("append", "sync", "truncate")), code=errno.ENOSPC)
                try:
                    if data is None:
                        at_once(log.delete(path))
                    else:
                        at_once(log.put(path, data))
                except MetadataError:
                    refused.append((path, data))
                else:
                    expected = _done(expected, path, data)
                    refused.clear()
            files = files.crash(rng)


def _done(facts: State, path: str, data: bytes | None) -> State:
    return {**{one: known for one, known in facts.items() if one != path}, **({} if data is None else {path: data})}


def test_a_full_disk_is_asked_once_more_when_room_was_made() -> None:
    files = disk()
    filled(files)
    used = sum(len(content(files, name)) for name in files.names())
    files.faults.capacity_bytes = used
    asked: list[int] = []

    def make_room() -> bool:
        asked.append(1)
        files.faults.capacity_bytes = None
        return True

    at_once(MetadataLog(files).close())
    with pytest.raises(MetadataError):
        at_once(MetadataLog(files).put("/x", b"1"))
    log = MetadataLog(files)
    log.make_room = make_room
    assert at_once(log.put("/x", b"1")) == 0
    assert asked == [1]
    assert log.in_both
    at_once(log.close())
    assert state(MetadataLog(files))["/x"] == b"1", "what was answered is on the disk"


def test_it_opens_on_a_full_disk_even_if_a_copy_must_be_mended() -> None:
    files = disk()
    expected = filled(files)
    files.flip_bit(A, 90)
    files.faults.capacity_bytes = sum(len(content(files, name)) for name in files.names())
    log = MetadataLog(files)
    assert state(log) == expected
    assert log.doubt is None
    files.faults.capacity_bytes = None
    at_once(log.put("/x", b"1"))
    assert log.in_both
    assert examine(files).facts.damage == []


def test_it_stays_small_and_no_change_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_log, "SLACK_BYTES", 2_000)
    monkeypatch.setattr(metadata_copy, "STEP_LINES", 3)
    files = disk()
    log = MetadataLog(files)
    most = 0
    for i in range(600):
        before = files.counters.appended_bytes
        at_once(log.put(f"/p/{i % 40}", b"x" * 50))
        most = max(most, files.counters.appended_bytes - before)
        if i > 200:
            assert len(content(files, A)) < 2 * log._lines + 2_000 + 80 * 60
    assert most < 3_000, "a change rewrites a few lines, not everything"
    expected = state(log)
    assert expected == state(MetadataLog(files.crash(random.Random(1))))


def test_crashes_while_copies_are_written_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_log, "SLACK_BYTES", 300)
    monkeypatch.setattr(metadata_copy, "STEP_LINES", 2)
    test_crashes_in_the_middle_of_changes_and_refusals()


def test_a_copy_that_somebody_removed_or_replaced_is_written_anew() -> None:
    files = disk()
    filled(files)
    log = MetadataLog(files)
    files.remove(A)
    at_once(log.put("/x", b"1"))
    replace(files, "other", b"something else")
    files.rename("other", B)
    at_once(log.put("/y", b"2"))
    at_once(log.close())
    assert examine(files).facts.damage == []
    assert state(MetadataLog(files)) == state(log)
    assert any(content(files, name) == b"something else" for name in files.names() if name.startswith("quarantine-"))


def test_another_brokers_copy_is_not_taken() -> None:
    files, other = disk(1), disk(2)
    expected = filled(files)
    filled(other, 3)
    mine = MetadataLog(files)
    at_once(mine.close())
    replace(files, A, content(other, A))
    with pytest.raises(PersistenceError, match="different brokers"):
        MetadataLog(files)
    header = records.SegmentHeader(1, 0, 0, 0, mine.instance)
    replace(files, "segment-0000000000000001", records.segment_header(header))
    log = MetadataLog(files)
    assert state(log) == expected
    assert "metadata-a belongs to another broker's directory" in log.damage
    replace(files, A, content(other, A))
    replace(files, B, content(other, B))
    log = MetadataLog(files)
    assert state(log) == {}
    assert log.doubt is not None


def test_messages_without_any_metadata_are_a_doubt() -> None:
    files = disk()
    replace(files, "segment-0000000000000001", b"")
    assert MetadataLog(files).doubt is not None
    assert MetadataLog(disk()).doubt is None


def test_a_later_format_is_refused() -> None:
    files = disk()
    filled(files)
    body = content(files, A).splitlines()[0][9:].replace(b'"format":1', b'"format":2')
    line = b"%08x %s\n" % (metadata_log_crc(body), body)
    for name in COPIES:
        replace(files, name, line)
    with pytest.raises(PersistenceError, match="format 2; this version of magnetar reads up to 1"):
        MetadataLog(files)


def metadata_log_crc(body: bytes) -> int:
    from crc32c import crc32c

    return crc32c(body)


def test_lines_of_another_instance_do_not_count() -> None:
    files = disk()
    filled(files)
    data = content(files, A)
    head, rest = data.split(b"\n", 1)
    change = next(iter(read_copy(A, data, None).changes.values()))
    log = MetadataLog(files)
    foreign = change_line(change, log.instance ^ 1)
    read = read_copy(A, head + b"\n" + foreign + rest, None)
    assert len(read.bad) == 1
