"""Blocks of entries from one connection: large reads into buffers that are handed on, entries found by a kernel
(`columnar.entries.frames`).

For a connection with one consumer. Before anything is asked on it, `BlockReceiver.release` hands back the beginning
of a frame that is not whole. A buffer is filled from its beginning to its end and never again, so blocks may be kept; a
frame that does not fit the rest is copied to the next one.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from crc32c import crc32c

from magnetar.client.connection import Connection
from magnetar.client.handshake import MAX_FRAME_SIZE
from magnetar.columnar.entries.block import BLOCK_ROWS, ENTRY_END, ENTRY_START, EntryBlock
from magnetar.columnar.entries.checksums import CRC_TABLES
from magnetar.columnar.entries.frames import MORE, OTHER, read_frames, unchecked
from magnetar.protocol import commands as c

_BUFFER_BYTES: Final = 4 << 20
_LEAST_ROOM: Final = 1 << 18
"""A read into less is not worth its call."""
_ENTRIES: Final = 4096


class BlockReceiver:
    """Receives the entries of one consumer as blocks; for one thread."""

    def __init__(self, connection: Connection, consumer_id: int) -> None:
        self._connection = connection
        self._consumer_id = consumer_id
        self._table = np.empty((BLOCK_ROWS, _ENTRIES), np.int64)
        self._new_buffer(b"", 0)

    def _new_buffer(self, held: bytes | memoryview, needed: int) -> None:
        room = np.empty(max(_BUFFER_BYTES, needed + _LEAST_ROOM), np.uint8)
        self._buffer = room.data
        self._octets = np.frombuffer(self._buffer.toreadonly(), np.uint8)
        self._buffer[: len(held)] = held
        self._at, self._end = 0, len(held)

    def receive(self, wait: float) -> list[EntryBlock | c.Command]:
        """Return what the broker has sent, in order; waits at most ``wait`` seconds for the first of it."""
        items: list[EntryBlock | c.Command] = [*self._connection.take_pushes()]
        if held := self._connection.take_held():
            self._new_buffer(held, len(held))
            self._walk(items)
        while not items and (count := self._connection.read_into(self._buffer[self._end :], wait)):
            while count:
                self._end += count
                # What has arrived meanwhile is taken along.
                count = self._connection.read_more(self._buffer[self._end :]) if self._end < len(self._buffer) else 0
            self._walk(items)
        return items

    def release(self) -> None:
        """Let the connection be used for something else; `receive` goes on where that ends."""
        rest = bytes(self._buffer[self._at : self._end])
        self._at = self._end
        if rest:
            self._connection.hold(rest)

    def _walk(self, items: list[EntryBlock | c.Command]) -> None:
        """Append everything that is whole to ``items``."""
        while True:
            status, count, self._at, size = read_frames(
                self._octets, self._at, self._end, MAX_FRAME_SIZE, self._consumer_id, self._table, CRC_TABLES
            )
            if count:
                self._check(EntryBlock(self._octets, self._table[:, :count].copy()), items)
            if status == OTHER:
                stop = min(self._at + max(size, 4), self._end)
                items += self._connection.decode(bytes(self._buffer[self._at : stop]))
                self._at = stop
            elif status == MORE:
                if len(self._buffer) - self._end < _LEAST_ROOM or self._at + size > len(self._buffer):
                    self._new_buffer(self._buffer[self._at : self._end], size)
                return

    def _check(self, block: EntryBlock, items: list[EntryBlock | c.Command]) -> None:
        first = 0
        for number in unchecked(block.table):
            start, end = block.table[ENTRY_START : ENTRY_END + 1, number].tolist()
            expected = int.from_bytes(self._buffer[start + 2 : start + 6], "big")
            if crc32c(self._buffer[start + 6 : end]) != expected:
                if first < number:
                    items.append(block.part(first, number))
                ledger, entry, data, _ = block.stored(number)
                at = c.MessageIdData(ledger, entry)
                items.append(c.CommandMessage(self._consumer_id, at, 0, (), None, None, data, checksum_ok=False))
                first = number + 1
        if first < len(block):
            items.append(block.part(first, len(block)))
