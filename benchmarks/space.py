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
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from tools.servers import magnetar
from tools.servers.process import HOST

from benchmarks.space_mix import Directory, Sample, mix, segment_bytes
from magnetar.testing.rawclient import RawClient

_TOPIC: Final = "persistent://public/default/space-"


async def scattered(path: Path, gigabytes: float, reclaim: int) -> None:
    """The case that keeps most: one small message in every segment."""
    directory = Directory.at(path, 100, reclaim)
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


async def mix_on_disk(
    path: Path, gigabytes: float, topics: int, mb_per_second: float, reclaim: int, seed: int
) -> list[Sample]:
    """:func:`mix` in a directory, and a table of it."""
    found = await mix(Directory.at(path, mb_per_second, reclaim), gigabytes * 1e9, topics, seed)
    print("written GB  on disk MB  living MB  2 x living + 640 MiB  moved MB")
    for now in found[:: max(len(found) // 40, 1)]:
        cells = (now.disk / 1e6, now.living / 1e6, now.bound / 1e6, now.moved / 1e6)
        print(f"{now.written / 1e9:10.2f} {cells[0]:11.0f} {cells[1]:10.0f} {cells[2]:21.0f} {cells[3]:9.0f}")
    over = [now for now in found if now.disk > now.bound]
    worst = max(found, key=lambda now: now.disk / now.bound)
    print(
        f"{len(found)} samples, one a second: {len(over)} above the bound; the highest at "
        f"{100 * worst.disk / worst.bound:.1f} % of it ({worst.disk / 1e6:.0f} of {worst.bound / 1e6:.0f} MB)"
    )
    for at in _stretches(found):
        first, seconds = found[at[0]], len(at)
        before = found[max(at[0] - 10, 0)]
        most = max(found[i].disk - found[i].bound for i in at)
        print(
            f"above it for {seconds} s from {first.written / 1e9:.2f} GB on, by {most / 1e6:.0f} MB at most; what "
            f"lives went from {before.living / 1e6:.0f} to {first.living / 1e6:.0f} MB in the ten seconds before"
        )
    return found


def _stretches(samples: list[Sample]) -> list[list[int]]:
    """Which samples are above the bound, those side by side together."""
    found: list[list[int]] = []
    for i, one in enumerate(samples):
        if one.disk > one.bound:
            if not found or found[-1][-1] != i - 1:
                found.append([])
            found[-1].append(i)
    return found


def chart(samples: list[Sample]) -> str:
    """An SVG: on disk, what lives, and the bound, over what was written."""
    width, height, left, low = 720, 320, 60, 280
    most = max(max(one.disk, one.bound) for one in samples)
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
        + line(lambda one: one.bound, "#888", "2 x what lives + 640 MiB", 160)
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
    directory = Directory.at(path / "data" / "ledgers", 1e6, 0)
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
                mix_on_disk(path, chosen.gb or 20, chosen.topics, chosen.mb_per_second, chosen.reclaim, chosen.seed)
            )
            if chosen.svg:
                chosen.svg.write_text(chart(found))
        else:
            latency(path, chosen.gb or 2, chosen.seconds, chosen.per_second, chosen.rounds)


if __name__ == "__main__":
    main()
