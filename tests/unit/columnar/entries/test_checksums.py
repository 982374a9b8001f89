"""The checksums of many entries are those of each."""

from __future__ import annotations

import google_crc32c
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.columnar.entries.block import EntryBytes, block_of
from magnetar.columnar.entries.checksums import CHECKED_HERE, CRC_TABLES, crc32c, wrong_checksums
from magnetar.protocol.frames import with_checksum

BODIES = st.one_of(
    st.binary(min_size=4, max_size=40),
    st.builds(
        lambda size, byte: bytes([byte]) * size, st.integers(CHECKED_HERE - 12, CHECKED_HERE + 3), st.integers(0, 255)
    ),
)
DAMAGE = st.one_of(st.none(), st.none(), st.integers(0, 1 << 16))


@settings(deadline=None)
@given(st.binary(max_size=100))
def test_a_checksum_is_that_of_another_library(data: bytes) -> None:
    assert crc32c(np.frombuffer(data, np.uint8), 0, len(data), CRC_TABLES) == google_crc32c.value(data)


@settings(deadline=None)
@given(st.lists(st.tuples(BODIES, DAMAGE), max_size=12), st.lists(st.binary(max_size=9), max_size=2))
def test_what_is_damaged_is_found(made: list[tuple[bytes, int | None]], short: list[bytes]) -> None:
    entries: list[bytes] = []
    wrong: list[int] = []
    for body, damage in made:
        entry = bytearray(with_checksum(body))
        if damage is not None:
            entry[damage // 8 % len(entry)] ^= 1 << damage % 8
            wrong.append(len(entries))
        entries.append(bytes(entry))
    for rest in short:
        wrong.append(len(entries))
        entries.append(rest)
    block = block_of([EntryBytes(1, number, entry) for number, entry in enumerate([b"", *entries])])
    assert wrong_checksums(block.data, block.table) == [0, *(number + 1 for number in wrong)]
