"""How Avro's binary encoding writes whole numbers, which are also its counts, lengths, branches and symbols."""

from __future__ import annotations


def put_long(out: bytearray, value: int) -> None:
    """Append a number of at most 64 bits: zigzag, seven bits a byte, least significant first."""
    zigzag = value << 1 if value >= 0 else ~(value << 1)
    while zigzag > 127:
        out.append(zigzag & 127 | 128)
        zigzag >>= 7
    out.append(zigzag)
