"""Publish latency in an open loop: messages leave by the clock, whatever the broker does.

A message's latency runs from the moment at which it was due, not from the moment at which it was written, to the
moment at which its receipt was read. So a broker that stalls pays for every message that was due meanwhile
(no coordinated omission), and the generator's own lateness counts too; it is reported beside the result.
"""

from __future__ import annotations

import select
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.load.connection import Connection
from benchmarks.load.entries import Shape, send_run
from benchmarks.load.loop import LoadTimeout
from benchmarks.load.runs import Run
from benchmarks.load.wire import Command

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
DRAIN_SECONDS = 20.0


class LatencyLoad:
    """One producer that sends ``count`` messages at ``rate`` a second."""

    def __init__(self, connection: Connection, shape: Shape, count: int, rate: float, producer_id: int = 1) -> None:
        self.connection = connection
        self.count = count
        self.rate = rate
        numbers = np.arange(count, dtype=np.int64)
        self.run = send_run(shape, np.full(count, producer_id, np.int64), numbers)
        self.received = 0
        self.written = np.zeros(count)
        self.answered = np.zeros(count)
        self.started = 0.0
        self._sequences: list[Ints] = []
        connection.handlers[Command.SEND_RECEIPT] = self._on_receipts

    def drive(self) -> None:
        """Send on time and read receipts until all came."""
        sharpen_timers()
        connection, number = self.connection, self.connection.socket.fileno()
        self.started = time.perf_counter()
        limit = self.started + self.count / self.rate + DRAIN_SECONDS
        sent = 0
        while self.received < self.count:
            now = time.perf_counter()
            due = min(self.count, int((now - self.started) * self.rate) + 1)
            if due > sent:
                connection.send(self.run.pieces(sent, due))
                self.written[sent:due] = now
                sent = due
            connection.flush()
            wait = 0.5 if sent == self.count else max(0.0, self.started + sent / self.rate - time.perf_counter())
            readable, _, _ = select.select([number], [number] if connection.pending else [], [], wait)
            if readable:
                connection.receive()
            if now > limit:
                raise LoadTimeout(f"{self.received} of {self.count} receipts")

    def _on_receipts(self, run: Run) -> None:
        now = time.perf_counter()
        sequences = run.column(int(Command.SEND_RECEIPT), 2)
        self._sequences.append(sequences)
        self.answered[sequences] = now
        self.received += run.count

    def milliseconds(self) -> Floats:
        """Latency of every message, by sequence id."""
        due = self.started + np.arange(self.count) / self.rate
        return np.asarray((self.answered - due) * 1000.0, np.float64)

    def lateness_milliseconds(self) -> Floats:
        """How late the generator itself wrote each message."""
        due = self.started + np.arange(self.count) / self.rate
        return np.asarray((self.written - due) * 1000.0, np.float64)

    def problems(self) -> list[str]:
        sequences = np.concatenate(self._sequences) if self._sequences else np.zeros(0, np.int64)
        if not np.array_equal(sequences, np.arange(self.count)):
            return ["receipts missing or out of order"]
        return []


def sharpen_timers() -> None:
    """Let the kernel wake this process within a microsecond instead of fifty, where it allows it."""
    try:
        Path("/proc/self/timerslack_ns").write_text("1000")
    except OSError:
        pass
