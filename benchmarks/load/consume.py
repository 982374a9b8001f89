"""Consumers: grant permits, take MESSAGE frames in bulk, acknowledge each entry with an ACK command of its own.

As official clients do it, a consumer starts with ``queue`` permits and gives the half of them back whenever so many
messages came. An ACK holds one message id, echoed byte for byte from the MESSAGE; many ACK frames travel in one write.
"""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

from benchmarks.load import wire
from benchmarks.load.connection import Connection
from benchmarks.load.entries import crc32c
from benchmarks.load.runs import Run
from benchmarks.load.wire import Command

Ints = npt.NDArray[np.int64]

MESSAGE = int(Command.MESSAGE)
CHECKED_EVERY = 64  # runs; the first entry of such a run has its checksum computed


class Arrivals:
    """Counts for all consumers of one workload together, so that it is known when the last entry came."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.count = 0
        self.finished = 0.0

    @property
    def done(self) -> bool:
        return self.count >= self.expected


class ConsumeLoad:
    """One connection with one or more consumers whose ids follow each other."""

    def __init__(
        self,
        connection: Connection,
        arrivals: Arrivals,
        batch: int,
        queue: int,
        consumers: int = 1,
        first_consumer: int = 1,
    ) -> None:
        self.connection = connection
        self.arrivals = arrivals
        self.batch = batch
        self.queue = queue
        self.first_consumer = first_consumer
        self.bad_checksums = 0
        self._used = np.zeros(consumers, np.int64)  # permits, since the last FLOW
        self._runs = 0
        self._seen: list[tuple[Ints, Ints, Ints, Ints]] = []
        connection.handlers[Command.MESSAGE] = self._on_messages

    def start(self) -> None:
        consumers = range(self.first_consumer, self.first_consumer + len(self._used))
        self.connection.send([b"".join(wire.flow(consumer, self.queue) for consumer in consumers)])

    def _on_messages(self, run: Run) -> None:
        consumers = run.column(MESSAGE, 1)
        numbers = run.numbers()
        self._seen.append((consumers, run.column(MESSAGE, 2, 1), run.column(MESSAGE, 2, 2), numbers))
        if self._runs % CHECKED_EVERY == 0:
            self._check(run)
        self._runs += 1
        self.connection.send([self._acks(run)])
        self._used += np.bincount(consumers - self.first_consumer, minlength=len(self._used)) * self.batch
        low = np.flatnonzero(self._used >= max(1, self.queue // 2))
        if len(low):
            flows = [wire.flow(self.first_consumer + int(at), int(self._used[at])) for at in low]
            self.connection.send([b"".join(flows)])
            self._used[low] = 0
        self.arrivals.count += run.count
        if self.arrivals.done:
            self.arrivals.finished = time.perf_counter()

    def _acks(self, run: Run) -> bytes:
        """One ACK frame per row: consumer id as in the MESSAGE, ledger and entry id copied from its message id."""
        values = run.layout.values
        id_start = values[(MESSAGE, 2, 1)][0] - 1
        id_end = values[(MESSAGE, 2, 2)][1]
        consumer_start, consumer_end = values[(MESSAGE, 1)]
        consumer_id = wire.read_varint(run.command(), consumer_start - 8)[0]
        row = wire.ack(consumer_id, bytes(run.rows[0, id_start:id_end]))
        acks = np.tile(np.frombuffer(row, np.uint8), (run.count, 1))
        if run.count > 1:
            acks[:, len(row) - (id_end - id_start) :] = run.rows[:, id_start:id_end]
            # frame head, type, tag and length of the body, tag of consumer_id: 8 + 2 + 2 + 1 bytes
            acks[:, 13 : 13 + consumer_end - consumer_start] = run.rows[:, consumer_start:consumer_end]
        return acks.tobytes()

    def _check(self, run: Run) -> None:
        entry = run.entry()
        magic, checksum = int.from_bytes(entry[:2], "big"), int.from_bytes(entry[2:6], "big")
        if magic != wire.MAGIC or crc32c(entry[6:]) != checksum:
            self.bad_checksums += 1

    def seen(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Consumer id, ledger, entry id and number of every MESSAGE, in the order of arrival."""
        if not self._seen:
            none = np.zeros(0, np.int64)
            return none, none, none, none
        consumers, ledgers, entries, numbers = (np.concatenate(parts) for parts in zip(*self._seen, strict=True))
        return consumers, ledgers, entries, numbers


def problems(loads: list[ConsumeLoad], positions: tuple[Ints, Ints], stride: int = 1) -> list[str]:
    """Compare what came with what was produced.

    ``positions`` are the ids that the producers got, by entry number. Every number must come exactly once, under its
    own id, and to each consumer in rising order, at least within numbers that are equal modulo ``stride`` (topics).
    """
    found = []
    parts = [load.seen() for load in loads]
    consumers = np.concatenate([part[0] + 1_000_000 * at for at, part in enumerate(parts)])
    ledgers, entries, numbers = (np.concatenate([part[column] for part in parts]) for column in (1, 2, 3))
    count = len(positions[0])
    if len(numbers) != count:
        found.append(f"{len(numbers)} messages for {count} entries")
    if len(numbers) and (numbers.min() < 0 or numbers.max() >= count):
        return [*found, "messages that nobody sent"]
    if (np.bincount(numbers, minlength=count) != 1).any():
        found.append("entries missing or twice")
    if (positions[0][numbers] != ledgers).any() or (positions[1][numbers] != entries).any():
        found.append("message ids differ from the receipts")
    group = consumers * stride + numbers % stride
    order = np.argsort(group, kind="stable")
    rising = np.diff(numbers[order]) > 0
    if not (rising | (np.diff(group[order]) != 0)).all():
        found.append("messages out of order")
    if bad := sum(load.bad_checksums for load in loads):
        found.append(f"{bad} entries with a wrong checksum")
    return found
