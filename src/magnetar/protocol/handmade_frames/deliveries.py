"""What stands before the entry in MESSAGE frames, made by hand: one per entry and consumer.

    total size, command size | 08 09 4a n | 08 consumer | 12 m 08 ledger 10 entry [18 partition] | [18 redeliveries]
    | [20 ack set word]... | [28 consumer epoch]

The entry follows as it is stored. Absent: partition -1, redelivery count 0, an empty ack set, no epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from magnetar.protocol.varints import varint, varint_ends

_LENGTHS: Final = 11


class Deliveries:
    """MESSAGE headers for one consumer; prepares what is the same for a whole ledger when ledger or epoch change."""

    __slots__ = (
        "_consumer",
        "_epoch",
        "_heads",
        "_ledger",
        "_partition",
        "_plain",
        "_tail",
        "consumer_id",
        "partition",
    )

    def __init__(self, consumer_id: int, partition: int = -1) -> None:
        self.consumer_id = consumer_id
        self.partition = partition
        self._consumer = b"\x08" + varint(consumer_id) + b"\x12"
        self._partition = b"" if partition < 0 else b"\x18" + varint(partition)
        self._ledger: int | None = None
        self._epoch: int | None = None
        self._tail = b""
        """What follows the entry number of a plain MESSAGE: the partition, which ends the message id, and the epoch."""
        self._heads: list[bytes] = []
        """Consumer and message id up to the entry number, per length of that number's varint."""
        self._plain: list[tuple[bytes, int]] = []
        """Command size to entry number of a plain MESSAGE, and the total without entry, per the same length."""

    def _prepare(self, ledger: int, epoch: int | None) -> None:
        position = b"\x08" + varint(ledger) + b"\x10"
        after = len(self._partition)
        self._heads = [self._consumer + varint(len(position) + size + after) + position for size in range(_LENGTHS)]
        self._plain = []
        self._tail = self._partition if epoch is None else self._partition + b"\x28" + varint(epoch)
        tail = len(self._tail)
        for size, head in enumerate(self._heads):
            command = b"\x08\x09\x4a" + varint(len(head) + size + tail) + head
            length = len(command) + size + tail
            self._plain.append((length.to_bytes(4, "big") + command, length + 4))
        self._ledger = ledger
        self._epoch = epoch

    def header(
        self,
        ledger: int,
        entry: int,
        entry_size: int,
        redelivery_count: int = 0,
        ack_set: Sequence[int] = (),
        consumer_epoch: int | None = None,
    ) -> bytes:
        """Return the frame up to the entry of ``entry_size`` bytes (broker entry metadata, if any, counts as entry)."""
        if ledger != self._ledger or consumer_epoch != self._epoch:
            self._prepare(ledger, consumer_epoch)
        number = varint(entry)
        if redelivery_count or ack_set:
            head = self._heads[len(number)] + number + self._partition
            if redelivery_count:
                head += b"\x18" + varint(redelivery_count)
            for word in ack_set:
                head += b"\x20" + varint(word)
            if consumer_epoch is not None:
                head += b"\x28" + varint(consumer_epoch)
            command = b"\x08\x09\x4a" + varint(len(head)) + head
            total = 4 + len(command) + entry_size
            return total.to_bytes(4, "big") + len(command).to_bytes(4, "big") + command
        plain, size = self._plain[len(number)]
        return (size + entry_size).to_bytes(4, "big") + plain + number + self._tail

    def frames(
        self,
        ledger: int,
        numbers: Sequence[int],
        entries: Sequence[bytes],
        out: list[bytes],
        consumer_epoch: int | None = None,
    ) -> None:
        """Append header and entry of ``entries``, none delivered before, to ``out``.

        ``numbers`` are the entries' numbers in their ledger, ascending.
        """
        if ledger != self._ledger or consumer_epoch != self._epoch:
            self._prepare(ledger, consumer_epoch)
        plains = self._plain
        tail, after, plain = self._tail, b"", b""
        block = -1
        size = 0
        beginnings: list[bytes] = []
        for number, entry in zip(numbers, entries, strict=True):
            if number >> 7 != block:
                block = number >> 7
                beginnings, end = varint_ends(number)
                plain, size = plains[1 + len(end)]
                after = end + tail
            out += (size + len(entry)).to_bytes(4, "big") + plain + beginnings[number & 127] + after, entry

    def alike(self, ledger: int, entry: int, entries: Sequence[bytes], out: list[bytes]) -> None:
        """Append header and entry of ``entries`` that all have the same id."""
        if ledger != self._ledger or self._epoch is not None:
            self._prepare(ledger, None)
        number = varint(entry)
        plain, size = self._plain[len(number)]
        middle = plain + number + self._tail
        for one in entries:
            out += (size + len(one)).to_bytes(4, "big") + middle, one
