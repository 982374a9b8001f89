"""SEND_RECEIPT frames, made by hand: one per entry makes them the frame a broker writes most.

    total size, command size | 08 07 3a n | 08 producer | 10 sequence | 1a m 08 ledger 10 entry | 20 highest

`n` and `m` count the bytes after them. Everything but the three varying numbers is prepared per producer and ledger,
once for every pair of lengths. highest_sequence_id is always there (rule 3.3.2), a partition never.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from magnetar.protocol.varints import varint

_LENGTHS: Final = 11


class Receipts:
    """Receipts of one producer for entries in one ledger; make a new one when the ledger changes."""

    __slots__ = ("_heads", "_middles", "ledger", "producer_id")

    def __init__(self, producer_id: int, ledger: int) -> None:
        self.producer_id = producer_id
        self.ledger = ledger
        producer = b"\x08" + varint(producer_id) + b"\x10"
        position = b"\x08" + varint(ledger) + b"\x10"
        self._middles = [b"\x1a" + varint(len(position) + size) + position for size in range(_LENGTHS)]
        fixed = len(producer) + len(self._middles[0]) + 1
        self._heads: list[bytes] = []
        for varying in range(3 * _LENGTHS):
            command = b"\x08\x07\x3a" + varint(fixed + varying) + producer
            size = len(command) - len(producer) + fixed + varying
            self._heads.append((size + 4).to_bytes(4, "big") + size.to_bytes(4, "big") + command)

    def __call__(self, sequence_id: int, entry: int, highest_sequence_id: int = 0) -> bytes:
        """Return one receipt."""
        sequence = varint(sequence_id)
        number = varint(entry)
        size = len(number)
        if highest_sequence_id:
            highest = varint(highest_sequence_id)
            head = self._heads[len(sequence) + size + len(highest)]
            return head + sequence + self._middles[size] + number + b"\x20" + highest
        return self._heads[len(sequence) + size + 1] + sequence + self._middles[size] + number + b"\x20\x00"

    def run(
        self, sequence_ids: Sequence[int], first_entry: int, highest_sequence_ids: Sequence[int] | None = None
    ) -> bytes:
        """Return receipts for consecutive entries, in one piece to write."""
        if highest_sequence_ids is None:
            highest_sequence_ids = (0,) * len(sequence_ids)
        heads = self._heads
        middles = self._middles
        parts: list[bytes] = []
        entry = first_entry
        for sequence_id, highest_id in zip(sequence_ids, highest_sequence_ids, strict=True):
            sequence = varint(sequence_id)
            number = varint(entry)
            highest = varint(highest_id)
            size = len(number)
            parts += heads[len(sequence) + size + len(highest)], sequence, middles[size], number, b"\x20", highest
            entry += 1
        return b"".join(parts)

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
