"""Producers: send a run of SEND frames with a bounded number of unanswered ones, and keep every receipt."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.load.connection import Connection
from benchmarks.load.entries import SendRun, Shape, send_run
from benchmarks.load.runs import Run
from benchmarks.load.wire import Command

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Receipts:
    """What the broker promised: four columns, in the order of arrival."""

    producer_ids: Ints
    sequence_ids: Ints
    ledgers: Ints
    entries: Ints


class ProduceLoad:
    """One connection with one or more producers that take turns; entry ``i`` goes to producer ``i % producers``."""

    def __init__(
        self, connection: Connection, shape: Shape, count: int, window: int, producers: int = 1, first_producer: int = 1
    ) -> None:
        self.connection = connection
        self.window = window
        self.producers = producers
        self.first_producer = first_producer
        numbers = np.arange(count, dtype=np.int64)
        self.run: SendRun = send_run(shape, first_producer + numbers % producers, numbers // producers)
        self.sent = 0
        self.received = 0
        self.started = self.finished = 0.0
        self._receipts: list[tuple[Ints, Ints, Ints, Ints]] = []
        connection.handlers[Command.SEND_RECEIPT] = self._on_receipts

    @property
    def done(self) -> bool:
        return self.received >= self.run.count

    def start(self) -> None:
        self.started = time.perf_counter()
        self._fill()

    def _fill(self) -> None:
        last = min(self.run.count, self.received + self.window)
        if last > self.sent:
            self.connection.send(self.run.pieces(self.sent, last))
            self.sent = last

    def _on_receipts(self, run: Run) -> None:
        kind = int(Command.SEND_RECEIPT)
        columns = run.column(kind, 1), run.column(kind, 2), run.column(kind, 3, 1), run.column(kind, 3, 2)
        self._receipts.append(columns)
        self.received += run.count
        if self.done:
            self.finished = time.perf_counter()
        self._fill()

    def receipts(self) -> Receipts:
        columns = [np.concatenate(parts) for parts in zip(*self._receipts, strict=True)]
        return Receipts(*columns)

    def problems(self) -> list[str]:
        """What is wrong with the receipts; nothing, if the broker did its work."""
        if not self.done:
            return [f"{self.received} receipts for {self.run.count} entries"]
        got = self.receipts()
        found = []
        if len(got.sequence_ids) != self.run.count:
            found.append(f"{len(got.sequence_ids)} receipts for {self.run.count} entries")
        else:
            # stable: the order of arrival within each producer
            order = np.argsort(got.producer_ids, kind="stable")
            numbers = np.arange(self.run.count, dtype=np.int64)
            wanted = np.argsort(numbers % self.producers, kind="stable")
            same_producer = got.producer_ids[order] == self.first_producer + wanted % self.producers
            same_sequence = got.sequence_ids[order] == wanted // self.producers
            if not (same_producer.all() and same_sequence.all()):
                found.append("receipts out of order or for other sequence ids")
        return found

    def positions(self) -> tuple[Ints, Ints]:
        """Ledger and entry id by entry number."""
        got = self.receipts()
        numbers = got.sequence_ids * self.producers + got.producer_ids - self.first_producer
        ledgers, entries = np.full(self.run.count, -1, np.int64), np.full(self.run.count, -1, np.int64)
        ledgers[numbers], entries[numbers] = got.ledgers, got.entries
        return ledgers, entries
