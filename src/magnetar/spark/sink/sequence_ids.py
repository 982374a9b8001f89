"""How rows are numbered so that a broker with deduplication keeps each once (docs/decisions/009). Pure.

    producer name   spark.<query id>.<task>      one per task and topic-partition, the same after every restart
    sequence id     [29 bits batch id][34 bits: row of the task, and a digest]
                      rows before 131,072   [0][row: 17 bits][digest: 16 bits]
                      the others            [1][row - 131,072: 26 bits][digest: 7 bits]

Ids grow with batch and row, whatever the digest. The broker remembers the highest id it has stored for each name. A
task that starts over asks for it (`StoredRows`) and goes on after that row. The digest stands only in the last id of
an entry: it is a checksum over everything that the task has sent to that topic-partition in this micro-batch so far. If
the rows that the task is given now do not lead to the same digest at that row, they are not the rows of the first
attempt, and what would be skipped as known is not what the broker has. That is an error, and nothing is sent: the
layout of the query cannot be replayed. Few rows leave room for a longer digest: other rows pass for the same ones with
a chance of 1 in 65,536, and in tasks of more than 131,072 rows, which stream in after an outage, of 1 in 128.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from magnetar.model.errors import InvalidValueError, MagnetarError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BATCH_BITS: Final = 29
FINE_ROWS: Final = 1 << 17
"""Rows before this one leave room for the longer digest."""
ROWS: Final = FINE_ROWS + (1 << 26)
"""The rows that a task may have in a micro-batch."""
_FINE_BITS: Final = 16
_COARSE_BITS: Final = 7
_PART_BITS: Final = 34
_COARSE: Final = 1 << 33
_BATCHES: Final = 1 << BATCH_BITS

WAYS_OUT: Final = (
    "a shuffle (groupBy, join, repartition, dropDuplicates), rand() or a changing side input gives other rows or "
    "another order when a micro-batch is repeated; set the option staging=<directory>, which stores each micro-batch "
    "before it is sent, or the option delivery=at-least-once"
)


class UnreplayableError(MagnetarError):
    """A repeated micro-batch does not have the rows of the first attempt."""


def digest_bits(row: int) -> int:
    """Return how many bits the digest has in the id of that row."""
    return _FINE_BITS if row < FINE_ROWS else _COARSE_BITS


class SequenceId(NamedTuple):
    """A sequence id, taken apart."""

    batch: int
    row: int
    digest: int = 0

    def number(self) -> int:
        """Return the id as the broker keeps it."""
        return self.batch << _PART_BITS | _part(self.row) | self.digest

    @staticmethod
    def of(number: int) -> SequenceId:
        """Take an id apart, the reverse of `number`; not for -1."""
        batch, part = number >> _PART_BITS, number & ((1 << _PART_BITS) - 1)
        if part < _COARSE:
            return SequenceId(batch, part >> _FINE_BITS, part & ((1 << _FINE_BITS) - 1))
        part -= _COARSE
        return SequenceId(batch, FINE_ROWS + (part >> _COARSE_BITS), part & ((1 << _COARSE_BITS) - 1))


def _part(row: int) -> int:
    return row << _FINE_BITS if row < FINE_ROWS else _COARSE + (row - FINE_ROWS << _COARSE_BITS)


def first_number(batch: int) -> int:
    """Return the id of a micro-batch's row 0."""
    if not 0 <= batch < _BATCHES:
        raise InvalidValueError(
            f"micro-batch {batch}: sequence ids hold {_BATCHES} of them; start the query with a new checkpoint"
        )
    return SequenceId(batch, 0).number()


def numbers(first: int, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the ids of rows of a micro-batch whose row 0 has the id ``first``; all before `FINE_ROWS`, or none."""
    if len(rows) and rows[0] >= FINE_ROWS:
        return first + _COARSE - (FINE_ROWS << _COARSE_BITS) + (rows << _COARSE_BITS)
    return first + (rows << _FINE_BITS)


def check_rows(rows: int) -> None:
    """Refuse more rows of a task than ids have room for. Raises InvalidValueError."""
    if rows > ROWS:
        raise InvalidValueError(
            f"a task has more than {ROWS} rows in one micro-batch; set maxMessagesPerTrigger, or minPartitions"
        )


class StoredRows:
    """The rows that the broker had of one producer when an attempt began, compared with the rows of this attempt, in
    order."""

    def __init__(self, last: int, batch: int, where: str) -> None:
        self._stored = SequenceId.of(last) if last >= 0 else None
        self._where = where
        self.last = last
        self._open = False
        if self._stored is not None and self._stored.batch > batch:
            raise UnreplayableError(
                f"{where}: the broker has rows of micro-batch {self._stored.batch} and this is {batch}: the checkpoint "
                "was set back, and the broker would drop what it takes for repetitions; use a new checkpoint"
            )
        if self._stored is not None and self._stored.batch == batch:
            self._open = True

    @property
    def pending(self) -> bool:
        """Whether rows that the broker has are still to come."""
        return self._open

    def stored_of(self, ids: list[int]) -> int:
        """Return how many of these rows are stored already; a prefix, since ids grow.

        UnreplayableError if it cannot be.
        """
        stored = self._stored
        if not self._open or stored is None:
            return 0
        target = stored._replace(digest=0).number()
        if not ids or ids[-1] < target:
            return len(ids)
        for count, number in enumerate(ids, 1):
            if number == target:
                return count
            if number > target:
                break
        raise self._unlike()

    def compare(self, row: int, digest: int) -> None:
        """Compare the digest of everything up to the row with id ``row``, if that is the last stored one."""
        stored = self._stored
        if self._open and stored is not None and row == stored._replace(digest=0).number():
            if digest != stored.digest:
                raise self._unlike()
            self._open = False

    def finish(self) -> None:
        """End the comparison when all rows have come. UnreplayableError if the last stored one was not among them."""
        if self._open:
            raise self._unlike()

    def _unlike(self) -> UnreplayableError:
        assert self._stored is not None, "something is stored, else there is nothing to be unlike"
        return UnreplayableError(
            f"{self._where}: an earlier attempt of micro-batch {self._stored.batch} has stored rows up to number "
            f"{self._stored.row}, and this attempt has other rows: {WAYS_OUT}"
        )
