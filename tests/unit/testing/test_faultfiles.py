"""Each fault of the simulated disk really happens, and nothing that was synced is ever harmed."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable

import pytest

from magnetar.storage.backends.files import File
from magnetar.testing.diskmodel import SECTOR
from magnetar.testing.faultfiles import FaultFileSystem, Faults, Operation, StoppedError

SEEDS = range(200)
SAFE = bytes(range(256)) * 3 + b"tail"
LOST = bytes(reversed(range(1, 256))) * 12


def _new(seed: int = 0) -> FaultFileSystem:
    return FaultFileSystem(random.Random(seed))


def _content(disk: FaultFileSystem, name: str) -> bytes:
    file = disk.open(name)
    return file.read(0, file.size())


def _half_synced(seed: int) -> tuple[FaultFileSystem, File]:
    disk = _new(seed)
    file = disk.open("a", create=True)
    file.append([SAFE])
    file.sync()
    disk.sync()
    file.append([LOST[:1000]])
    file.append([LOST[1000:]])
    return disk, file


def _tails() -> list[bytes]:
    """What follows the synced bytes after a crash, per seed."""
    found = []
    for seed in SEEDS:
        disk, _ = _half_synced(seed)
        content = _content(disk.crash(random.Random(seed)), "a")
        assert content.startswith(SAFE)
        found.append(content[len(SAFE) :])
    return found


def test_synced_bytes_survive_every_crash_and_unsynced_ones_meet_each_fate() -> None:
    tails = _tails()
    assert all(len(tail) <= len(LOST) for tail in tails)
    assert b"" in tails
    assert LOST in tails
    torn = [tail for tail in tails if tail not in (b"", LOST)]
    assert any(LOST.startswith(tail) for tail in torn), "no clean prefix"
    damaged = [tail for tail in torn if not LOST.startswith(tail)]
    holes = [tail for tail in damaged if bytes(100) in tail]
    assert holes, "no sector of zeros"
    assert any(_has_garbage(tail) for tail in damaged), "no garbage"
    assert any(len(tail) == len(LOST) for tail in damaged), "no hole before whole bytes"


def _has_garbage(tail: bytes) -> bool:
    return any(byte not in (0, LOST[index]) for index, byte in enumerate(tail))


def test_a_write_over_zeros_is_there_or_zeros_or_torn_and_harms_nothing_beside_it() -> None:
    found = set()
    for seed in SEEDS:
        disk = _new(seed)
        file = disk.open("a", create=True)
        file.append([SAFE, bytes(8192)])
        file.sync()
        disk.sync()
        file.write(len(SAFE), [LOST])
        content = _content(disk.crash(random.Random(seed)), "a")
        assert content.startswith(SAFE)
        assert content[len(SAFE) + len(LOST) :] == bytes(8192 - len(LOST))
        found.add(content[len(SAFE) :][: len(LOST)])
    assert bytes(len(LOST)) in found
    assert LOST in found
    assert any(one.startswith(bytes(100)) and one.endswith(LOST[-100:]) for one in found), "its front was never missing"


def test_bytes_that_were_written_again_after_a_failed_sync_are_safe() -> None:
    for seed in SEEDS:
        disk = _new(seed)
        file = disk.open("a", create=True)
        file.append([bytes(4096)])
        disk.fail("sync")
        with pytest.raises(OSError, match="sync"):
            file.sync()
        file.write(1000, [LOST[:500]])
        file.sync()
        disk.sync()
        assert _content(disk.crash(random.Random(seed)), "a")[1000:1500] == LOST[:500]


def test_damage_comes_in_whole_sectors() -> None:
    for tail in _tails():
        content = SAFE + tail
        for start in range(0, len(content), SECTOR):
            low = max(start, len(SAFE))
            sector, wanted = content[low : start + SECTOR], (SAFE + LOST)[low : start + SECTOR]
            if len(sector) >= 16 and any(sector) and sector != wanted[: len(sector)]:
                assert sum(a != b for a, b in zip(sector, wanted, strict=False)) > len(sector) // 2


def test_equal_seeds_give_equal_disks() -> None:
    assert _tails() == _tails()
    assert len(set(_tails())) > 20


def test_a_truncation_that_was_not_synced_may_be_undone() -> None:
    def crashed(seed: int) -> bytes:
        disk, file = _half_synced(seed)
        file.sync()
        file.truncate(10)
        file.append([b"new"])
        return _content(disk.crash(random.Random(seed)), "a")

    found = {crashed(seed) for seed in SEEDS}
    assert {SAFE + LOST, SAFE[:10], SAFE[:10] + b"new"} <= found
    assert all(content == SAFE + LOST or content[:10] == SAFE[:10] for content in found)
    assert all(len(content) <= 13 or content == SAFE + LOST for content in found)


def _after_directory_changes(seed: int) -> dict[str, bytes]:
    disk = _new(seed)
    for name in ("old", "keep"):
        file = disk.open(name, create=True)
        file.append([name.encode()])
        file.sync()
    disk.sync()
    new = disk.open("new", create=True)
    new.append([b"new"])
    new.sync()
    disk.rename("new", "renamed")
    disk.remove("old")
    after = disk.crash(random.Random(seed))
    return {name: _content(after, name) for name in after.names()}


def test_directory_changes_are_undone_each_on_its_own() -> None:
    found = [_after_directory_changes(seed) for seed in SEEDS]
    assert all(names["keep"] == b"keep" for names in found)
    assert {"renamed" in names for names in found} == {True, False}, "no lost rename"
    assert {"new" in names for names in found} == {True, False}, "no creation without its rename"
    assert {"old" in names for names in found} == {True, False}, "no undone removal"
    assert any("renamed" in names and "old" in names for names in found), "removal and rename are not independent"
    assert any("renamed" not in names and "old" not in names for names in found)
    assert not any({"new", "renamed"} <= names.keys() for names in found)
    assert all(names.get("renamed", b"new") == names.get("new", b"new") == b"new" for names in found)
    assert all(names.get("old", b"old") == b"old" for names in found)


def test_a_rename_over_a_file_leaves_one_of_the_two_whole() -> None:
    def crashed(seed: int) -> bytes:
        disk = _new(seed)
        for name, content in (("current", b"first"), ("next", b"second")):
            file = disk.open(name, create=True)
            file.append([content])
            file.sync()
        disk.sync()
        disk.rename("next", "current")
        return _content(disk.crash(random.Random(seed)), "current")

    assert {crashed(seed) for seed in SEEDS} == {b"first", b"second"}


def test_synced_directory_changes_survive() -> None:
    for seed in SEEDS:
        disk = _new(seed)
        disk.open("a", create=True).close()
        disk.rename("a", "b")
        disk.sync()
        assert not disk.unsynced
        assert disk.crash(random.Random(seed)).names() == ["b"]


def test_a_sync_after_a_failed_one_does_not_vouch_for_the_doubtful_bytes() -> None:
    harmed = 0
    for seed in SEEDS:
        disk = _new(seed)
        file = disk.open("a", create=True)
        disk.sync()
        file.append([SAFE])
        file.sync()
        file.append([LOST])
        disk.fail("sync")
        with pytest.raises(OSError, match="simulated"):
            file.sync()
        assert file.read(len(SAFE), len(LOST)) == LOST, "reads still come from memory"
        file.append([b"after"])
        file.sync()
        content = _content(disk.crash(random.Random(seed)), "a")
        assert content.startswith(SAFE)
        assert content.endswith(b"after")
        assert len(content) == len(SAFE) + len(LOST) + 5
        harmed += content[len(SAFE) : -5] != LOST
    assert 20 < harmed < len(SEEDS)


def test_doubtful_bytes_which_were_cut_off_and_written_again_are_safe() -> None:
    for seed in SEEDS:
        disk = _new(seed)
        file = disk.open("a", create=True)
        disk.sync()
        file.append([LOST])
        disk.fail("sync")
        with pytest.raises(OSError, match="simulated"):
            file.sync()
        file.truncate(0)
        file.append([LOST])
        file.sync()
        assert _content(disk.crash(random.Random(seed)), "a") == LOST


def test_a_full_disk_takes_what_fits_and_accepts_again_when_space_returns() -> None:
    disk = _new()
    other = disk.open("other", create=True)
    other.append([bytes(60)])
    file = disk.open("a", create=True)
    disk.faults.capacity_bytes = 100
    file.append([bytes(30)])
    with pytest.raises(OSError) as caught:
        file.append([b"x" * 20])
    assert caught.value.errno == errno.ENOSPC
    assert file.read(30, 99) == b"x" * 10
    file.truncate(30)
    disk.remove("other")
    file.append([b"y" * 20])
    assert file.size() == 50


def test_scheduled_errors_hit_the_call_they_were_meant_for() -> None:
    disk = _new()
    file = disk.open("a", create=True)
    calls: dict[Operation, Callable[[], object]] = {
        "append": lambda: file.append([b"x"]),
        "sync": file.sync,
        "read": lambda: file.read(0, 1),
        "truncate": lambda: file.truncate(1),
        "open": lambda: disk.open("b", create=True),
        "rename": lambda: disk.rename("b", "c"),
        "sync_directory": disk.sync,
        "remove": lambda: disk.remove("c"),
    }
    for operation, call in calls.items():
        disk.fail(operation, code=errno.EROFS)
        with pytest.raises(OSError) as caught:
            call()
        assert caught.value.errno == errno.EROFS
        call()
    disk.fail("sync", skip=2, times=2)
    outcomes = []
    for _ in range(5):
        try:
            file.sync()
            outcomes.append("ok")
        except OSError:
            outcomes.append("failed")
    assert outcomes == ["ok", "ok", "failed", "failed", "ok"]


def test_a_failed_append_has_written_some_prefix() -> None:
    sizes = set()
    for seed in SEEDS:
        disk = _new(seed)
        file = disk.open("a", create=True)
        disk.fail("append")
        with pytest.raises(OSError, match="simulated"):
            file.append([b"0123456789"])
        assert b"0123456789".startswith(file.read(0, 99))
        sizes.add(file.size())
    assert sizes == set(range(11))


def test_error_rates_are_about_what_they_say() -> None:
    disk = FaultFileSystem(random.Random(4), Faults(append_error_rate=0.2, sync_error_rate=0.2, read_error_rate=0.2))
    file = disk.open("a", create=True)
    for call in (lambda: file.append([b"x"]), file.sync, lambda: file.read(0, 1), disk.sync):
        before = disk.counters.errors
        for _ in range(1000):
            try:
                call()
            except OSError as error:
                assert error.errno == errno.EIO
        assert 140 < disk.counters.errors - before < 260


def test_a_flipped_bit_is_read_and_survives_a_crash() -> None:
    disk, file = _half_synced(1)
    disk.flip_bit("a", 5, bit=3)
    assert file.read(5, 1) == bytes([SAFE[5] ^ 8])
    file.sync()
    assert _content(disk.crash(random.Random(1)), "a")[5] == SAFE[5] ^ 8
    with pytest.raises(IndexError):
        disk.flip_bit("a", 10**6)
    with pytest.raises(FileNotFoundError):
        disk.flip_bit("b", 0)


def test_a_crash_releases_the_lock_and_ends_the_old_views() -> None:
    disk, file = _half_synced(1)
    disk.lock()
    other = disk.second_process()
    after = disk.crash(random.Random(1))
    after.lock()
    with pytest.raises(OSError, match="crashed"):
        file.append([b"ghost"])
    with pytest.raises(OSError, match="crashed"):
        file.sync()
    with pytest.raises(OSError, match="crashed"):
        other.open("a")
    assert b"ghost" not in _content(after, "a")


def test_a_killed_process_loses_nothing_but_its_lock() -> None:
    for seed in SEEDS:
        disk, file = _half_synced(seed)
        disk.lock()
        after = disk.reopened()
        assert _content(after, "a") == SAFE + LOST
        after.lock()
        assert after.unsynced, "only the page cache has it"
        with pytest.raises(OSError, match="crashed"):
            file.append([b"ghost"])


def test_a_disk_stops_between_two_calls_of_one_job() -> None:
    outcomes = set()
    for seed in SEEDS:
        disk, file = _half_synced(seed)
        file.sync()
        stopped: list[bool] = []
        disk.stop_after(seed % 3, lambda: stopped.append(True))  # noqa: B023  # called before the next round
        job = [lambda: file.append([b"record"]), file.sync, disk.sync]  # noqa: B023
        with pytest.raises(StoppedError):
            for call in job:
                file.read(0, 1)
                call()
        assert stopped == [True]
        content = _content(disk.crash(random.Random(seed)), "a")
        assert content.startswith(SAFE + LOST)
        outcomes.add((seed % 3, content[len(SAFE + LOST) :]))
    assert (0, b"") in outcomes
    assert {tail for calls, tail in outcomes if calls == 1} > {b"", b"record"}
    assert {tail for calls, tail in outcomes if calls == 2} == {b"record"}


def test_a_lying_sync_loses_what_it_promised() -> None:
    lost = 0
    for seed in SEEDS:
        disk = FaultFileSystem(random.Random(seed), Faults(lying_sync=True))
        file = disk.open("a", create=True)
        disk.sync()
        file.append([SAFE])
        file.sync()
        after = disk.crash(random.Random(seed))
        lost += after.names() != ["a"] or _content(after, "a") != SAFE
    assert lost > 100


def test_counters_count_what_succeeded() -> None:
    disk = _new()
    file = disk.open("a", create=True)
    file.append([b"123", b"45"])
    file.append([b"6"])
    file.sync()
    disk.sync()
    file.read(0, 4)
    disk.fail("append")
    with pytest.raises(OSError, match="simulated"):
        file.append([b"7"])
    counters = disk.counters
    assert (counters.appends, counters.appended_bytes, counters.syncs) == (2, 6, 1)
    assert (counters.directory_syncs, counters.reads, counters.read_bytes, counters.errors) == (1, 1, 4, 1)


def test_names_are_plain() -> None:
    for name in ("", ".", "..", "a/b"):
        with pytest.raises(ValueError, match="plain"):
            _new().open(name, create=True)
