"""The bulk scanner finds the same frames and values as a walk frame by frame."""

from __future__ import annotations

import random

import pytest
from benchmarks.load import wire
from benchmarks.load.runs import Scanner
from benchmarks.load.wire import Command


def receipt(producer: int, sequence: int, ledger: int, entry: int) -> bytes:
    message_id = wire.field(1, ledger) + wire.field(2, entry)
    parts = wire.field(1, producer), wire.field(2, sequence), wire.field(3, message_id)
    return wire.frame(wire.command(Command.SEND_RECEIPT, *parts))


def columns(stream: bytes, cuts: list[int]) -> list[tuple[int, int, int, int]]:
    """Receipts as the scanner reads them when the stream arrives in pieces."""
    buffer, scanner, start, end, found = bytearray(len(stream)), Scanner(), 0, 0, []
    for cut in [*cuts, len(stream)]:
        buffer[end:cut] = stream[end:cut]
        end = cut
        for run in scanner.scan(buffer, start, end):
            if run.layout.kind != Command.SEND_RECEIPT:
                found.extend([(-run.layout.kind, 0, 0, 0)] * run.count)
                continue
            kind = int(Command.SEND_RECEIPT)
            parts = (run.column(kind, 1), run.column(kind, 2), run.column(kind, 3, 1), run.column(kind, 3, 2))
            found.extend(zip(*(part.tolist() for part in parts), strict=True))
        start = scanner.position
    assert start == len(stream)
    return found


@pytest.mark.parametrize("seed", range(20))
def test_values_survive_any_mixture_and_any_cut(seed: int) -> None:
    rng = random.Random(seed)
    wanted, stream = [], b""
    for _ in range(rng.randrange(1, 60)):
        if rng.random() < 0.1:
            wanted.append((-int(Command.PING), 0, 0, 0))
            stream += wire.ping()
            continue
        first = [rng.choice([0, 5, 126, 127, 128, 16383, 2**40]) for _ in range(4)]
        for step in range(rng.choice([1, 1, 2, 40])):
            values = (first[0], first[1] + step, first[2], first[3] + step)
            wanted.append(values)
            stream += receipt(*values)
    cuts = sorted(rng.randrange(len(stream) + 1) for _ in range(rng.randrange(5)))
    assert columns(stream, cuts) == wanted


def test_equal_sizes_with_other_widths_are_not_one_run() -> None:
    # one byte moves from the entry id to the sequence id: sizes are equal, places are not
    stream = receipt(1, 127, 3, 16384) + receipt(1, 128, 3, 127 * 128) + receipt(1, 129, 3, 1)
    assert columns(stream, []) == [(1, 127, 3, 16384), (1, 128, 3, 127 * 128), (1, 129, 3, 1)]


def test_a_frame_that_cannot_be_is_refused() -> None:
    with pytest.raises(wire.WireError):
        columns(wire.HEAD.pack(8, 100) + bytes(200), [])
