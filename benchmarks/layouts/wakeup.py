"""How long from "the sync returned" to "the loop's callback runs" while the loop's thread is busy in Python.

A second process stands for the disk: it writes the time into a pipe, the writer thread blocks in os.read as it would
in fdatasync (interpreter lock released), and hands over with call_soon_threadsafe. perf_counter is one clock for all
processes of the machine (CLOCK_MONOTONIC).
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import struct
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import uvloop

PATIENCE = 6.0  # seconds
STAMP = struct.Struct("<d")


@dataclass(frozen=True)
class Wakeup:
    thread_p50_ms: float
    loop_p50_ms: float
    loop_p99_ms: float
    worst_ms: float
    work_per_s: float


def disk_stand_in(fd: int, pause: float, count: int) -> None:
    for _ in range(count):
        time.sleep(pause)
        os.write(fd, STAMP.pack(time.perf_counter()))


def chunk(steps: int) -> int:
    total = 0
    for step in range(steps):
        total += step & 7
    return total


def steps_for(seconds: float) -> int:
    start = time.perf_counter()
    for _ in range(5):
        chunk(100_000)
    return int(500_000 * seconds / (time.perf_counter() - start))


def measure(loop: asyncio.AbstractEventLoop, interval: float, turn: float, through_thread: bool, count: int) -> Wakeup:
    """`turn`: Python work between two looks at the sockets; without `through_thread` the loop reads the pipe."""
    sys.setswitchinterval(interval)
    out, into = os.pipe()
    steps = steps_for(turn)
    thread_late: list[float] = []
    loop_late: list[float] = []
    turns = 0

    def landed(stamp: float) -> None:
        loop_late.append(time.perf_counter() - stamp)
        if len(loop_late) == count:
            loop.stop()

    def writer() -> None:
        for _ in range(count):
            (stamp,) = STAMP.unpack(os.read(out, STAMP.size))
            thread_late.append(time.perf_counter() - stamp)
            loop.call_soon_threadsafe(landed, stamp)

    def busy() -> None:
        nonlocal turns
        chunk(steps)
        turns += 1
        if time.perf_counter() - start > PATIENCE:  # starved: let go of the lock until the thread has caught up
            time.sleep(0.001)
        loop.call_soon(busy)

    process = multiprocessing.get_context("fork").Process(target=disk_stand_in, args=(into, 0.007, count))
    process.start()
    if through_thread:
        threading.Thread(target=writer, daemon=True).start()
    else:
        loop.add_reader(out, lambda: landed(STAMP.unpack(os.read(out, STAMP.size))[0]))
    start = time.perf_counter()
    loop.call_soon(busy)
    loop.run_forever()
    seconds = time.perf_counter() - start
    loop.remove_reader(out)
    process.join()
    os.close(out)
    os.close(into)
    sys.setswitchinterval(0.005)
    late, threads = sorted(loop_late), sorted(thread_late or [0.0])
    middle, tail = late[count // 2] * 1e3, late[int(count * 0.99)] * 1e3
    return Wakeup(threads[len(threads) // 2] * 1e3, middle, tail, late[-1] * 1e3, turns * steps / seconds)


LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.SelectorEventLoop,
    "uvloop": uvloop.new_event_loop,
}
