"""Modules that are imported when they are needed, on a thread of their own."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path

import pytest

from magnetar.admin.later_modules import LaterModules


def test_they_are_imported_once_beside_the_loop_for_all_who_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "needed_later.py").write_text("import threading\nwho = threading.current_thread()\n")

    async def scenario() -> None:
        modules = LaterModules("needed_later")
        # every thread that the loop has waits for those who wait for the module
        free = threading.Event()
        busy = [asyncio.create_task(asyncio.to_thread(free.wait)) for _ in range(64)]
        await asyncio.sleep(0)
        await asyncio.gather(*(modules.ready() for _ in range(100)))
        assert sys.modules["needed_later"].who is not threading.current_thread()
        free.set()
        await asyncio.gather(*busy)

    asyncio.run(scenario())


def test_what_cannot_be_imported_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))

    async def scenario() -> None:
        modules = LaterModules("needed_much_later")
        with pytest.raises(ImportError):
            await modules.ready()
        (tmp_path / "needed_much_later.py").write_text("")
        await modules.ready()
        assert "needed_much_later" in sys.modules

    asyncio.run(scenario())
