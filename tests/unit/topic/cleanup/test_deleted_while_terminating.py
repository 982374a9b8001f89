"""A topic that is deleted while its termination waits for the disk stays away after a crash; its successor stays."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from magnetar.broker.topic.cleanup.termination import Termination
from magnetar.runtime.clock import SystemClock
from magnetar.storage.backends.files import OsFileSystem
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.log import records
from magnetar.storage.store_settings import StoreSettings


class NoSubscriptions(dict[str, Any]):
    terminated = ended = False

    def loaded(self) -> list[Any]:
        return []


def opened(path: Path) -> LocalLedgerStore:
    store = LocalLedgerStore(OsFileSystem(str(path)), SystemClock(), StoreSettings())
    store.open()
    return store


async def settled(store: LocalLedgerStore) -> None:
    for _ in range(3):
        await store.journal.drain()
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("made_again", [False, True])
def test_it_does_not_come_back(tmp_path: Path, made_again: bool) -> None:
    async def main() -> None:
        store = opened(tmp_path / "data")
        log = store.open_log("t")
        log.append(b"old", 1, None)
        await settled(store)
        answers: list[Any] = []
        producers = cast("Any", SimpleNamespace(close_all=lambda: None))
        Termination(log, producers, cast("Any", NoSubscriptions())).terminate(
            lambda: answers.append("done"), answers.append
        )
        store.delete_log("t")
        if made_again:
            store.open_log("t").append(b"new", 1, None)
        await settled(store)
        assert answers == ["done"]
        shutil.copytree(tmp_path / "data", tmp_path / "killed")
        await store.close()
        after = opened(tmp_path / "killed")
        found = after.find_log("t")
        assert (found is not None) == made_again
        if found is not None:
            assert (found.end, found.properties) == (1, {})
        await after.close()

    asyncio.run(main())


def test_a_birth_behind_the_end_of_a_log_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Earlier releases could write one."""

    def unguarded(log: ManagedLedger) -> None:
        record = records.json_record(records.RecordKind.LOG, log=log.id, name=log.name, properties={"x": 1})
        log._journal.add_record(record, None)

    async def main() -> None:
        store = opened(tmp_path / "data")
        log = store.open_log("t")
        await settled(store)
        store.delete_log("t")
        await settled(store)
        unguarded(log)
        await settled(store)
        shutil.copytree(tmp_path / "data", tmp_path / "killed")
        await store.close()
        after = opened(tmp_path / "killed")
        assert after.find_log("t") is None
        await after.close()

    asyncio.run(main())
