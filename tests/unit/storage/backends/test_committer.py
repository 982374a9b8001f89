"""What a thread does with a group, call by call: written, synced, and only then the zeros behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest

from magnetar.storage.backends.committer import ThreadCommitter
from magnetar.storage.backends.journal_backend import Chunk
from magnetar.storage.backends.zeros_ahead import NO_ZEROS, Zeros

ZEROS = Zeros(8192, 5)


class NotedFile:
    """Notes each call; the one that ``failing`` names fails."""

    def __init__(self, failing: object = None) -> None:
        self.calls: list[object] = []
        self._failing = failing

    def _call(self, call: object) -> None:
        self.calls.append(call)
        if call == self._failing:
            raise OSError(call)

    def write(self, at: int, chunks: Sequence[Chunk]) -> None:
        self._call((at, b"".join(chunks)))

    def sync(self) -> None:
        self._call("sync")


def committed(file: NotedFile, *, sync: bool, zeros: Zeros) -> BaseException | None:
    async def main() -> BaseException | None:
        with ThreadPoolExecutor(1) as writer:
            answer: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
            committer = ThreadCommitter(writer)
            committer.commit(cast(Any, file), 60, [b"one", b"two"], sync, answer.set_result, None, zeros)
            assert not answer.done(), "answered from within the call"
            return await asyncio.wait_for(answer, 20)

    return asyncio.run(main())


@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize("zeros", [NO_ZEROS, ZEROS])
def test_a_group_is_written_synced_and_followed_by_its_zeros(sync: bool, zeros: Zeros) -> None:
    file = NotedFile()
    assert committed(file, sync=sync, zeros=zeros) is None
    assert file.calls == [(60, b"onetwo"), *["sync"] * sync, *[(8192, bytes(5))] * (zeros == ZEROS)]


def test_zeros_that_the_disk_refuses_are_nobodys_error() -> None:
    file = NotedFile((8192, bytes(5)))
    assert committed(file, sync=True, zeros=ZEROS) is None
    assert file.calls[-1] == (8192, bytes(5))


@pytest.mark.parametrize("failing", [(60, b"onetwo"), "sync"])
def test_a_group_that_failed_has_no_zeros(failing: object) -> None:
    file = NotedFile(failing)
    assert isinstance(committed(file, sync=True, zeros=ZEROS), OSError)
    assert file.calls[-1] == failing
