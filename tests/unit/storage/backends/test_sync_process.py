"""The process that writes and syncs: what it answers is true, and its death is noticed and survived."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import mmap
import os
import platform
import resource
import signal
import struct
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from magnetar.storage.backends.committer import ThreadCommitter
from magnetar.storage.backends.files import File, OsFile, OsFileSystem
from magnetar.storage.backends.journal_backend import Chunk
from magnetar.storage.backends.sync_process import SyncProcess
from magnetar.storage.backends.zeros_ahead import NO_ZEROS, Zeros


async def commit(
    process: SyncProcess, file: File, chunks: Sequence[Chunk], *, at: int | None = None, zeros: Zeros = NO_ZEROS
) -> BaseException | None:
    answer: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
    process.commit(file, file.size() if at is None else at, chunks, True, answer.set_result, None, zeros)
    assert not answer.done(), "answered from within the call"
    return await asyncio.wait_for(answer, 20)


def started() -> SyncProcess:
    process = SyncProcess(ThreadCommitter(ThreadPoolExecutor(1)))
    assert process.alive
    return process


def content(file: File) -> bytes:
    return file.read(0, file.size())


def turn_nanoseconds(pid: int) -> int:
    """The turn that the kernel gives a process; 0 where it does not say."""
    attributes = ctypes.create_string_buffer(48)
    ctypes.CDLL(None).syscall(315, pid, attributes, 48, 0)
    return int(struct.unpack("=IIQiIQQQ", attributes.raw)[5])


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the number of a system call")
def test_its_turns_are_short_and_nothing_else_about_it_changes() -> None:
    """A group's way to the disk does not wait for the turn of a process that computes."""

    async def main() -> None:
        process = started()
        assert process.pid is not None
        if not turn_nanoseconds(os.getpid()):
            pytest.skip("this kernel has no turns of a process's own")
        assert turn_nanoseconds(process.pid) == 100_000
        assert turn_nanoseconds(os.getpid()) != 100_000
        assert os.sched_getscheduler(process.pid) == os.SCHED_OTHER
        assert os.getpriority(os.PRIO_PROCESS, process.pid) == os.getpriority(os.PRIO_PROCESS, 0)
        process.close()

    asyncio.run(main())


def test_groups_of_any_size_lie_one_behind_the_other(tmp_path: Path) -> None:
    async def main() -> None:
        process = started()
        files = OsFileSystem(str(tmp_path))
        first, second = files.open("a", create=True), files.open("b", create=True)
        large = os.urandom(21 << 20)
        assert await commit(process, first, [b"one", memoryview(b"two")]) is None
        assert await commit(process, first, [large[:5], large[5 : 17 << 20], large[17 << 20 :]]) is None
        assert await commit(process, second, [b"other"]) is None
        assert await commit(process, first, [b"last"]) is None
        assert content(first) == b"onetwo" + large + b"last"
        assert content(second) == b"other"
        process.close()

    asyncio.run(main())


def test_a_group_on_whole_pages_goes_past_the_page_cache_and_is_read_so(tmp_path: Path) -> None:
    async def main() -> None:
        process = started()
        file = OsFileSystem(str(tmp_path)).open("a", create=True)
        pages = os.urandom(40 * 4096)
        assert await commit(process, file, [b"small"]) is None
        answer: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
        lead = 4096 - len(b"small")
        process.commit(file, 5, [bytes(lead) + pages[:10], pages[10:]], True, answer.set_result, lead)
        assert await asyncio.wait_for(answer, 20) is None
        assert await commit(process, file, [b"behind"]) is None
        assert content(file) == b"small" + bytes(lead) + pages + b"behind"
        with mmap.mmap(-1, 64 * 4096) as buffer:
            found, at = file.read_large(5000, 39 * 4096, buffer)
            assert found[at : at + 39 * 4096] == pages[5000 - 4096 :][: 39 * 4096]
            assert found is buffer or (isinstance(file, OsFile) and file.direct() == file.fileno())
            found, at = file.read_large(4096, 40 * 4096 + 6, buffer)
            assert found[at : at + 40 * 4096 + 6] == pages + b"behind"
        file.close()
        process.close()

    asyncio.run(main())


