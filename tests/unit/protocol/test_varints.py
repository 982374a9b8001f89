"""Varints of many numbers at once are those of each number."""

from __future__ import annotations

import pytest

from magnetar.protocol.varints import varint, varint_ends, varints


@pytest.mark.parametrize("first", [0, 1, 100, 127, 128, 129, 250, 255, 256, 16_383, 16_384, 1 << 21, (1 << 35) - 3])
@pytest.mark.parametrize("count", [0, 1, 2, 127, 128, 129, 300, 1000])
def test_a_row_of_numbers(first: int, count: int) -> None:
    assert varints(first, first + count) == [varint(number) for number in range(first, first + count)]


@pytest.mark.parametrize("number", [0, 5, 127, 128, 300, 16_383, 16_384, 1 << 40])
def test_beginnings_and_the_end_of_128_numbers(number: int) -> None:
    beginnings, end = varint_ends(number)
    low = number & ~127
    assert [beginnings[one & 127] + end for one in range(low, low + 128)] == [varint(n) for n in range(low, low + 128)]
