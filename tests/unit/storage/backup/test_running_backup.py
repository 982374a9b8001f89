"""A backup that is being written when the broker stops: stopping waits until nothing of it is there."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, cast

import pytest

from magnetar.model.errors import ConflictError, MagnetarError
from magnetar.storage.backup.running_backup import RunningBackups


def test_closing_waits_for_the_backup_that_is_under_way_and_for_no_other() -> None:
    async def main() -> None:
        let_go = threading.Event()

        def make(name: str) -> None:
            assert let_go.wait(30)
            raise OSError("no room for it")

        threads = ThreadPoolExecutor(1)
        store = SimpleNamespace(archive_threads=threads, keeper=SimpleNamespace(keeps_all=False))
        place = SimpleNamespace(make=make, check=lambda name: None)
        backups = RunningBackups(
            cast("Any", store), cast("Any", None), cast("Any", None), cast("Any", place), lambda: 0
        )
        await asyncio.wait_for(backups.close(), 5)
        beginning = asyncio.ensure_future(backups.begin("monday"))
        await asyncio.sleep(0.05)
        with pytest.raises(ConflictError, match="monday is still being written"):
            await backups.begin("tuesday")
        closing = asyncio.ensure_future(backups.close())
        await asyncio.sleep(0.05)
        assert not closing.done()
        let_go.set()
        await asyncio.wait_for(closing, 30)
        with pytest.raises(MagnetarError, match="no room for it"):
            await beginning
        assert backups.last is not None
        assert backups.last.error
        await asyncio.wait_for(backups.close(), 5)
        threads.shutdown()

    asyncio.run(main())
