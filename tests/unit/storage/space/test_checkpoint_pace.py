"""How often a checkpoint is written for the sake of space alone: it costs the disk time that others want."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from magnetar.model.errors import PersistenceError
from magnetar.runtime.clock import SystemClock
from magnetar.storage.backends.files import OsFileSystem
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.log import checkpoint
from magnetar.storage.space.victims import SPARSE
from magnetar.storage.store import LedgerStore
from tests.support.simulated_store import Disk, publish, simulated
from tests.support.sparse_segments import SMALL, small

SLACK = SMALL.segment_bytes


class Rolls:
    """Counts the segments that are begun; says that so much waits for a checkpoint."""

    def __init__(
        self, store: LedgerStore, monkeypatch: pytest.MonkeyPatch, *, waiting: int, refused: bool = False
    ) -> None:
        self.store = store
        self.refused = refused
        self.count = 0
        monkeypatch.setattr(store.occupancy, "waiting", lambda numbers, border: waiting)
        monkeypatch.setattr(store.journal, "roll", self._roll)

    def _roll(self, done: Callable[[], None], failed: Callable[[PersistenceError], None]) -> None:
        self.count += 1
        if self.refused:
            failed(PersistenceError("full"))
        else:
            done()

    async def after(self, pause: float, took: float) -> int:
        """How many there are in one pass that begins so long after the last checkpoint."""
        before = self.count
        self.store.keeper.sealing = (asyncio.get_running_loop().time() - pause, took)
        await self.store.cleaner.run()
        return self.count - before


@pytest.mark.parametrize(
    ("moving_waits", "took", "pause"),
    [
        (False, 0.0, 10.0), (False, 0.09, 10.0), (False, 0.2, 20.0), (False, 3.0, 300.0),
        (True, 0.0, 1.0), (True, 0.04, 1.0), (True, 0.1, 2.0), (True, 3.0, 60.0),
    ],
)  # fmt: skip
def test_a_pause_is_many_times_what_one_takes(
    monkeypatch: pytest.MonkeyPatch, moving_waits: bool, took: float, pause: float
) -> None:
    """A hundred times and ten seconds at least, or twenty and one second while moving waits for it."""

    @simulated
    async def story(disk: Disk) -> None:
        store = small(disk).open()
        await asyncio.sleep(1000)
        rolls = Rolls(store, monkeypatch, waiting=SLACK)
        for copied in (SLACK, SLACK + 1) if moving_waits else (0,):
            monkeypatch.setattr(type(store.occupancy), "copied", copied)
            expected = pause if copied != SLACK else max(10.0, 100 * took)
            assert await rolls.after(expected - 0.3, took) == 0
            assert await rolls.after(expected + 0.01, took) == 1
        monkeypatch.undo()
        await store.close()

    story()


@pytest.mark.parametrize(("waiting", "rolled"), [(SLACK // 8 - 1, 0), (SLACK // 8, 1), (0, 0)])
def test_it_has_to_be_worth_an_eighth_of_a_segment(monkeypatch: pytest.MonkeyPatch, waiting: int, rolled: int) -> None:
    @simulated
    async def story(disk: Disk) -> None:
        store = small(disk).open()
        await asyncio.sleep(1000)
        rolls = Rolls(store, monkeypatch, waiting=waiting)
        assert await rolls.after(100, 0.0) == rolled
        monkeypatch.undo()
        await store.close()

    story()


@pytest.mark.parametrize(("pause", "living", "rolled"), [(59.9, 0, 0), (60.1, 0, 1), (60.1, 1, 1), (60.1, 2, 0)])
def test_the_newest_segment_is_ended_for_its_own_garbage_after_a_minute(
    monkeypatch: pytest.MonkeyPatch, pause: float, living: int, rolled: int
) -> None:
    """If little of it lives."""

    @simulated
    async def story(disk: Disk) -> None:
        store = small(disk).open()
        await publish(store, store.open_log("a"), 0, 10)
        await asyncio.sleep(1000)
        newest = store.journal.open_bytes
        assert newest * 8 >= SLACK, "enough to be worth it"
        rolls = Rolls(store, monkeypatch, waiting=0)
        much = newest // SPARSE
        monkeypatch.setattr(store.occupancy, "living", lambda number: (0, much, much + 1)[living])
        assert await rolls.after(pause, 0.0) == rolled
        monkeypatch.undo()
        await store.close()

    story()


def test_after_a_refusal_it_rests_for_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others want what space there is."""

    @simulated
    async def story(disk: Disk) -> None:
        store = small(disk).open()
        await asyncio.sleep(1000)
        rolls = Rolls(store, monkeypatch, waiting=SLACK, refused=True)
        assert await rolls.after(100, 0.0) == 1
        await asyncio.sleep(59.9)
        assert await rolls.after(100, 0.0) == 0
        await asyncio.sleep(0.2)
        assert await rolls.after(100, 0.0) == 1
        monkeypatch.undo()
        await store.close()

    story()


def test_a_checkpoint_is_put_together_where_the_loop_does_not_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 100,000 topics that is 60 MB, and everybody waited 0.2 s for each segment."""
    encode, threads = checkpoint.encode, list[int]()

    def seen(head: dict[str, Any], logs: Iterable[bytes]) -> bytes:
        threads.append(threading.get_ident())
        return encode(head, logs)

    async def main() -> None:
        store = LocalLedgerStore(OsFileSystem(str(tmp_path)), SystemClock())
        store.open()
        store.open_log("a").append(b"x", 1, None)
        await store.journal.drain()
        await store.close()

    monkeypatch.setattr(checkpoint, "encode", seen)
    asyncio.run(main())
    assert len(threads) == 1
    assert threads[0] != threading.get_ident()
