"""A broker's arrivals without the broker: a producer side with its window full, one writer that commits groups."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from benchmarks.layouts.blocks import Group
from benchmarks.layouts.gauge import Stopwatch


class Layout(Protocol):
    name: str

    def commit(self, group: Group) -> None: ...
    def finish(self) -> None: ...
    def read(self, topic: int, prefetch: bool = False) -> Iterator[bytes]: ...
    def forget_cache(self) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True)
class Shape:
    name: str
    topics: int
    entries: int
    size: int  # of an ordinary entry
    window: int  # outstanding entries
    hot: int = 0  # that many topics get one 100 KB entry each per `every` ordinary entries
    every: int = 1


HOT_SIZE = 100_000
SHAPES = (
    Shape("1 hot topic, 100 B", 1, 600_000, 100, 1000),
    Shape("1 hot topic, 100 KB", 1, 8_000, 100_000, 64),
    Shape("10,000 topics, 100 B", 10_000, 800_000, 100, 10_000),
    Shape("10,000 topics, 5 hot 100 KB", 10_000, 80_000, 100, 3_520, hot=5, every=50),
)


@dataclass
class Run:
    entries: int = 0
    payload: int = 0
    committed_s: float = 0.0
    watch: Stopwatch = field(default_factory=Stopwatch)
    groups: list[int] = field(default_factory=list)
    commits_ms: list[float] = field(default_factory=list)


def arrivals(shape: Shape) -> Iterator[tuple[int, bytes]]:
    noise = os.urandom(HOT_SIZE + 4096)
    for number in range(shape.entries):
        at = number & 4095
        yield number % shape.topics, noise[at : at + shape.size]
        if shape.hot and number % shape.every == 0:
            for hot in range(shape.hot):
                yield hot, noise[at : at + HOT_SIZE]


def drive(layout: Layout, shape: Shape) -> Run:
    """Groups are whatever waits when the writer is free: at most the window, as with real producers."""
    run, room = Run(), threading.Condition()
    pending: Group = {}
    waiting = outstanding = 0
    ended = False

    def work_or_end() -> bool:
        return ended or waiting > 0

    def has_room() -> bool:
        return outstanding < shape.window

    def write() -> None:
        nonlocal pending, waiting, outstanding
        while True:
            with room:
                room.wait_for(work_or_end)
                if not waiting:
                    return
                group, count = pending, waiting
                pending, waiting = {}, 0
            start = time.perf_counter()
            layout.commit(group)
            run.commits_ms.append((time.perf_counter() - start) * 1e3)
            run.groups.append(count)
            with room:
                outstanding -= count
                room.notify_all()

    writer = threading.Thread(target=write)
    with run.watch:
        begin = time.perf_counter()
        writer.start()
        source = arrivals(shape)
        batch = 64 if shape.size < 4096 else 1  # about what one read of the socket brings
        while True:
            arrived = [entry for _, entry in zip(range(batch), source, strict=False)]
            if not arrived:
                break
            with room:
                room.wait_for(has_room)
                for topic, payload in arrived:
                    known = pending.get(topic)
                    if known is None:
                        pending[topic] = [payload]
                    else:
                        known.append(payload)
                    run.payload += len(payload)
                waiting += len(arrived)
                outstanding += len(arrived)
                run.entries += len(arrived)
                room.notify_all()
        with room:
            ended = True
            room.notify_all()
        writer.join()
        run.committed_s = time.perf_counter() - begin
        layout.finish()
    return run
