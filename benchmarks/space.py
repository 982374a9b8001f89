"""Bytes on disk against bytes that live, and what giving them back costs publishers.

    python -m benchmarks.space scattered           3 GB of traffic that goes, 24 messages of 100 B that stay
    python -m benchmarks.space mix                 1,000 topics of every habit, 20 GB
    python -m benchmarks.space latency             publish latency while space is given back, and while it is not

The first two work on the store itself, in this process, with the broker's passes at the broker's intervals: appending
goes through the journal and the sync process as it does in the broker, what is left out is the protocol. The third one
starts brokers. `mix --svg FILE` draws the curve.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.servers import magnetar
from tools.servers.process import HOST

from magnetar.runtime.clock import SystemClock
from magnetar.storage.backends.files import OsFileSystem
from magnetar.storage.backends.sync_process import SyncProcess
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.store_settings import StoreSettings
from magnetar.testing.rawclient import RawClient

PASS_SECONDS: Final = 10.0
"""The same interval as in `magnetar.broker.upkeep.periodic_passes`."""
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


class Directory:
    """A store in a directory, filled at a rate, with passes in the background."""

    def __init__(self, path: Path, mb_per_second: float, reclaim: int) -> None:
        self.path = path
        self._rate = mb_per_second * 1e6
        settings = StoreSettings(
            ledger_entries_max=100, ledger_min_rollover_ms=0, cache_bytes=16 << 20, reclaim_bytes_per_second=reclaim
        )
        self.store = LocalLedgerStore(OsFileSystem(str(path)), SystemClock(), settings, committer=SyncProcess)
        self.store.open()
        self.written = 0
        self.samples: list[Sample] = []
        self._begun = time.perf_counter()
        self._passes = [asyncio.create_task(self._repeat(self._trim)), asyncio.create_task(self._repeat(self._reclaim))]

    async def _repeat(self, act: Callable[[], object]) -> None:
        while True:
            await asyncio.sleep(PASS_SECONDS)
            await act()  # type: ignore[misc]  # a coroutine function

    async def _trim(self) -> None:
        dropped = 0
        for log in list(self.store.logs()):
            marks = [cursor.mark_delete for cursor in log.cursors.values()]
            dropped += log.trim(min(marks) + 1)
        if dropped:
            await self.store.journal.drain()
            await self.store.keeper.remove_dead()

    async def _reclaim(self) -> None:
        await self.store.cleaner.run()

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
        return self.written / self._rate - (time.perf_counter() - self._begun)

    def disk(self) -> int:
        """Segments and their indexes."""
        return segment_bytes(self.path)

    def sample(self) -> Sample:
        occupancy = self.store.occupancy
        living = sum(span.living for log in self.store.logs() for span in log.spans)
        assert occupancy is not None
        self.samples.append(Sample(self.written, self.disk(), living, self.store.cleaner.moved_bytes))
        return self.samples[-1]

    async def close(self) -> None:
        for task in self._passes:
            task.cancel()
        await asyncio.gather(*self._passes, return_exceptions=True)
        await self.store.close()


async def scattered(path: Path, gigabytes: float, reclaim: int) -> None:
    """The case that keeps most: one small message in every segment."""
    directory = Directory(path, 100, reclaim)
    busy = directory.log("busy")
    quiet = [directory.log(f"quiet-{i}") for i in range(24)]
    total, entry = int(gigabytes * 1e9), random.Random(1).randbytes(100_000)
    print("  s  written MB  on disk MB  living kB")
    begun, shown = time.perf_counter(), 0.0
    for i in range(total // len(entry)):
        if i * len(quiet) // (total // len(entry)) > sum(log.next for log in quiet) - 1:
            quiet[min(sum(log.next for log in quiet), 23)].append(b"x" * 100, 1, None)
        await directory.append(busy, entry)
        if i % 100 == 0:
            busy.cursors["s"].acknowledge_until(busy.end - 1)
        shown = _show(directory, begun, shown)
    busy.open_ledger()
    await directory.store.journal.drain()
    busy.cursors["s"].acknowledge_until(busy.end - 1)
    for _ in range(30):
        await asyncio.sleep(5)
        shown = _show(directory, begun, shown)
        if directory.samples[-1].disk < 1e6:
            break
    print(
        f"living messages {sum(log.end - log.first for log in quiet)}, "
        f"moved {directory.store.cleaner.moved_bytes} bytes"
    )
    await directory.close()


def _show(directory: Directory, begun: float, shown: float) -> float:
    seconds = time.perf_counter() - begun
    if seconds - shown < 5:
        return shown
    now = directory.sample()
    print(f"{seconds:3.0f} {now.written / 1e6:11.0f} {now.disk / 1e6:11.1f} {now.living / 1e3:10.1f}", flush=True)
    return seconds


class Habit:
    """How a topic is consumed: at once, late, in jumps, or never; some of its messages are large."""

    def __init__(self, rng: random.Random, log: ManagedLedger) -> None:
        self.log = log
        self.kind = rng.choices(("at once", "late", "jumps", "never"), (50, 25, 20, 5))[0]
        self.lag = int(rng.lognormvariate(5, 1))
        self.size = int(min(max(rng.lognormvariate(8, 1.5), 100), 100_000))
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


async def mix(path: Path, gigabytes: float, topics: int, mb_per_second: float, reclaim: int, seed: int) -> Directory:
    """Topics of every habit side by side; now and then one is deleted and another one begins."""
    rng = random.Random(seed)
    directory = Directory(path, mb_per_second, reclaim)
    habits = [Habit(rng, directory.log(str(i))) for i in range(topics)]
    weights = [habit.weight for habit in habits]
    noise, total, step = rng.randbytes(200_000), gigabytes * 1e9, gigabytes * 1e9 / 40
    print("written GB  on disk MB  living MB  2 x living + 640 MiB  moved MB")
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
            habits[i] = Habit(rng, directory.log(f"{i}-{directory.written}"))
        if directory.written >= step * (len(directory.samples) + 1):
            _row(directory.sample())
    print("no more traffic")
    for _ in range(6):
        await asyncio.sleep(15)
        _row(directory.sample())
    await directory.close()
    return directory


def _row(now: Sample) -> None:
    bound = 2 * now.living + (640 << 20)
    cells = (now.disk / 1e6, now.living / 1e6, bound / 1e6, now.moved / 1e6)
    print(f"{now.written / 1e9:10.2f} {cells[0]:11.0f} {cells[1]:10.0f} {cells[2]:21.0f} {cells[3]:9.0f}", flush=True)


def chart(samples: list[Sample]) -> str:
    """An SVG: on disk, what lives, and the bound, over what was written."""
    width, height, left, low = 720, 320, 60, 280
    most = max(max(one.disk, 2 * one.living + (640 << 20)) for one in samples)
    last = samples[-1].written

    def line(value: Callable[[Sample], int], colour: str, name: str, at: int) -> str:
        count = len(samples)
        points = " ".join(
            f"{left + (width - left - 20) * i / max(count - 1, 1):.0f},{low - 250 * value(one) / most:.0f}"
            for i, one in enumerate(samples)
        )
        text = f'<text x="{left + 10 + at}" y="20" fill="{colour}">{name}</text>'
        return f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{points}"/>{text}'

    marks = "".join(
        f'<text x="4" y="{low - 250 * i / 4 + 4:.0f}">{most * i / 4 / 1e9:.1f} GB</text>'
        f'<line x1="{left}" x2="{width - 20}" y1="{low - 250 * i / 4:.0f}" y2="{low - 250 * i / 4:.0f}" stroke="#ddd"/>'
        for i in range(5)
    )
    lines = (
        line(lambda one: one.disk, "#c33", "on disk", 0)
        + line(lambda one: one.living, "#282", "lives", 90)
        + line(lambda one: 2 * one.living + (640 << 20), "#888", "2 x what lives + 640 MiB", 160)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
        f'font-size="12"><rect width="100%" height="100%" fill="white"/>{marks}{lines}'
        f'<text x="{left}" y="310">0</text>'
        f'<text x="{width - 220}" y="310">{last / 1e9:.1f} GB written, then idle</text>'
        "</svg>"
    )


# publish latency ----------------------------------------------------------------------------------------------------


async def half_dead(path: Path, gigabytes: float) -> None:
    """Segments of which a third lives, so that there is much to move."""
    directory = Directory(path / "data" / "ledgers", 1e6, 0)
    dies, lives = directory.log("dies"), directory.log("lives")
    entry = random.Random(1).randbytes(50_000)
    for i in range(int(gigabytes * 1e9 / len(entry))):
        await directory.append(lives if i % 3 == 0 else dies, entry)
    dies.open_ledger()
    await directory.store.journal.drain()
    dies.cursors["s"].acknowledge_until(dies.end - 1)
    dies.trim(dies.end)
    await directory.store.journal.drain()
    await directory.close()


async def publish(port: int, seconds: float, per_second: int) -> list[float]:
    """Latencies of messages of 1 KB, sent when they are due, whatever came of those before."""
    client = await RawClient.open(HOST, port)
    await client.connect()
    producer = await client.producer(_TOPIC + "latency")
    loop, payload = asyncio.get_running_loop(), bytes(1024)
    found: list[float] = []

    async def one(due: float) -> None:
        await producer.receipt(producer.send(payload))
        found.append(loop.time() - due)

    begun, sending = loop.time(), []
    for i in range(int(seconds * per_second)):
        due = begun + i / per_second
        if due > loop.time():
            await asyncio.sleep(due - loop.time())
        sending.append(asyncio.create_task(one(due)))
    await asyncio.gather(*sending)
    client.transport.close()
    return found


def latency(path: Path, gigabytes: float, seconds: float, per_second: int, rounds: int) -> None:
    """Alternating rounds on the same bytes: with and without."""
    original = path / "original"
    original.mkdir()
    # a broker begins the directory: without its metadata nothing is ever let go
    with magnetar.start(original) as server:
        asyncio.run(publish(server.broker_port, 0.1, 100))
    asyncio.run(half_dead(original, gigabytes))
    results: dict[int, list[float]] = {0: [], 16 << 20: []}
    print(f"{per_second} messages of 1 KB per second, {seconds:g} s a round; ms")
    print("reclaiming    p50   p99  p99.9    max   grown MB")
    for _ in range(rounds):
        for rate in results:
            with copied(original, path / "copy") as copy:
                server = magnetar.start(copy, settings={"spaceReclaimBytesPerSecond": str(rate)})
                try:
                    time.sleep(11)  # the first pass comes 10 s after the start
                    before = segment_bytes(copy / "data" / "ledgers")
                    found = asyncio.run(publish(server.broker_port, seconds, per_second))
                    time.sleep(1)
                    grown = segment_bytes(copy / "data" / "ledgers") - before
                finally:
                    server.stop()
            results[rate] += found
            _latencies(rate, found, grown)
    print("all rounds together")
    for rate, found in results.items():
        _latencies(rate, found, 0)


def _latencies(rate: int, found: list[float], grown: int) -> None:
    cuts = statistics.quantiles(found, n=1000)
    cells = [1e3 * one for one in (cuts[499], cuts[989], cuts[998], max(found))]
    what = f"{rate >> 20} MB/s" if rate else "off"
    print(
        f"{what:10} {cells[0]:6.2f} {cells[1]:5.2f} {cells[2]:6.2f} {cells[3]:6.1f} {grown / 1e6:10.0f}",
        flush=True,
    )


@contextlib.contextmanager
def copied(original: Path, copy: Path) -> Iterator[Path]:
    """Give one round a copy of the directory, and remove it afterwards."""
    shutil.copytree(original, copy)
    try:
        yield copy
    finally:
        shutil.rmtree(copy)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.space", description=__doc__)
    parser.add_argument("what", choices=("scattered", "mix", "latency"))
    parser.add_argument("--gb", type=float, default=0.0, help="3, 20 and 2 unless given")
    parser.add_argument("--topics", type=int, default=1000)
    parser.add_argument("--mb-per-second", type=float, default=60.0)
    parser.add_argument("--reclaim", type=int, default=16 << 20, help="bytes per second; 0: off")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--per-second", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--svg", type=Path)
    parser.add_argument("--directory", type=Path, help="where to work; removed afterwards")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.directory) as name:
        path = Path(name)
        if chosen.what == "scattered":
            asyncio.run(scattered(path, chosen.gb or 3, chosen.reclaim))
        elif chosen.what == "mix":
            found = asyncio.run(
                mix(path, chosen.gb or 20, chosen.topics, chosen.mb_per_second, chosen.reclaim, chosen.seed)
            )
            if chosen.svg:
                chosen.svg.write_text(chart(found.samples))
        else:
            latency(path, chosen.gb or 2, chosen.seconds, chosen.per_second, chosen.rounds)


if __name__ == "__main__":
    main()
