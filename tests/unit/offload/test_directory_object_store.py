"""Copies in a directory last: the local entries are released on their word."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from magnetar.offload.object_store import DirectoryObjectStore


def test_an_object_and_every_name_on_the_way_to_it_are_durable_when_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut must not take the directory itself either, which nobody may have synced since it was made."""
    synced: list[str] = []
    fsync = os.fsync

    def record(fd: int) -> None:
        fsync(fd)
        synced.append(os.readlink(f"/proc/self/fd/{fd}"))

    place = DirectoryObjectStore("file:///unused", str(tmp_path / "mount" / "copies"))
    place.require()
    draft = place.draft("public/default/topic/ledger-1.parquet")
    Path(draft.target).write_bytes(b"copy")
    monkeypatch.setattr(os, "fsync", record)
    assert draft.commit() == 4
    folders = ("", "mount", "mount/copies", "mount/copies/public", "mount/copies/public/default")
    folder = tmp_path / "mount/copies/public/default/topic"
    assert {str(tmp_path / name) for name in folders} | {str(folder)} <= set(synced)
    assert [path.name for path in folder.iterdir()] == ["ledger-1.parquet"]


def test_a_place_that_is_gone_is_not_made_anew(tmp_path: Path) -> None:
    """Where a file system is not mounted any more, copies went to the disk below it, and were hidden when it came
    back: what was released could not be read."""
    place = DirectoryObjectStore("file:///unused", str(tmp_path / "mount" / "copies"))
    place.require()
    (tmp_path / "mount" / "copies").rmdir()
    (tmp_path / "mount").rmdir()
    with pytest.raises(FileNotFoundError, match=r"is its file system mounted.*mount/copies"):
        place.draft("public/default/topic/ledger-1.parquet")
    assert list(tmp_path.iterdir()) == []
