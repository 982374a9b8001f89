"""Which entries of a topic are not due yet, and which become due next (rules of group 7). Pure; times are given.

Theory of operation. One index serves all subscriptions of a topic: an entry is in it exactly as long as it is not due,
so "closed" needs no state per subscription. Two views are kept:

* by ordinal, :class:`OrdinalSet`: one bit each, asked before anything is read;
* by time: entries that are due in the same 4.4 minutes share a bucket, an array of eight bytes per entry in the order
  in which they came. Only the bucket whose turn it is becomes a heap of whole numbers ``time << 45 | ordinal``, so what
  is due comes out by time, then by position.

A million delayed messages take 8 MB if they are spread over a month and 60 MB if all of them are due in the same 4.4
minutes (``benchmarks/delayed_delivery.py``). Ordinals are below 2^45: a topic would have to take 100,000 entries a
second for ten years to get there. An entry whose bit is gone (trimmed) is dropped from the second view when its turn
comes.
"""

from __future__ import annotations

import sys
from array import array
from heapq import heappop, heappush
from typing import Final

from magnetar.broker.delivery.ordinal_set import OrdinalSet

_ORDINAL_BITS: Final = 45
_ORDINAL_MASK: Final = (1 << _ORDINAL_BITS) - 1
_TIME_BITS: Final = 63 - _ORDINAL_BITS
_TIME_MASK: Final = (1 << _TIME_BITS) - 1
_VERSION: Final = b"\x01"
_WORD: Final = 8


class DelayIndex:
    """The delayed entries of one topic. An ordinal is added once; times are milliseconds since 1970."""

    __slots__ = ("_buckets", "_near", "_near_bucket", "_numbers", "closed")

    def __init__(self) -> None:
        self.closed = OrdinalSet()
        self._near: list[int] = []
        self._near_bucket = -1
        """Everything up to this bucket is in ``_near``."""
        self._buckets: dict[int, array[int]] = {}
        self._numbers: list[int] = []
        """The numbers of the buckets, a heap."""

    def __len__(self) -> int:
        return len(self.closed)

    @property
    def memory_bytes(self) -> int:
        """The memory that the index takes, about."""
        buckets = sum(128 + _WORD * len(bucket) for bucket in self._buckets.values())
        return self.closed.memory_bytes + 48 * len(self._near) + buckets

    def add(self, ordinal: int, time_ms: int) -> None:
        self.closed.add(ordinal)
        number = time_ms >> _TIME_BITS
        if number <= self._near_bucket:
            heappush(self._near, time_ms << _ORDINAL_BITS | ordinal)
            return
        bucket = self._buckets.get(number)
        if bucket is None:
            bucket = self._buckets[number] = array("q")
            heappush(self._numbers, number)
        bucket.append((time_ms & _TIME_MASK) << _ORDINAL_BITS | ordinal)

    def next_due(self) -> int | None:
        """When the next entry is due; None if the index is empty."""
        near = self._near
        while True:
            while near and near[0] & _ORDINAL_MASK not in self.closed:
                heappop(near)
            if near:
                return near[0] >> _ORDINAL_BITS
            if not self._buckets:
                return None
            if not self.closed:  # what the buckets have is trimmed, all of it
                self._buckets.clear()
                self._numbers.clear()
                return None
            self._open()
            near = self._near

    def _open(self) -> None:
        number = heappop(self._numbers)
        bucket = self._buckets.pop(number)
        base = number << 63
        near = [base | packed for packed in bucket]
        near.sort()
        self._near = near
        self._near_bucket = number

    def take_due(self, now_ms: int, entries_max: int) -> list[int]:
        """Take out the entries that are due at ``now_ms``, at most ``entries_max``, by time, then by ordinal."""
        due: list[int] = []
        while len(due) < entries_max and (at := self.next_due()) is not None and at <= now_ms:
            ordinal = heappop(self._near) & _ORDINAL_MASK
            self.closed.discard(ordinal)
            due.append(ordinal)
        return due

    def forget_below(self, ordinal: int) -> None:
        """Forget entries below the first one that the log retains."""
        if self.closed and self.closed.next_set(0, ordinal) < ordinal:
            self.closed.discard_below(ordinal)

    # on disk --------------------------------------------------------------------------------------------------

    def dump(self) -> bytes:
        """All entries: a version byte, then (time, ordinal) as two little-endian 64-bit numbers each."""
        parts = [_VERSION]
        for number, bucket in self._buckets.items():
            base = number << _TIME_BITS
            pairs = array("q", bytes(2 * _WORD * len(bucket)))
            pairs[0::2] = array("q", [base | packed >> _ORDINAL_BITS for packed in bucket])
            pairs[1::2] = array("q", [packed & _ORDINAL_MASK for packed in bucket])
            parts.append(_to_disk(pairs))
        pairs = array("q", bytes(2 * _WORD * len(self._near)))
        pairs[0::2] = array("q", [whole >> _ORDINAL_BITS for whole in self._near])
        pairs[1::2] = array("q", [whole & _ORDINAL_MASK for whole in self._near])
        parts.append(_to_disk(pairs))
        return b"".join(parts)

    def load(self, dumped: bytes, after_ms: int) -> None:
        """Add what :meth:`dump` gave, as far as it is due after ``after_ms``. Raises ValueError for another format."""
        if dumped[:1] != _VERSION or (len(dumped) - 1) % (2 * _WORD):
            raise ValueError(f"an index of delayed messages in an unknown format: {dumped[:1].hex()}, {len(dumped)} B")
        self.load_pairs(dumped[1:], after_ms)

    def load_pairs(self, data: bytes, after_ms: int) -> None:
        """Add (time, ordinal) pairs as :func:`pairs_of` made them, as far as they are due after ``after_ms``."""
        pairs = array("q", data)
        if sys.byteorder == "big":
            pairs.byteswap()
        for time_ms, ordinal in zip(pairs[0::2], pairs[1::2], strict=True):
            if time_ms > after_ms:
                self.add(ordinal, time_ms)

    def check(self) -> None:
        """Assert the links between the views; for tests."""
        self.closed.check()
        held = {whole & _ORDINAL_MASK for whole in self._near}
        assert sorted(self._numbers) == sorted(self._buckets)
        for number, bucket in self._buckets.items():
            assert number > self._near_bucket
            held |= {packed & _ORDINAL_MASK for packed in bucket}
        assert set(self.closed) <= held


def pairs_of(entries: list[tuple[int, int]]) -> bytes:
    """The (ordinal, time) pairs of new entries as they are written."""
    pairs = array("q")
    for ordinal, time_ms in entries:
        pairs.append(time_ms)
        pairs.append(ordinal)
    return _to_disk(pairs)


def _to_disk(pairs: array[int]) -> bytes:
    if sys.byteorder == "big":
        pairs.byteswap()
    return pairs.tobytes()
