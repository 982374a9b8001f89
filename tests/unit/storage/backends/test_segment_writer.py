"""What is durable of a segment and when, with syncs and without them (``journalSyncData``)."""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

import pytest

from magnetar.storage.backends.files import OsFile, OsFileSystem
from magnetar.storage.backends.journal_backend import JournalBackend, segment_name
from magnetar.storage.backends.local_journal import LocalJournal
from magnetar.testing.faultfiles import FaultFileSystem
from magnetar.testing.kit.virtual_loop import InlineExecutor


async def begun(backend: JournalBackend, number: int, data: bytes, *, sync: bool) -> BaseException | None:
    done: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
    backend.writer.begin(number, [data], len(data), sync, done.set_result)
    return await done


async def appended(backend: JournalBackend, data: bytes, *, sync: bool) -> BaseException | None:
    done: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
    backend.writer.append([data], len(data), sync, done.set_result)
    return await done


def after_power_loss(files: FaultFileSystem, number: int) -> set[bytes]:
    """What the segment may hold then, in twenty worlds."""
    found = set()
    for seed in range(20):
        left = FaultFileSystem(random.Random(seed))
        left._disk.directory = files._disk.directory.after_crash(random.Random(seed))
        name = segment_name(number)
        found.add(left.open(name).read(0, 1000).rstrip(b"\0") if name in left.names() else b"")
    return found


@pytest.mark.parametrize("sync", [True, False])
def test_what_was_written_is_durable_at_once_or_when_the_next_segment_begins(sync: bool) -> None:
    """So that no segment but the newest can lack anything."""

    async def main() -> None:
        files = FaultFileSystem(random.Random(0))
        backend = LocalJournal(files, InlineExecutor())
        assert await begun(backend, 1, b"head", sync=sync) is None
        assert after_power_loss(files, 1) == {b"head"}, "that it was begun is always durable"
        assert await appended(backend, b" and more", sync=sync) is None
        left = after_power_loss(files, 1)
        assert left == {b"head and more"} if sync else b"head" in left
        assert await begun(backend, 2, b"next", sync=sync) is None
        assert after_power_loss(files, 1) == {b"head and more"}
        assert after_power_loss(files, 2) == {b"next"}
        backend.writer.close()

    asyncio.run(main())


@pytest.mark.parametrize("sync", [True, False])
def test_a_segment_whose_beginning_fails_is_none(sync: bool) -> None:
    """And the one before it goes on."""

    async def main() -> None:
        files = FaultFileSystem(random.Random(0))
        backend = LocalJournal(files, InlineExecutor())
        await begun(backend, 1, b"head", sync=sync)
        files.fail("sync")
        assert isinstance(await begun(backend, 2, b"next", sync=sync), OSError)
        assert backend.writer.takes_blocks
        assert await appended(backend, b" and more", sync=True) is None
        assert after_power_loss(files, 1) == {b"head and more"}
        assert await begun(backend, 2, b"again", sync=sync) is None
        assert after_power_loss(files, 2) == {b"again"}
        backend.writer.close()
        assert not backend.writer.takes_blocks

    asyncio.run(main())


def test_what_was_refused_is_cut_off() -> None:
    """After a failed sync it may be readable now and gone after a power loss."""

    async def main() -> None:
        files = FaultFileSystem(random.Random(0))
        backend = LocalJournal(files, InlineExecutor())
        await begun(backend, 1, b"head", sync=True)
        files.fail("sync")
        assert isinstance(await appended(backend, b" refused", sync=True), OSError)
        backend.writer.abandon()
        assert not backend.writer.takes_blocks
        assert files.open(segment_name(1)).read(0, 100) == b"head"
        backend.writer.abandon()
        assert await begun(backend, 2, b"next", sync=True) is None
        assert after_power_loss(files, 2) == {b"next"}
        assert all(left.startswith(b"head") for left in after_power_loss(files, 1))
        backend.writer.close()

    asyncio.run(main())


def test_a_segment_that_somebody_deleted_is_written_again_and_nothing_stays_open(tmp_path: Path) -> None:
    async def main() -> None:
        files = OsFileSystem(str(tmp_path))
        backend = LocalJournal(files, InlineExecutor())
        await begun(backend, 1, b"head", sync=True)
        open_before = len(os.listdir("/proc/self/fd"))
        (tmp_path / segment_name(1)).unlink()
        await appended(backend, b" and more", sync=True)
        for _ in range(100):
            await asyncio.sleep(0.01)
            if backend.writer.takes_blocks:
                break
        assert (tmp_path / segment_name(1)).read_bytes().rstrip(b"\0") == b"head and more"
        assert len(os.listdir("/proc/self/fd")) == open_before
        backend.writer.close()

    asyncio.run(main())


def test_a_write_that_begins_where_another_ended_asks_no_second_time_how_long_the_file_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes later asks: somebody may have cut the file meanwhile, and the hole would look whole."""
    asked: list[int] = []
    ask = OsFile.names_and_size

    def counted(file: OsFile) -> tuple[int, int]:
        found = ask(file)
        asked.append(found[1])
        return found

    monkeypatch.setattr(OsFile, "names_and_size", counted)

    async def main() -> None:
        backend = LocalJournal(OsFileSystem(str(tmp_path)), InlineExecutor())
        ended: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()

        def go_on(error: BaseException | None) -> None:
            assert error is None
            backend.writer.append([b" and more"], 9, True, ended.set_result)

        backend.writer.begin(1, [b"head"], 4, True, go_on)
        assert await ended is None
        assert asked == [4, 13], "after each"
        assert await appended(backend, b"!", sync=True) is None
        assert asked == [4, 13, 13, 14], "before it, too"
        os.truncate(tmp_path / segment_name(1), 5)
        assert "was cut to 5 of 14 bytes" in str(await appended(backend, b"?", sync=True))
        backend.writer.close()

    asyncio.run(main())
