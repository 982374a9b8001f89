"""Indexes of sealed segments are read from files: those that were read last stay in memory, a bounded number."""

from __future__ import annotations

from typing import Any, cast

from magnetar.storage.log.segment import ExtentOffsets, SegmentIndexes, Span, index_bytes, spans_of


class _Files:
    """Has an index for each segment, and counts what is read."""

    def __init__(self) -> None:
        self.read: list[int] = []

    def read_index(self, number: int) -> bytes:
        self.read.append(number)
        places = ExtentOffsets()
        places.firsts.append(0)
        places.offsets.append(48)
        places.lengths.append(number)
        return index_bytes(number, spans_of(number, {(1, 1): places}))


def test_sixty_four_stay_in_memory_and_the_oldest_goes() -> None:
    """An index of a segment with a hundred thousand topics takes megabytes."""
    files = _Files()
    indexes = SegmentIndexes(cast("Any", files))

    def asked(number: int) -> None:
        assert list(indexes.places(Span(1, number, 1, 0, 1, 0)).lengths) == [number]

    for _ in range(3):
        for number in range(1, 65):
            asked(number)
    assert files.read == list(range(1, 65)), "each once"
    asked(65)
    asked(64)
    assert files.read[64:] == [65]
    asked(1)
    assert files.read[64:] == [65, 1], "the one that was read first had gone"
    indexes.forget(65)
    asked(65)
    assert files.read[64:] == [65, 1, 65]
