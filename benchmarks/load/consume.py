"""Consumers: grant permits, take MESSAGE frames in bulk, acknowledge each entry with an ACK command of its own.

As official clients do it, a consumer starts with ``queue`` permits and gives the half of them back whenever so many
messages came. An ACK holds one message id, echoed byte for byte from the MESSAGE; many ACK frames travel in one write.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.load import wire
from benchmarks.load.connection import Connection
from benchmarks.load.entries import Shape, Template, crc32c
from benchmarks.load.runs import Run
from benchmarks.load.wire import Command

Ints = npt.NDArray[np.int64]

MESSAGE = int(Command.MESSAGE)
CHECKED_EVERY = 64  # runs; of each such run one entry is compared byte by byte with what was sent


class Arrivals:
    """Counts for all consumers of one workload together; an entry that comes twice counts once."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.count = 0
        self.twice = 0
        self._came = np.zeros(expected, np.bool_)

    @property
    def done(self) -> bool:
        return self.count >= self.expected

    def add(self, numbers: Ints) -> None:
        if int(numbers.min()) < 0 or int(numbers.max()) >= self.expected:
            raise wire.WireError("a message that nobody sent")
        fresh = numbers[~self._came[numbers]]
        if len(numbers) > 1 and not (np.diff(numbers) > 0).all():
            fresh = np.unique(fresh)
        self._came[fresh] = True
        self.count += len(fresh)
        self.twice += len(numbers) - len(fresh)


class ConsumeLoad:
    """One connection with one or more consumers whose ids follow each other."""

    def __init__(
        self,
        connection: Connection,
        arrivals: Arrivals,
        shape: Shape,
        queue: int,
        consumers: int = 1,
        first_consumer: int = 1,
    ) -> None:
        self.connection = connection
        self.arrivals = arrivals
        self.batch = shape.batch
        self.queue = queue
        self.first_consumer = first_consumer
        self.altered = 0  # entries that are not what was sent
        self.without_checksum = False
        self._template = Template(shape)
        self._used = np.zeros(consumers, np.int64)  # permits, since the last FLOW
        self._runs = 0
        self._seen: list[tuple[Ints, Ints, Ints, Ints]] = []
        connection.handlers[Command.MESSAGE] = self._on_messages

    def start(self) -> None:
        consumers = range(self.first_consumer, self.first_consumer + len(self._used))
        self.connection.send([b"".join(wire.flow(consumer, self.queue) for consumer in consumers)])

    def _on_messages(self, run: Run) -> None:
        consumers = run.column(MESSAGE, 1)
        if int(consumers.min()) < self.first_consumer or int(consumers.max()) >= self.first_consumer + len(self._used):
            raise wire.WireError("a message for a consumer that is not ours")
        numbers = run.numbers()
        self._seen.append((consumers, run.column(MESSAGE, 2, 1), run.column(MESSAGE, 2, 2), numbers))
        if self._runs % CHECKED_EVERY == 0:
            self._check(run, int(numbers[0]))
        self._runs += 1
        self.connection.send([self._acks(run)])
        self._used += np.bincount(consumers - self.first_consumer, minlength=len(self._used)) * self.batch
        low = np.flatnonzero(self._used >= max(1, self.queue // 2))
        if len(low):
            flows = [wire.flow(self.first_consumer + int(at), int(self._used[at])) for at in low]
            self.connection.send([b"".join(flows)])
            self._used[low] = 0
        self.arrivals.add(numbers)

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

    def _check(self, run: Run, number: int) -> None:
        entry = run.entry()
        if int.from_bytes(entry[:2], "big") == wire.MAGIC:
            intact = int.from_bytes(entry[2:6], "big") == crc32c(entry[6:])
            entry = entry[6:]
        else:
            intact = self.without_checksum = True
        if not intact or entry != self._template.body_of(number):
            self.altered += 1

    def seen(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Consumer id, ledger, entry id and number of every MESSAGE, in the order of arrival."""
        if not self._seen:
            none = np.zeros(0, np.int64)
            return none, none, none, none
        consumers, ledgers, entries, numbers = (np.concatenate(parts) for parts in zip(*self._seen, strict=True))
        return consumers, ledgers, entries, numbers


@dataclass(frozen=True)
class Order:
    """Which order a workload may count on: that of the entries whose numbers have the same ``line``."""

    line: Callable[[Ints], Ints]
    promised: bool = True  # Shared promises none; then disorder is only remarked
    one_consumer: bool = False  # all entries of a line go to one consumer (Key_Shared)


def one_line(numbers: Ints) -> Ints:
    return np.zeros(len(numbers), np.int64)


class Verdict:
    """What came, compared with what was produced: ``positions`` are the producers' ids by entry number.

    Every number must come under its own id and none may be missing; repetitions are not looked at for order.
    """

    def __init__(self, loads: list[ConsumeLoad], positions: tuple[Ints, Ints], order: Order) -> None:
        self.problems: list[str] = []
        self.remarks: list[str] = []
        parts = [load.seen() for load in loads]
        consumers = np.concatenate([part[0] for part in parts])
        ledgers, entries, numbers = (np.concatenate([part[column] for part in parts]) for column in (1, 2, 3))
        count = len(positions[0])
        if (np.bincount(numbers, minlength=count) == 0).any():
            self.problems.append("entries missing")
        if (positions[0][numbers] != ledgers).any() or (positions[1][numbers] != entries).any():
            self.problems.append("message ids differ from the receipts")
        _, first = np.unique(numbers, return_index=True)
        first.sort()
        self._order(consumers[first], numbers[first], order)
        if altered := sum(load.altered for load in loads):
            self.problems.append(f"{altered} of the entries looked at differ from what was sent")
        if twice := loads[0].arrivals.twice:
            self.remarks.append(f"{twice} messages came again unasked")
        if any(load.without_checksum for load in loads):
            self.remarks.append("MESSAGE frames without a checksum")

    def _order(self, consumers: Ints, numbers: Ints, order: Order) -> None:
        lines = order.line(numbers)
        by_line = np.lexsort((np.arange(len(numbers)), consumers, lines))
        numbers, consumers, lines = numbers[by_line], consumers[by_line], lines[by_line]
        same_line = np.diff(lines) == 0
        same_consumer = np.diff(consumers) == 0
        if (same_line & same_consumer & (np.diff(numbers) < 0)).any():
            (self.problems if order.promised else self.remarks).append("messages out of order")
        if order.one_consumer and (same_line & ~same_consumer).any():
            self.problems.append("one key went to two consumers")
