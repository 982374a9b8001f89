"""A process that is short of descriptors or memory for a while: nothing is taken for damage because of that."""

from __future__ import annotations

import asyncio
import errno
import os

import pytest

from magnetar.storage.backends.files import File
from magnetar.storage.backends.local_journal import LocalJournal
from magnetar.testing.faultfiles import FaultFileSystem
from tests.support.simulated_store import Disk, publish, read_all, simulated
from tests.support.sparse_segments import SMALL, check, filled, passes, small, used


class Descriptors:
    """While there are none, no segment and no index of one is opened."""

    def __init__(self, patched: pytest.MonkeyPatch) -> None:
        self.code: int | None = None
        self.refused: list[str] = []
        whole = FaultFileSystem.open

        def open_(files: FaultFileSystem, name: str, *, create: bool = False) -> File:
            if self.code is not None and name.startswith("segment-") and not create:
                self.refused.append(name)
                raise OSError(self.code, os.strerror(self.code))
            return whole(files, name, create=create)

        patched.setattr(FaultFileSystem, "open", open_)


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_a_segment_that_could_not_be_opened_for_a_while_is_emptied_later(
    code: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    @simulated
    async def main(disk: Disk) -> None:
        store = small(disk).open()
        await filled(store)
        await asyncio.sleep(5)
        await store.keeper.measure()
        store.reader._indexes._indexes.clear()
        for number in list(store._backend._open):  # type: ignore[attr-defined]
            store._backend.forget(number)
        before = used(disk.files)
        descriptors = Descriptors(monkeypatch)
        monkeypatch.setattr(type(store.keeper), "measure", measured)
        descriptors.code = code
        await passes(store, 2)
        assert descriptors.refused
        assert not store.cleaner._damaged
        assert not [text for text in caplog.messages if "is made anew" in text]
        assert any("making room waits" in text for text in caplog.messages)
        descriptors.code = None
        await passes(store, 16)
        assert used(disk.files) < min(SMALL.segment_bytes / 2, before), disk.files.names()
        await check(store)

    async def measured(keeper: object) -> list[int]:
        present: list[int] = await keeper.blocking(keeper._backend.segments)  # type: ignore[attr-defined]
        return present

    main()


@simulated
async def test_an_index_is_read_although_others_hold_all_descriptors(disk: Disk) -> None:
    """What the reader keeps open of others is closed for it, as for a segment."""
    store = disk.open()
    log = store.open_log("t")
    await publish(store, log, 0, 30)
    await asyncio.sleep(1)
    backend = store._backend
    assert isinstance(backend, LocalJournal)
    backend.reader(1), backend.reader(2)
    disk.files.fail("open", times=2, code=errno.EMFILE)
    assert backend.read_index(1)
    assert not backend._open
    assert await read_all(log) == [b"entry %d" % i for i in range(30)]
    await store.close()
