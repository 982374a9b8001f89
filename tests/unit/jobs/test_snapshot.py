"""What a job reads of a directory is what a start would find in it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from magnetar.jobs.reader.topic_ledgers import read_directory
from magnetar.model.errors import PersistenceError
from magnetar.storage.backends.file_names import checkpoint_names
from magnetar.storage.log import checkpoint
from tests.unit.jobs.stores import T, append, message, open_store


async def filled(directory: Path) -> Path:
    """A stopped store with a topic; where its newest checkpoint lies."""
    store = open_store(directory)
    await append(store, store.open_log(T), [message(number, 20) for number in range(9)])
    await store.close()
    ledgers = directory / "ledgers"
    return ledgers / checkpoint_names([path.name for path in ledgers.iterdir()])[-1]


def beside(newest: Path, **head: Any) -> None:
    """A newer checkpoint without logs, whose head says other things."""
    found, _ = checkpoint.decode(newest.read_bytes())
    newer = newest.with_name(f"checkpoint-{int(newest.name[-16:], 16) + 1:016x}")
    newer.write_bytes(checkpoint.encode({**found, **head}, []))


@pytest.mark.parametrize("written", [2, 3], ids=["of this format", "of a newer format"])
def test_a_checkpoint_of_another_broker_counts_as_little_as_for_a_start(tmp_path: Path, written: int) -> None:
    newest = asyncio.run(filled(tmp_path))
    before = read_directory(tmp_path)
    assert list(before.logs) == [T]
    found, _ = checkpoint.decode(newest.read_bytes())
    beside(newest, secret=found["secret"] ^ 1, format=written)
    names = sorted(path.name for path in (tmp_path / "ledgers").iterdir())
    assert read_directory(tmp_path) == before
    assert sorted(path.name for path in (tmp_path / "ledgers").iterdir()) == names, "nothing is set aside by a reader"


def test_a_newer_checkpoint_of_this_broker_is_refused(tmp_path: Path) -> None:
    newest = asyncio.run(filled(tmp_path))
    beside(newest, format=3)
    with pytest.raises(PersistenceError, match="newer version of magnetar"):
        read_directory(tmp_path)
