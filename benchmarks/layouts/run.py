"""`python -m benchmarks.layouts.run [--folder DIR] [part ...]`: prints the tables of decision 002 (a few minutes)."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import zlib
from collections.abc import Callable

import google_crc32c
import uvloop

from benchmarks.layouts import handover, primitives, wakeup
from benchmarks.layouts.gauge import MIB, Disk, Stopwatch, percentile
from benchmarks.layouts.interleaved import Interleaved
from benchmarks.layouts.journaled import Journaled
from benchmarks.layouts.workload import SHAPES, Layout, Run, Shape, drive


def part_extend(folder: str) -> None:
    print("| group KB | mode | MB/s | p50 ms | p99 ms |\n|---|---|---|---|---|")
    for mode, group, speed in primitives.extending(folder, 0.4, 3):
        print(f"| {group >> 10} | {mode} | {speed.mb_s:.0f} | {speed.p50_ms:.2f} | {speed.p99_ms:.2f} |", flush=True)


def part_flight(folder: str) -> None:
    shapes = (("1 thread, 1 file", 1, 1), ("2 threads, 1 file", 1, 2), ("2 threads, 2 files", 2, 2))
    print("| group KB | " + " | ".join(name for name, _, _ in shapes) + " |\n|---|---|---|---|")
    for group, total in ((4096, 2 * MIB), (64 << 10, 32 * MIB), (256 << 10, 64 * MIB), (MIB, 128 * MIB)):
        cells: list[list[float]] = [[] for _ in shapes]
        for _ in range(3):
            for cell, (_, files, flights) in zip(cells, shapes, strict=True):
                cell.append(primitives.in_flight(folder, group, files, flights, total))
        print(f"| {group >> 10} | " + " | ".join(f"{sorted(cell)[1]:.0f} MB/s" for cell in cells) + " |", flush=True)


def part_gather(folder: str) -> None:
    for size, count in ((100, 40), (100, 1000), (100, 10_000), (100_000, 8), (100_000, 64)):
        figures = primitives.gathering(folder, size, count)
        print(f"{count} x {size} B: " + ", ".join(f"{name} {us:.0f} us" for name, us in figures.items()), flush=True)
    block = os.urandom(4 * MIB)
    parts = [block[n : n + 100_000] for n in range(0, 4 * MIB, 100_000)]
    works: dict[str, Callable[[], object]] = {
        "google_crc32c": lambda: google_crc32c.value(block),
        "zlib.crc32": lambda: zlib.crc32(block),
        "join": lambda: b"".join(parts),
    }
    for name, work in works.items():
        print(f"main thread keeps {primitives.holds_gil(work):.2f} of its speed beside {name} of 4 MiB blocks")


def part_wakeup(folder: str) -> None:
    print(
        "| loop | turn ms | switch ms | via | thread p50 | loop p50 | loop p99 | worst ms | work M/s |"
        + "\n"
        + "|---" * 9
        + "|"
    )
    for name, make in wakeup.LOOPS.items():
        for turn in (0.0001, 0.001, 0.004):
            for interval, threaded in ((0.005, True), (0.001, True), (0.0002, True), (0.00005, True), (0.005, False)):
                loop = make()
                seen = wakeup.measure(loop, interval, turn, threaded, 100)
                loop.close()
                via = "thread" if threaded else "loop reads fd"
                print(
                    f"| {name} | {turn * 1e3:g} | {interval * 1e3:g} | {via} | {seen.thread_p50_ms:.2f} | "
                    f"{seen.loop_p50_ms:.2f} | {seen.loop_p99_ms:.2f} | "
                    f"{seen.worst_ms:.1f} | {seen.work_per_s / 1e6:.1f} |",
                    flush=True,
                )


def part_handover(folder: str) -> None:
    print("| turn ms | switch ms | via | commits/s | p50 | p99 | worst ms | work M/s |" + "\n" + "|---" * 8 + "|")
    path = os.path.join(folder, "handover")
    primitives.filled(path)
    fd = os.open(path, os.O_WRONLY)
    for turn in (0.00005, 0.0003, 0.001, 0.004):
        for interval, by in (
            (0.005, handover.by_thread),
            (0.001, handover.by_thread),
            (0.0002, handover.by_thread),
            (0.00005, handover.by_thread),
            (0.00001, handover.by_thread),
            (0.0002, handover.by_thread_in_one_call),
            (0.00005, handover.by_thread_in_one_call),
            (0.005, handover.by_process),
        ):
            sys.setswitchinterval(interval)
            loop = uvloop.new_event_loop()
            rate, half, tail, worst, work = by(loop, fd, turn, 2.0)
            print(
                f"| {turn * 1e3:g} | {interval * 1e3:g} | {by.__name__[3:]} | {rate:.0f} | {half:.2f} | {tail:.2f} | "
                f"{worst:.1f} | {work:.1f} |",
                flush=True,
            )
    os.close(fd)


MAKERS: dict[str, Callable[[str, int, Disk], Layout]] = {
    "A": Interleaved,
    "A recycled": lambda folder, topics, disk: Interleaved(folder, topics, disk, spares=8),
    "B": Journaled,
    "C": lambda folder, topics, disk: Journaled(folder, topics, disk, direct=64 << 10),
}


def read_back(layout: Layout, topics: list[int], prefetch: bool) -> str:
    """Cold (this machine's page cache; the host's is out of reach): entries, time, CPU."""
    layout.forget_cache()
    with Stopwatch() as watch:
        sizes = [len(payload) for topic in topics for payload in layout.read(topic, prefetch)]
    rate = f"{sum(sizes) / watch.wall / 1e6:.0f} MB/s, {len(sizes) / watch.wall / 1e3:.0f} k/s"
    return f"{rate}, CPU {watch.cpu / len(sizes) * 1e6:.1f} us/entry, {watch.wall / len(topics) * 1e3:.1f} ms/topic"


def one_layout(folder: str, key: str, shape: Shape) -> None:
    disk = Disk()
    with tempfile.TemporaryDirectory(dir=folder) as place:
        layout = MAKERS[key](place, shape.topics, disk)
        run = drive(layout, shape)
        entries, mb, watch = run.entries, run.payload / 1e6, run.watch
        print(
            f"| {shape.name} | {layout.name} | {mb / watch.wall:.0f} | {entries / watch.wall / 1e3:.1f} | "
            f"{mb / run.committed_s:.0f} | {watch.cpu:.2f} | {watch.cpu / entries * 1e6:.1f} | {disk.syncs} | "
            f"{disk.written / run.payload:.2f} | {percentile(run.commits_ms, 0.5):.1f} / "
            f"{percentile(run.commits_ms, 0.99):.1f} | {sum(run.groups) // len(run.groups)} |",
            flush=True,
        )
        topics = [0] if shape.topics == 1 or shape.hot else list(range(17, shape.topics, shape.topics // 40))
        notes = [("", read_back(layout, topics, False))]
        if shape.hot:
            notes.append((" of 20 cold topics", read_back(layout, list(range(17, shape.topics, 500)), False)))
        elif shape.topics > 1:
            notes.append((" of every topic", read_back(layout, list(range(shape.topics)), False)))
        if isinstance(layout, Interleaved):
            notes.append((" with prefetch", read_back(layout, topics, True)))
            notes.append((" index in memory", f"{layout.index_bytes() / 1e6:.1f} MB"))
            layout.forget_cache()
            before = disk.syncs
            with Stopwatch() as watch:
                moved = layout.tidy()
            cost = f"{moved / watch.wall / 1e6:.0f} MB/s, CPU {watch.cpu / moved * 1e9:.2f} s/GB"
            cost += f", syncs {disk.syncs - before}"
            notes += [(" tidy", cost), (" tidied", read_back(layout, topics, False))]
        for what, figures in notes:
            print(f"    read{what}: {figures}", flush=True)
        layout.close()


def part_layouts(folder: str) -> None:
    print(
        "| workload | layout | MB/s to the last byte filed | k entries/s | MB/s acknowledged | CPU s | us/entry | "
        "syncs | bytes written per byte | commit p50 / p99 ms | entries per group |"
    )
    print("|---" * 11 + "|")
    for shape in SHAPES:
        for key in MAKERS:
            one_layout(folder, key, shape)


def part_alternate(folder: str) -> None:
    """Writing only, three alternating rounds: the figures to compare layouts by. Median (all)."""
    print(
        "| workload | layout | MB/s acknowledged | MB/s filed | CPU us/entry | commit p50 | p99 ms |"
        + "\n"
        + "|---" * 7
        + "|"
    )
    for shape in SHAPES:
        runs: dict[str, list[Run]] = {key: [] for key in MAKERS if key != "B" or not shape.hot}  # B: 20 s a run there
        for _ in range(3):
            for key, taken in runs.items():
                with tempfile.TemporaryDirectory(dir=folder) as place:
                    layout = MAKERS[key](place, shape.topics, Disk())
                    taken.append(drive(layout, shape))
                    layout.close()
        for key, taken in runs.items():
            acked = sorted(run.payload / run.committed_s / 1e6 for run in taken)
            filed = sorted(run.payload / run.watch.wall / 1e6 for run in taken)
            cpu = sorted(run.watch.cpu / run.entries * 1e6 for run in taken)
            commits = [commit for run in taken for commit in run.commits_ms]
            print(
                f"| {shape.name} | {key} | {acked[1]:.0f} ({acked[0]:.0f}-{acked[2]:.0f}) | {filed[1]:.0f} | "
                f"{cpu[1]:.1f} | {percentile(commits, 0.5):.1f} | {percentile(commits, 0.99):.1f} |",
                flush=True,
            )


PARTS: dict[str, Callable[[str], None]] = {
    "extend": part_extend,
    "flight": part_flight,
    "gather": part_gather,
    "wakeup": part_wakeup,
    "handover": part_handover,
    "layouts": part_layouts,
    "alternate": part_alternate,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", default=None, help="where to write; must be on the disk in question")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.folder, prefix="layouts-") as folder:
        for name in chosen.parts or PARTS:
            print(f"\n## {name}", flush=True)
            PARTS[name](folder)


if __name__ == "__main__":
    main()