def test_a_large_group_on_whole_pages_goes_in_slices(tmp_path: Path) -> None:
    async def main() -> None:
        process = started()
        file = OsFileSystem(str(tmp_path)).open("a", create=True)
        pages = os.urandom(5000 * 4096)
        assert await commit(process, file, [b"small"]) is None
        answer: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
        lead = 4096 - len(b"small")
        chunks = [bytes(lead) + pages[:10], *(pages[at : at + 100_003] for at in range(10, len(pages), 100_003))]
        process.commit(file, 5, chunks, True, answer.set_result, lead)
        assert await asyncio.wait_for(answer, 20) is None
        assert await commit(process, file, [b"behind"]) is None
        assert content(file) == b"small" + bytes(lead) + pages + b"behind"
        process.close()

    asyncio.run(main())


def test_a_large_group_fails_as_a_whole_and_the_next_is_not_mixed_with_it(tmp_path: Path) -> None:
    async def main() -> None:
        process = started()
        file = OsFileSystem(str(tmp_path)).open("a", create=True)
        assert process.pid is not None
        # The second slice does not fit.
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (12 << 20, resource.RLIM_INFINITY))
        error = await commit(process, file, [bytes(30 << 20)])
        assert isinstance(error, OSError)
        assert error.errno == errno.EFBIG
        file.truncate(0)
        assert await commit(process, file, [b"next"]) is None
        assert content(file) == b"next"
        os.kill(process.pid, signal.SIGSTOP)
        answer: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
        process.commit(file, 4, [bytes(30 << 20)], True, answer.set_result)
        os.kill(process.pid, signal.SIGKILL)
        assert isinstance(await asyncio.wait_for(answer, 20), OSError)
        file.truncate(4)
        assert await commit(process, file, [b"last"]) is None
        assert content(file) == b"nextlast"
        process.close()

    asyncio.run(main())


def shared_bytes() -> int:
    """What this process has of files in memory."""
    found = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssShmem")]
    return int(found[0].split()[1]) << 10


def test_memory_of_large_groups_is_given_back_when_none_is_under_way(tmp_path: Path) -> None:
    async def main() -> None:
        process = started()
        file = OsFileSystem(str(tmp_path)).open("a", create=True)
        before = shared_bytes()
        large = [os.urandom(6 << 20)]
        assert await commit(process, file, large) is None
        assert shared_bytes() - before > 5 << 20
        process.give_back_memory()
        assert shared_bytes() - before <= 1 << 20
        assert process.pid is not None
        os.kill(process.pid, signal.SIGSTOP)
        answer: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
        process.commit(file, 6 << 20, large, True, answer.set_result)
        process.give_back_memory()
        os.kill(process.pid, signal.SIGCONT)
        assert await asyncio.wait_for(answer, 20) is None
        assert content(file) == large[0] * 2
        os.kill(process.pid, signal.SIGKILL)
        await commit(process, file, [b"a thread goes on"], at=12 << 20)
        process.give_back_memory()
        process.close()

    asyncio.run(main())


class Dead:
    """A wire on which nothing can be sent."""

    def __init__(self, wire: object) -> None:
        self._wire = wire

    def send(self, message: bytes) -> int:
        raise BrokenPipeError(errno.EPIPE, "nobody reads")

    def __getattr__(self, name: str) -> object:
        return getattr(self._wire, name)


def test_what_cannot_be_sent_is_answered_once_and_leaves_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        process = started()
        file = OsFileSystem(str(tmp_path)).open("a", create=True)
        wire, process._wire = process._wire, Dead(process._wire)  # type: ignore[assignment]
        assert isinstance(await commit(process, file, [bytes(9 << 20)]), BrokenPipeError)
        assert not process._left
        assert process._done is None, "it would be answered a second time"
        process._wire = wire
        process.close()

    asyncio.run(main())


def test_memory_is_given_back_once(tmp_path: Path) -> None:
    """Each time it is a call into the kernel."""

    async def main() -> None:
        process = started()
        file = OsFileSystem(str(tmp_path)).open("a", create=True)
        assert await commit(process, file, [bytes(2 << 20)]) is None
        calls: list[tuple[int, ...]] = []

        class Memory:
            def madvise(self, *arguments: int) -> None:
                calls.append(arguments)

        shared, process._shared = process._shared, Memory()  # type: ignore[assignment]
        process.give_back_memory()
        process.give_back_memory()
        assert len(calls) == 1
        process._shared = shared
        process.close()

    asyncio.run(main())


