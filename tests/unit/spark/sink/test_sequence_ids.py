"""Numbers of rows, and what is done when the broker has some of them already."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.model.errors import InvalidValueError
from magnetar.protocol.batches import Batch
from magnetar.spark.sink.sequence_ids import (
    BATCH_BITS,
    FINE_ROWS,
    ROWS,
    SequenceId,
    StoredRows,
    UnreplayableError,
    check_rows,
    digest_bits,
    first_number,
    numbers,
)
from tests.support.batch_writer import BatchWriter

row_numbers = st.one_of(st.integers(0, ROWS - 1), st.integers(FINE_ROWS - 2, FINE_ROWS + 2), st.just(ROWS - 1))
parts = row_numbers.flatmap(
    lambda row: st.tuples(st.integers(0, 2**BATCH_BITS - 1), st.just(row), st.integers(0, (1 << digest_bits(row)) - 1))
)


@given(parts, parts)
def test_numbers_order_as_batches_and_rows_do(one: tuple[int, int, int], other: tuple[int, int, int]) -> None:
    first, second = SequenceId(*one), SequenceId(*other)
    assert SequenceId.of(first.number()) == first
    assert first.number() < 1 << 63
    if one[:2] != other[:2]:
        assert (first.number() < second.number()) == (one[:2] < other[:2])


@given(st.integers(0, 2**BATCH_BITS - 1), row_numbers)
def test_numbers_in_bulk_are_those_one_by_one(batch: int, row: int) -> None:
    rows = [one for one in range(row, row + 3) if one < ROWS and (one < FINE_ROWS) == (row < FINE_ROWS)]
    assert numbers(first_number(batch), np.array(rows, np.int64)).tolist() == [
        SequenceId(batch, one).number() for one in rows
    ]


def test_rows_and_batches_beyond_the_bits_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="new checkpoint"):
        first_number(1 << BATCH_BITS)
    check_rows(ROWS)
    with pytest.raises(InvalidValueError, match="maxMessagesPerTrigger"):
        check_rows(ROWS + 1)


class Broker:
    """Deduplication as brokers do it: an entry whose first id is known is dropped whole."""

    def __init__(self) -> None:
        self.last = -1
        self.messages = 0

    def send(self, batch: Batch) -> None:
        if batch.sequence_id > self.last:
            self.messages += batch.messages
            self.last = batch.highest_sequence_id


def attempt(broker: Broker, number: int, chunks: list[list[bytes]], fail_after: int | None = None) -> None:
    """A task as `task_sink` does it; fails after so many entries."""
    known = StoredRows(broker.last, number, "t")
    writer = BatchWriter("p", max_messages=3, digest_bits=digest_bits(0))
    row = sent = 0
    for chunk in chunks:
        ids = numbers(first_number(number), np.arange(row, row + len(chunk))).tolist()
        row += len(chunk)
        skip = known.stored_of(ids) if known.pending else 0
        for _ in writer.pack(0, chunk[:skip], ids[:skip]):
            pass
        if skip:
            known.compare(ids[skip - 1], writer.digest)
        for batch in writer.pack(0, chunk[skip:], ids[skip:]):
            if sent == fail_after:
                return
            broker.send(batch)
            sent += 1
    known.finish()


rows = st.lists(st.lists(st.binary(max_size=3), min_size=1, max_size=8), max_size=5)


@given(rows, rows, st.lists(st.integers(0, 5), max_size=4))
def test_each_row_is_stored_once_however_often_a_task_fails(
    first: list[list[bytes]], second: list[list[bytes]], failures: list[int]
) -> None:
    broker = Broker()
    expected = 0
    for number, chunks in enumerate((first, second)):
        expected += sum(map(len, chunks))
        for fail_after in failures:
            attempt(broker, number, chunks, fail_after)
        attempt(broker, number, chunks)
        assert broker.messages == expected


def test_other_rows_than_those_of_the_first_attempt_are_refused() -> None:
    rows = [[bytes([index]) for index in range(10)]]
    refused = 0
    others: list[list[list[bytes]]] = [
        [list(reversed(rows[0]))],
        [rows[0][1:]],
        [rows[0][:4]],
        [[*rows[0][:4], b"x", *rows[0][5:]]],
        [[]],
    ]
    for other in others:
        broker = Broker()
        attempt(broker, 4, rows, fail_after=2)
        with pytest.raises(UnreplayableError, match=r"micro-batch 4 .*delivery=at-least-once"):
            attempt(broker, 4, other)
        refused += broker.messages == 6
    assert refused == len(others)


def test_a_checkpoint_that_was_set_back_is_refused() -> None:
    broker = Broker()
    attempt(broker, 7, [[b"a"]])
    with pytest.raises(UnreplayableError, match="micro-batch 7 and this is 3"):
        attempt(broker, 3, [[b"b"]])
