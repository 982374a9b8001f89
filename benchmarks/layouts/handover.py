"""Group commits of 64 KB under a loop that is busy in Python: a writer thread against a process that only syncs.

The writer thread needs the interpreter lock to go on after write and again after fdatasync. A process that was given
the same open file description syncs what the loop wrote into the page cache and answers with one byte; the loop hears
of it from its own selector and never competes for the lock.
"""

from __future__ import annotations

import asyncio
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.layouts.wakeup import chunk, steps_for

GROUP = 64 << 10
SYNC_PROCESS = """
import os, sys
file, come, go = map(int, sys.argv[1:])
while os.read(come, 1):
    os.fdatasync(file)
    os.write(go, b'.')
"""


@dataclass
class Handover:
    """Commits one group after another while `busy` fills the loop; `start` begins one, `landed` ends it."""

    loop: asyncio.AbstractEventLoop
    seconds: float
    begun: float = 0.0
    turns: int = 0
    late: list[float] = field(default_factory=list)
    start: Callable[[], None] = lambda: None

    def begin(self) -> None:
        self.begun = time.perf_counter()
        self.start()

    def landed(self) -> None:
        self.late.append(time.perf_counter() - self.begun)
        self.begin()

    def run(self, turn: float) -> tuple[float, float, float, float, float]:
        """Commits per second, p50, p99, worst (ms; an unfinished commit counts), million steps of Python per second."""
        steps = steps_for(turn)

        def busy() -> None:
            chunk(steps)
            self.turns += 1
            if time.perf_counter() > end:
                self.loop.stop()
            else:
                self.loop.call_soon(busy)

        end = time.perf_counter() + self.seconds
        self.loop.call_soon(busy)
        self.loop.call_soon(self.begin)
        self.loop.run_forever()
        late = sorted([*self.late, time.perf_counter() - self.begun])
        half, tail = late[len(late) // 2] * 1e3, late[int(len(late) * 0.99)] * 1e3
        rate = self.turns * steps / self.seconds / 1e6
        return len(self.late) / self.seconds, half, tail, late[-1] * 1e3, rate


def by_thread_in_one_call(loop: asyncio.AbstractEventLoop, fd: int, turn: float, seconds: float) -> tuple[float, ...]:
    return by_thread(loop, fd, turn, seconds, one_call=True)


def by_thread(
    loop: asyncio.AbstractEventLoop, fd: int, turn: float, seconds: float, one_call: bool = False
) -> tuple[float, ...]:
    """`one_call`: a write with RWF_DSYNC, so the lock is asked for once per commit and not twice."""
    work: queue.SimpleQueue[bool] = queue.SimpleQueue()
    handover = Handover(loop, seconds, start=lambda: work.put(True))
    group = os.urandom(GROUP)

    def writer() -> None:
        at = 0
        while work.get():
            if one_call:
                os.pwritev(fd, [group], at % (64 << 20), os.RWF_DSYNC)
            else:
                os.pwrite(fd, group, at % (64 << 20))
                os.fdatasync(fd)
            at += GROUP
            if loop.is_closed():
                return
            loop.call_soon_threadsafe(handover.landed)

    thread = threading.Thread(target=writer)
    thread.start()
    result = handover.run(turn)
    work.put(False)
    thread.join()
    return result


def by_process(loop: asyncio.AbstractEventLoop, fd: int, turn: float, seconds: float) -> tuple[float, ...]:
    ask_out, ask_in = os.pipe()
    answer_out, answer_in = os.pipe()
    arguments = [str(number) for number in (fd, ask_out, answer_in)]
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", SYNC_PROCESS, *arguments], pass_fds=(fd, ask_out, answer_in)
    )
    os.close(ask_out)
    os.close(answer_in)
    group, at = os.urandom(GROUP), 0

    def start() -> None:
        nonlocal at
        os.pwrite(fd, group, at % (64 << 20))
        at += GROUP
        os.write(ask_in, b".")

    handover = Handover(loop, seconds, start=start)

    def heard() -> None:
        os.read(answer_out, 1)
        handover.landed()

    loop.add_reader(answer_out, heard)
    result = handover.run(turn)
    loop.remove_reader(answer_out)
    os.close(ask_in)
    process.wait()
    os.close(answer_out)
    return result
