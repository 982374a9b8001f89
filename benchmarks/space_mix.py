"""Topics of every habit in one store: what is written, consumed and deleted, and what that leaves on the disk.

It works on the store itself, with the broker's passes at the broker's intervals. `benchmarks.space` runs it on a disk,
tests in virtual time and smaller.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from magnetar.runtime.clock import SystemClock
from magnetar.runtime.tasks import EarlyCall, TaskGroup
from magnetar.storage.backends.files import OsFileSystem
from magnetar.storage.backends.sync_process import SyncProcess
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.store import LedgerStore
from magnetar.storage.store_settings import StoreSettings

PASS_SECONDS: Final = 10.0
TRIM_REST: Final = 20
"""The same as in `magnetar.broker.upkeep.periodic_passes`."""
_PENDING_MAX: Final = 4 << 20
_TOPIC: Final = "persistent://public/default/space-"


def segment_bytes(path: Path) -> int:
    """Segments and their indexes."""
    total = 0
    for entry in os.scandir(path):
        with contextlib.suppress(FileNotFoundError):
            total += entry.stat().st_size if entry.name.startswith("segment-") else 0
    return total


@dataclass(frozen=True)
class Sample:
    """What lay on the disk at one moment."""

    written: int
    disk: int
    living: int
    moved: int
    constant: int

    @property
    def bound(self) -> int:
        """What is promised in docs/disk.md."""
        return 2 * self.living + self.constant


def directory_settings(reclaim: int) -> StoreSettings:
    """Small ledgers, so that what is consumed can be trimmed soon."""
    return StoreSettings(
        ledger_entries_max=100, ledger_min_rollover_ms=0, cache_bytes=16 << 20, reclaim_bytes_per_second=reclaim
    )


class Directory:
    """A store that is filled at a rate, with the broker's passes in the background."""

    def __init__(self, store: LedgerStore, disk: Callable[[], int], mb_per_second: float) -> None:
        """``disk`` says how many bytes segments and their indexes take."""
        self.store = store
        self.disk = disk
        self._rate = mb_per_second * 1e6
        self.written = 0
        self.samples: list[Sample] = []
        self.now = asyncio.get_running_loop().time
        self._begun = self.now()
        self._passes = TaskGroup("passes")
        filled = EarlyCall(TRIM_REST)
        store.keeper.on_checkpoint = filled.ask
        self._passes.repeat(PASS_SECONDS, self._trim, "trim", filled)
        self._passes.repeat(PASS_SECONDS, store.cleaner.run, "space", store.cleaner.early)

    @staticmethod
    def at(path: Path, mb_per_second: float, reclaim: int) -> Directory:
        """One on a real disk."""
        store = LocalLedgerStore(
            OsFileSystem(str(path)), SystemClock(), directory_settings(reclaim), committer=SyncProcess
        )
        store.open()
        return Directory(store, lambda: segment_bytes(path), mb_per_second)

    async def _trim(self) -> None:
        dropped = 0
        for log in list(self.store.logs()):
            if log.cursors:
                dropped += log.trim(min([cursor.mark_delete for cursor in log.cursors.values()]) + 1)
        if dropped:
            await self.store.journal.drain()
            await self.store.keeper.remove_dead()

    def log(self, name: str) -> ManagedLedger:
        """A topic with a subscription that has consumed nothing."""
        log = self.store.open_log(_TOPIC + name)
        log.open_cursor("s", log.end)
        return log

    async def append(self, log: ManagedLedger, entry: bytes) -> None:
        log.append(entry, 1, None)
        self.written += len(entry)
        if self.store.journal.pending_bytes > _PENDING_MAX:
            await self.store.journal.drain()
        elif log.next % 8 == 0:
            await asyncio.sleep(0)  # as connections do: none holds the loop
        if (ahead := self.ahead()) > 0.02:
            await asyncio.sleep(ahead)

    def ahead(self) -> float:
        """Seconds that more is written than the rate allows."""
        return self.written / self._rate - (self.now() - self._begun)

    def sample(self) -> Sample:
        living = sum(span.living for log in self.store.logs() for span in log.spans)
        constant = 5 * self.store.settings.segment_bytes
        self.samples.append(Sample(self.written, self.disk(), living, self.store.cleaner.moved_bytes, constant))
        return self.samples[-1]

    async def close(self) -> None:
        await self._passes.close()
        await self.store.close()


class Habit:
    """How a topic is consumed: at once, late, in jumps, or never; some of its messages are large."""

    def __init__(self, rng: random.Random, log: ManagedLedger, sizes: float = 1.0) -> None:
        self.log = log
        self.kind = rng.choices(("at once", "late", "jumps", "never"), (50, 25, 20, 5))[0]
        self.lag = int(rng.lognormvariate(5, 1))
        self.size = int(min(max(rng.lognormvariate(8, 1.5), 100), 100_000) * sizes)
        self.weight = rng.paretovariate(1.2)

    def consume(self, rng: random.Random) -> None:
        end = self.log.end
        if self.kind == "at once":
            target = end
        elif self.kind == "late":
            target = end - self.lag
        elif self.kind == "jumps" and rng.random() < 0.02:
            target = end
        else:
            return
        if target > 0:
            self.log.cursors["s"].acknowledge_until(target - 1)


async def mix(directory: Directory, total: float, topics: int, seed: int, sizes: float = 1.0) -> list[Sample]:
    """Topics of every habit side by side; now and then one is deleted and another one begins. A sample per second."""
    rng = random.Random(seed)
    habits = [Habit(rng, directory.log(str(i)), sizes) for i in range(topics)]
    weights = [habit.weight for habit in habits]
    noise = rng.randbytes(200_000)
    sampling = asyncio.create_task(_sample_each_second(directory))
    while directory.written < total:
        for i in rng.choices(range(topics), weights, k=2000):
            size = int(habits[i].size * rng.uniform(0.5, 2))
            at = rng.randrange(100_000)
            await directory.append(habits[i].log, noise[at : at + size])
        for habit in rng.sample(habits, topics // 5):
            habit.consume(rng)
        if rng.random() < 0.2:
            i = rng.randrange(topics)
            directory.store.delete_log(habits[i].log.name)
            habits[i] = Habit(rng, directory.log(f"{i}-{directory.written}"), sizes)
    await asyncio.sleep(60)
    sampling.cancel()
    await directory.close()
    return directory.samples


async def _sample_each_second(directory: Directory) -> None:
    while True:
        await asyncio.sleep(1)
        directory.sample()