def test_a_full_disk_is_told_by_its_number() -> None:
    async def main() -> None:
        process = started()
        full = OsFile(os.open("/dev/full", os.O_RDWR))
        error = await commit(process, full, [b"x"])
        assert isinstance(error, OSError)
        assert error.errno == errno.ENOSPC
        process.close()

    asyncio.run(main())


def test_zeros_follow_the_answer_and_the_next_groups_go_over_them(tmp_path: Path) -> None:
    async def main() -> None:
        process = started()
        file = OsFileSystem(str(tmp_path)).open("a", create=True)
        assert await commit(process, file, [b"one"], zeros=Zeros(4096, 300_000)) is None
        assert await commit(process, file, [b"two"], at=3) is None  # the zeros are there when this is answered
        assert content(file) == b"onetwo" + bytes(4096 + 300_000 - 6)
        pages = os.urandom(3 * 4096)
        answer: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
        process.commit(file, 6, [bytes(4090) + pages[:9], pages[9:]], True, answer.set_result, 4090)
        assert await asyncio.wait_for(answer, 20) is None
        assert content(file) == b"onetwo" + bytes(4090) + pages + bytes(300_000 - len(pages))
        file.truncate(6 + 4090 + len(pages))
        assert await commit(process, file, [b"behind"]) is None
        assert content(file) == b"onetwo" + bytes(4090) + pages + b"behind"
        process.close()

    asyncio.run(main())


def test_zeros_that_the_disk_refuses_are_nobodys_error(tmp_path: Path) -> None:
    async def main() -> None:
        process = started()
        file = OsFileSystem(str(tmp_path)).open("a", create=True)
        assert process.pid is not None
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
        assert await commit(process, file, [b"one"], zeros=Zeros(4096, 300_000)) is None
        assert await commit(process, file, [b"two"], at=3) is None
        assert content(file) == b"onetwo" + bytes(50_000 - 6)
        error = await commit(process, file, [b"x" * 60_000], at=6, zeros=Zeros(8192, 4096))
        assert isinstance(error, OSError)
        assert error.errno == errno.EFBIG
        assert await commit(process, file, [b"three"], at=6) is None
        assert content(file) == b"onetwothree" + b"x" * (50_000 - 11), "zeros were written although the group failed"
        process.close()

    asyncio.run(main())


def test_its_death_fails_what_it_held_and_a_thread_goes_on(tmp_path: Path) -> None:
    async def main() -> None:
        process = started()
        file = OsFileSystem(str(tmp_path)).open("a", create=True)
        assert await commit(process, file, [b"one"]) is None
        assert process.pid is not None
        os.kill(process.pid, signal.SIGSTOP)
        answer: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
        process.commit(file, 3, [b"two"], True, answer.set_result)
        os.kill(process.pid, signal.SIGKILL)
        assert isinstance(await asyncio.wait_for(answer, 20), OSError)
        assert not process.alive
        file.truncate(3)
        assert await commit(process, file, [b"three"]) is None
        assert content(file) == b"onethree"
        process.close()

    asyncio.run(main())


def test_a_process_that_the_disk_holds_keeps_nobody_from_closing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be writing zeros ahead to a disk that takes its time: what is closed after it is closed all the same."""

    async def main() -> None:
        spare = ThreadCommitter(ThreadPoolExecutor(1))
        closed: list[str] = []
        monkeypatch.setattr(spare, "close", lambda: closed.append("spare"))
        process = SyncProcess(spare)
        file = OsFileSystem(str(tmp_path)).open("a", create=True)
        assert await commit(process, file, [b"one"]) is None
        pid = process.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        await asyncio.to_thread(os.waitid, os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)
        process.close()
        assert not process.alive
        assert closed == ["spare"]
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)

    monkeypatch.setattr("magnetar.storage.backends.sync_process._END_SECONDS", 0.01)
    asyncio.run(main())


def test_a_wake_up_without_an_answer_holds_nothing_up() -> None:
    """Everything of the broker runs on the loop that looks for its answers."""

    async def main() -> None:
        process = started()
        assert not os.get_blocking(process._wire.fileno())
        process._answered()
        assert process.alive
        process.close()

    asyncio.run(main())
