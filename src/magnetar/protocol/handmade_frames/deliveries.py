"""What stands before the entry in MESSAGE frames, made by hand: one per entry and consumer.

    total size, command size | 08 09 4a n | 08 consumer | 12 m 08 ledger 10 entry [18 partition] | [18 redeliveries]
    | [20 ack set word]... | [28 consumer epoch]

The entry follows as it is stored. Absent: partition -1, redelivery count 0, an empty ack set, no epoch.
"""

from __future__ import annotations

from collections.abc import Sequence

from magnetar.protocol.varints import varint, varint_ends


class Deliveries:
    """MESSAGE headers for one consumer.

    What is the same for a whole ledger is kept for the length of entry number that came last, and made anew when
    ledger, epoch or length change.
    """

    __slots__ = ("_epoch", "_ledger", "_partition", "_plain", "_size", "_tail", "_total", "consumer_id", "partition")

    def __init__(self, consumer_id: int, partition: int = -1) -> None:
        self.consumer_id = consumer_id
        self.partition = partition
        self._partition = b"" if partition < 0 else b"\x18" + varint(partition)
        self._ledger: int | None = None
        self._epoch: int | None = None
        self._size = 0
        """Bytes of the entry number that the following are for."""
        self._tail = b""
        """What follows the entry number of a plain MESSAGE: the partition, which ends the message id, and the epoch."""
        self._plain = b""
        """Command size to entry number of a plain MESSAGE."""
        self._total = 0
        """Bytes of the frame, without the first four and the entry."""

    def _head(self, ledger: int, size: int) -> bytes:
        """Consumer and message id up to the entry number, which has ``size`` bytes."""
        position = b"\x08" + varint(ledger) + b"\x10"
        length = varint(len(position) + size + len(self._partition))
        return b"\x08" + varint(self.consumer_id) + b"\x12" + length + position

    def _prepare(self, ledger: int, epoch: int | None, size: int) -> None:
        head = self._head(ledger, size)
        self._tail = self._partition if epoch is None else self._partition + b"\x28" + varint(epoch)
        command = b"\x08\x09\x4a" + varint(len(head) + size + len(self._tail)) + head
        length = len(command) + size + len(self._tail)
        self._plain, self._total = length.to_bytes(4, "big") + command, length + 4
        self._ledger, self._epoch, self._size = ledger, epoch, size

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
        number = varint(entry)
        if redelivery_count or ack_set:
            head = self._head(ledger, len(number)) + number + self._partition
            if redelivery_count:
                head += b"\x18" + varint(redelivery_count)
            for word in ack_set:
                head += b"\x20" + varint(word)
            if consumer_epoch is not None:
                head += b"\x28" + varint(consumer_epoch)
            command = b"\x08\x09\x4a" + varint(len(head)) + head
            total = 4 + len(command) + entry_size
            return total.to_bytes(4, "big") + len(command).to_bytes(4, "big") + command
        if len(number) != self._size or ledger != self._ledger or consumer_epoch != self._epoch:
            self._prepare(ledger, consumer_epoch, len(number))
        return (self._total + entry_size).to_bytes(4, "big") + self._plain + number + self._tail

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
        after = plain = b""
        block = -1
        size = 0
        beginnings: list[bytes] = []
        for number, entry in zip(numbers, entries, strict=True):
            if number >> 7 != block:
                block = number >> 7
                beginnings, end = varint_ends(number)
                if 1 + len(end) != self._size or ledger != self._ledger or consumer_epoch != self._epoch:
                    self._prepare(ledger, consumer_epoch, 1 + len(end))
                plain, size, after = self._plain, self._total, end + self._tail
            out += (size + len(entry)).to_bytes(4, "big") + plain + beginnings[number & 127] + after, entry

    def alike(self, ledger: int, entry: int, entries: Sequence[bytes], out: list[bytes]) -> None:
        """Append header and entry of ``entries`` that all have the same id."""
        number = varint(entry)
        if len(number) != self._size or ledger != self._ledger or self._epoch is not None:
            self._prepare(ledger, None, len(number))
        middle, size = self._plain + number + self._tail, self._total
        for one in entries:
            out += (size + len(one)).to_bytes(4, "big") + middle, one
