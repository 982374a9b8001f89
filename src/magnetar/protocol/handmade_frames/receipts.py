"""SEND_RECEIPT frames, made by hand: one per entry makes them the frame a broker writes most.

    total size, command size | 08 07 3a n | 08 producer | 10 sequence | 1a m 08 ledger 10 entry | 20 highest

`n` and `m` count the bytes after them. Everything but the three varying numbers is prepared per producer, ledger and
lengths of these numbers. highest_sequence_id is always there (rule 3.3.2), a partition never.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat
from typing import Final

from magnetar.protocol.varints import varint, varints

_NONE: Final = b"\0"
"""A highest_sequence_id of 0."""
_END: Final = b"\x20" + _NONE
"""How a receipt ends whose SEND named none."""


class Receipts:
    """Receipts of one producer for entries in one ledger; make a new one when the ledger changes.

    What does not vary is kept for the lengths that came last, which the next receipt nearly always has.
    """

    __slots__ = ("_head", "_middle", "_size", "_varying", "ledger", "producer_id")

    def __init__(self, producer_id: int, ledger: int) -> None:
        self.producer_id = producer_id
        self.ledger = ledger
        self._head = self._middle = b""
        self._size = self._varying = 0
        """Bytes of the entry's number, and of all three varying numbers, that head and middle are for."""

    def _prepare(self, size: int, varying: int) -> None:
        producer = b"\x08" + varint(self.producer_id) + b"\x10"
        position = b"\x08" + varint(self.ledger) + b"\x10"
        self._middle = b"\x1a" + varint(len(position) + size) + position
        body = len(producer) + len(self._middle) + 1 + varying
        command = b"\x08\x07\x3a" + varint(body) + producer
        total = len(command) - len(producer) + body
        self._head = (total + 4).to_bytes(4, "big") + total.to_bytes(4, "big") + command
        self._size, self._varying = size, varying

    def __call__(self, sequence_id: int, entry: int, highest_sequence_id: int = 0) -> bytes:
        """Return one receipt."""
        sequence, number = varint(sequence_id), varint(entry)
        highest = varint(highest_sequence_id) if highest_sequence_id else _NONE
        size = len(number)
        varying = len(sequence) + size + len(highest)
        if varying != self._varying or size != self._size:
            self._prepare(size, varying)
        return self._head + sequence + self._middle + number + b"\x20" + highest

    def run(
        self, sequence_ids: Sequence[int], first_entry: int, highest_sequence_ids: Sequence[int] | None = None
    ) -> bytes:
        """Return receipts for consecutive entries, in one piece to write."""
        if sequence_ids and (highest_sequence_ids is None or not any(highest_sequence_ids)):
            consecutive = self._consecutive(sequence_ids, first_entry)
            if consecutive is not None:
                return consecutive
        if highest_sequence_ids is None:
            highest_sequence_ids = (0,) * len(sequence_ids)
        head, middle, size, varying = self._head, self._middle, self._size, self._varying
        parts: list[bytes] = []
        entry = first_entry
        for sequence_id, highest_id in zip(sequence_ids, highest_sequence_ids, strict=True):
            sequence = varint(sequence_id)
            number = varint(entry)
            highest = varint(highest_id)
            lengths = len(sequence) + len(number) + len(highest)
            if lengths != varying or len(number) != size:
                self._prepare(len(number), lengths)
                head, middle, size, varying = self._head, self._middle, self._size, self._varying
            parts += head, sequence, middle, number, b"\x20", highest
            entry += 1
        return b"".join(parts)

    def _consecutive(self, sequence_ids: Sequence[int], first_entry: int) -> bytes | None:
        """Return receipts for sequence ids that count on, as most do; None unless their numbers are of equal length."""
        first, count = sequence_ids[0], len(sequence_ids)
        if first < 0 or first_entry < 0 or list(sequence_ids) != list(range(first, first + count)):
            return None
        sequences, numbers = varints(first, first + count), varints(first_entry, first_entry + count)
        size, varying = len(numbers[0]), len(sequences[0]) + len(numbers[0]) + 1
        if len(numbers[-1]) != size or len(sequences[-1]) + size + 1 != varying:
            return None
        if varying != self._varying or size != self._size:
            self._prepare(size, varying)
        receipts = zip(repeat(self._head), sequences, repeat(self._middle), numbers, repeat(_END))
        return b"".join(chain.from_iterable(receipts))

    def alike(self, sequence_ids: Sequence[int], entry: int, highest_sequence_ids: Sequence[int]) -> bytes:
        """Return receipts that all name the same entry, in one piece to write."""
        return b"".join(
            [
                self(sequence, entry, highest)
                for sequence, highest in zip(sequence_ids, highest_sequence_ids, strict=True)
            ]
        )


def receipt(producer_id: int, sequence_id: int, ledger: int, entry: int, highest_sequence_id: int = 0) -> bytes:
    """Return one receipt on its own, for instance that of a duplicate: ledger and entry -1 (rule 3.4.3)."""
    return Receipts(producer_id, ledger)(sequence_id, entry, highest_sequence_id)
