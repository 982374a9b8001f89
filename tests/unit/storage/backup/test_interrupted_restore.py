"""A restore that was interrupted: what it left, and what begins there next."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from magnetar.app.data_directory import DataDirectory
from magnetar.model.errors import PersistenceError
from magnetar.storage.backends.files import OsFileSystem
from magnetar.storage.backup import data_directories
from magnetar.storage.backup.data_directories import back_up_directory, restore_directory
from magnetar.storage.verify import verify
from tests.support.real_broker import real_broker


@pytest.fixture(scope="module")
def backup(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a directory with one message, whose broker has stopped."""
    place = tmp_path_factory.mktemp("stopped")

    async def fill() -> None:
        async with real_broker(place / "data") as broker:
            producer = await (await broker.client()).producer("persistent://public/default/t")
            await producer.publish(b"kept")

    asyncio.run(fill())
    back_up_directory(str(place / "data"), str(place / "backup"))
    return place / "backup"


def test_a_restore_that_is_interrupted_when_all_stands_in_its_place_is_whole(
    backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = os.rename
    synced: list[str] = []

    def renamed(source: str, target: str) -> None:
        rename(source, target)
        if target.endswith("ledgers"):
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", renamed)
    monkeypatch.setattr(data_directories, "sync_directory", synced.append)
    restored = tmp_path / "restored"
    with pytest.raises(KeyboardInterrupt):
        restore_directory(str(backup), str(restored))
    assert synced[-1] == str(restored)
    assert sorted(os.listdir(restored)) == ["ledgers", "metadata.sqlite"]
    assert verify(OsFileSystem(str(restored / "ledgers"), only_read=True)).damage == []


def test_what_an_interrupted_restore_left_is_removed(backup: Path, tmp_path: Path) -> None:
    left = tmp_path / "restored" / "ledgers.restoring"
    left.mkdir(parents=True)
    (left / "segment-00000000000000ff").write_bytes(b"half")
    restore_directory(str(backup), str(tmp_path / "restored"))
    assert sorted(one.name for one in (tmp_path / "restored").iterdir()) == ["ledgers", "metadata.sqlite"]
    assert not (tmp_path / "restored" / "ledgers" / "segment-00000000000000ff").exists()


def test_no_broker_begins_where_a_restore_was_interrupted(backup: Path, tmp_path: Path) -> None:
    """A machine that was started again had an empty one, which took messages, and the restore was refused."""
    place = tmp_path / "restored"
    (place / "ledgers.restoring").mkdir(parents=True)
    with pytest.raises(
        PersistenceError, match=r"ledgers\.restoring is a part of a restore .*: restore again, or remove it"
    ):
        DataDirectory(place)
    restore_directory(str(backup), str(place))
    DataDirectory(place).close()
