"""Files whose bytes the disk does not give: what a start does without, what it refuses, and what it only waits for."""

from __future__ import annotations

import errno
import os

import pytest

from magnetar.model.errors import PersistenceError
from magnetar.storage.store_settings import StoreSettings
from magnetar.storage.verify import verify
from magnetar.testing.faultfiles import FaultFile
from tests.support.simulated_store import Disk, publish, read_all, readable, simulated

SHORTAGE = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
BAD_MEDIUM = (errno.EIO, errno.EBADMSG, errno.EUCLEAN, errno.ENODATA)


class Medium:
    """Reads of files whose names begin so fail."""

    def __init__(self, patched: pytest.MonkeyPatch) -> None:
        self.bad: dict[str, int] = {}
        whole = FaultFile.read

        def read(file: FaultFile, offset: int, size: int) -> bytes:
            for name, code in self.bad.items():
                if file._name.startswith(name):
                    raise OSError(code, os.strerror(code))
            return whole(file, offset, size)

        patched.setattr(FaultFile, "read", read)


async def three_lives(disk: Disk) -> list[str]:
    """Two whole checkpoints, and after the newer one entries that only the log has; the checkpoints, oldest first."""
    disk.settings = StoreSettings(reserve_bytes=0)
    for life in range(3):
        store = disk.open()
        log = store.open_log("t")
        if not life:
            log.open_cursor("s", 0)
        await publish(store, log, 5 * life, 5 * life + 5)
        log.cursors["s"].acknowledge_until(5 * life)
        await store.journal.drain()
        if life < 2:
            await store.close()
        disk.kill()
    found = [name for name in disk.files.names() if name.startswith("checkpoint-")]
    assert len(found) == 2
    return found


async def require_everything(disk: Disk) -> None:
    store = disk.open()
    log = store.find_log("t")
    assert log is not None
    assert await read_all(log) == [b"entry %d" % i for i in range(15)]
    assert log.cursors["s"].mark_delete == 10
    assert store.damage == []
    await store.close()
    disk.kill()


@pytest.mark.parametrize("code", BAD_MEDIUM)
@pytest.mark.parametrize("how_many", [1, 2])
def test_a_checkpoint_that_the_disk_does_not_give_is_done_without(
    code: int, how_many: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    @simulated
    async def main(disk: Disk) -> None:
        bad = (await three_lives(disk))[-how_many:]
        medium = Medium(monkeypatch)
        medium.bad = dict.fromkeys(bad, code)
        await require_everything(disk)
        for name in bad:
            assert f"quarantine-{name}" in disk.files.names()
            assert any(name in text and os.strerror(code) in text for text in caplog.messages)
        medium.bad.clear()
        await require_everything(disk)

    main()


def test_without_what_the_log_needs_the_start_is_refused_and_nothing_is_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @simulated
    async def main(disk: Disk) -> None:
        bad = await three_lives(disk)
        disk.files.rename("segment-0000000000000001", "elsewhere")
        medium = Medium(monkeypatch)
        medium.bad = dict.fromkeys(bad, errno.EIO)
        before = disk.files.names()
        with pytest.raises(PersistenceError, match=f"Restore {bad[1]}, {bad[0]}"):
            disk.open()
        assert [name for name in disk.files.names() if name != "LOCK"] == [name for name in before if name != "LOCK"]
        disk.files.rename("elsewhere", "segment-0000000000000001")
        medium.bad.clear()
        disk.kill()
        await require_everything(disk)

    main()


@pytest.mark.parametrize("code", [*SHORTAGE, errno.EACCES])
def test_what_is_no_damage_is_waited_for(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process without descriptors or permissions finds everything whole at the next start."""

    @simulated
    async def main(disk: Disk) -> None:
        found = await three_lives(disk)
        medium = Medium(monkeypatch)
        medium.bad = {found[-1]: code}
        with pytest.raises(PersistenceError, match=os.strerror(code)):
            disk.open()
        assert not [name for name in disk.files.names() if name.startswith("quarantine-")]
        medium.bad.clear()
        disk.kill()
        await require_everything(disk)

    main()


def test_a_segment_that_must_be_replayed_is_named_with_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    @simulated
    async def main(disk: Disk) -> None:
        await three_lives(disk)
        medium = Medium(monkeypatch)
        medium.bad = {"segment-0000000000000003": errno.EIO}
        with pytest.raises(PersistenceError, match="segment-0000000000000003 cannot be read from offset 0 on"):
            disk.open()
        medium.bad.clear()
        disk.kill()
        await require_everything(disk)

    main()


@pytest.mark.parametrize("begin", [48, 300, 512])
def test_a_copy_with_zeros_in_the_bad_place_is_used_but_for_what_was_there(
    begin: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the refused start says that is to be done."""

    @simulated
    async def main(disk: Disk) -> None:
        await three_lives(disk)
        name = "segment-0000000000000003"
        medium = Medium(monkeypatch)
        medium.bad = {name: errno.EIO}
        with pytest.raises(PersistenceError, match=r"magnetar verify DIR .*\(ddrescue\)") as refused:
            disk.open()
        assert name in str(refused.value)
        disk.kill()
        assert any(name in text for text in verify(disk.files).damage)
        medium.bad.clear()
        disk.kill()
        file = disk.files.open(name, create=True)
        data = bytearray(file.read(0, file.size()))
        assert len(data) > begin + 16
        data[begin : begin + 16] = bytes(16)
        file.truncate(0)
        file.append([bytes(data)])
        file.sync()
        file.close()
        store = disk.open()
        log = store.find_log("t")
        assert log is not None
        found = await readable(log)
        for i in range(15):
            assert found.get(i, b"entry %d" % i) == b"entry %d" % i
        assert 13 <= len(found) < 15, "of the last life one block is gone, and with it at most two entries"
        assert store.damage
        assert any(one.startswith(f"quarantine-{name}") for one in disk.files.names())
        await store.close()

    main()


@pytest.mark.parametrize("name", ["checkpoint-", "segment-0000000000000001", "segment-0000000000000002.index"])
def test_verify_names_each_file_that_it_cannot_read_and_goes_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @simulated
    async def main(disk: Disk) -> None:
        await three_lives(disk)
        Medium(monkeypatch).bad = {name: errno.EIO}
        report = verify(disk.files)
        assert any(name in text and "Input/output error" in text for text in report.damage)
        assert any(line.startswith("segment-0000000000000003: ") for line in report.lines), "what is whole is read"

    main()


@simulated
async def test_what_was_set_aside_before_is_kept_beside_it(disk: Disk) -> None:
    """A checkpoint's number is given again after it was set aside: the next one that is damaged took its place."""
    for _ in range(2):
        found = await three_lives(disk) if not disk.files.names() else checkpoints(disk)
        disk.files.flip_bit(found[-1], 40)
        disk.open()
        disk.kill()
    assert len([name for name in disk.files.names() if name.startswith("quarantine-checkpoint-")]) == 2


def checkpoints(disk: Disk) -> list[str]:
    return [name for name in disk.files.names() if name.startswith("checkpoint-")]
