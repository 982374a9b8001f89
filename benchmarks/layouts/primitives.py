"""Disk primitives under a group commit: how to extend the file, how to gather the group, whether two syncs overlap."""

from __future__ import annotations

import mmap
import os
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import google_crc32c

from benchmarks.layouts.gauge import IOV_MAX, MIB, percentile

GROUPS = (4096, 64 << 10, 256 << 10, MIB, 4 * MIB)
FILE = 128 * MIB
MODES = ("append", "fallocated", "recycled", "recycled dsync", "append direct", "recycled direct")


@dataclass(frozen=True)
class Speed:
    mb_s: float
    p50_ms: float
    p99_ms: float


def filled(path: str) -> None:
    noise = os.urandom(4 * MIB)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for _ in range(FILE // len(noise)):
        os.write(fd, noise)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)  # recycled files come back with a cold cache
    os.close(fd)


def prepared(mode: str, path: str) -> int:
    flags = os.O_WRONLY | os.O_CREAT
    if mode.startswith("recycled"):
        filled(path)
    else:
        flags |= os.O_TRUNC
    if mode.endswith("direct"):
        flags |= os.O_DIRECT
    fd = os.open(path, flags)
    if mode == "fallocated":
        os.posix_fallocate(fd, 0, FILE)
    os.fsync(fd)
    return fd


def extend(mode: str, path: str, group: int, seconds: float) -> list[float]:
    """Latency of each write + sync of one group, for at most `seconds` or one file."""
    fd = prepared(mode, path)
    room = mmap.mmap(-1, group)  # page aligned, as O_DIRECT wants it
    room.write(os.urandom(group))
    samples: list[float] = []
    offset, stop = 0, time.perf_counter() + seconds
    while offset + group <= FILE and (now := time.perf_counter()) < stop:
        if mode.endswith("dsync"):
            os.pwritev(fd, [room], offset, os.RWF_DSYNC)
        else:
            os.pwrite(fd, room, offset)
            os.fdatasync(fd)
        samples.append(time.perf_counter() - now)
        offset += group
    os.close(fd)
    os.unlink(path)
    return samples


def extending(folder: str, seconds: float, rounds: int) -> Iterator[tuple[str, int, Speed]]:
    for group in GROUPS:
        samples: dict[str, list[float]] = {mode: [] for mode in MODES}
        for _ in range(rounds):  # alternate, so that a noisy minute hits every mode
            for mode in MODES:
                samples[mode] += extend(mode, os.path.join(folder, "extend"), group, seconds)
        for mode, times in samples.items():
            mb_s = group * len(times) / sum(times) / 1e6
            yield mode, group, Speed(mb_s, percentile(times, 0.5) * 1e3, percentile(times, 0.99) * 1e3)


def in_flight(folder: str, group: int, files: int, flights: int, total: int) -> float:
    """MB/s of `flights` threads, each write + fdatasync of its own groups, over one or two files."""
    fds = [os.open(os.path.join(folder, f"flight{n}"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC) for n in range(files)]
    payload = os.urandom(group)
    turn = threading.Lock()
    sent = 0

    def fly(fd: int) -> None:
        nonlocal sent
        while True:
            with turn:  # writes keep their order, syncs overlap
                if sent >= total:
                    return
                sent += group
                os.write(fd, payload)
            os.fdatasync(fd)

    threads = [threading.Thread(target=fly, args=(fds[n % files],)) for n in range(flights)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - start
    for n, fd in enumerate(fds):
        os.close(fd)
        os.unlink(os.path.join(folder, f"flight{n}"))
    return total / seconds / 1e6


def best(work: Callable[[], object], rounds: int = 7) -> float:
    """Shortest of some rounds in microseconds: pure CPU work, where noise only adds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times) * 1e6


def gathering(folder: str, size: int, count: int) -> dict[str, float]:
    """Microseconds to bring one group of `count` entries into the page cache, and to checksum it."""
    path = os.path.join(folder, "gather")
    parts = [os.urandom(size) for _ in range(count)]
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)

    def writev() -> None:
        offset = 0
        for start in range(0, count, IOV_MAX):
            offset += os.pwritev(fd, parts[start : start + IOV_MAX], offset)

    def crc_parts() -> int:
        crc = 0
        for part in parts:
            crc = google_crc32c.extend(crc, part)
        return crc

    joined = b"".join(parts)
    writev()
    figures = {
        "writev of parts": best(writev),
        "join + write": best(lambda: os.pwrite(fd, b"".join(parts), 0)),
        "join alone": best(lambda: b"".join(parts)),
        "crc32c of joined": best(lambda: google_crc32c.value(joined)),
        "crc32c part by part": best(crc_parts),
        "zlib.crc32 of joined": best(lambda: zlib.crc32(joined)),
    }
    os.close(fd)
    os.unlink(path)
    return figures


def holds_gil(work: Callable[[], object], seconds: float = 0.5) -> float:
    """Share of the main thread's idle speed that is left while another thread does only `work`."""

    def spin(until: float) -> int:
        turns = 0
        while time.perf_counter() < until:
            turns += 1
        return turns

    alone = spin(time.perf_counter() + seconds)
    going = True

    def other() -> None:
        while going:
            work()

    thread = threading.Thread(target=other)
    thread.start()
    beside = spin(time.perf_counter() + seconds)
    going = False
    thread.join()
    return beside / alone
