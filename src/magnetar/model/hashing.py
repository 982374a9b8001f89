"""Hashes that decide routing: murmur3, Java's string hash, Boost's, and the sticky slots of Key_Shared.

``murmur3_31`` is MurmurHash3 x86 32-bit with seed 0, sign bit cleared; all official clients agree on it (rule
6.7.5). Two key spaces are cut from it (rule 0.4):

* range and STICKY mode: ``h % 65536``, and 0 is moved to 1;
* the consistent-hash ring: ``h % 65535 + 1``, so 1 to 65535.

A consumer's points on the ring are named after it (rule 0.2): ``name NUL nameIndex NUL i``.
"""

from __future__ import annotations

from array import array
from typing import Final

import mmh3

RANGE_SIZE: Final = 65_536
RING_SIZE: Final = 65_535
_MASK_31: Final = 0x7FFFFFFF
_MASK_32: Final = 0xFFFFFFFF
_MASK_64: Final = (1 << 64) - 1
_GOLDEN: Final = 0x9E3779B97F4A7C15
_GOLDEN_SQUARED: Final = 0xDF442D22CE4859B9
"""What Boost takes for the square of the golden ratio."""


def murmur3_31(key: bytes) -> int:
    """MurmurHash3 x86 32-bit of ``key``, seed 0, without the sign bit."""
    return mmh3.hash(key, 0, False) & _MASK_31


def java_string_hash(text: str) -> int:
    """``31 * h + c`` over the UTF-16 units of ``text``, wrapped to 32 bits, without the sign bit (rule 6.7.4)."""
    value = 0
    for unit in array("H", text.encode("utf-16-le" if _LITTLE_ENDIAN else "utf-16-be", "surrogatepass")):
        value = (31 * value + unit) & _MASK_32
    return value & _MASK_31


def boost_hash(text: str) -> int:
    """Return the 64-bit hash of Boost 1.83 and later over the UTF-8 bytes, of which the C++ client keeps 31 bits: its
    default, and with it the official Python client's (rule 6.7.6)."""
    data = text.encode()
    window = _folded(_GOLDEN, _GOLDEN_SQUARED)
    value, whole = window ^ len(data), len(data) & ~7
    for at in (*range(0, whole, 8), whole):
        window = (window + _GOLDEN) & _MASK_64
        value ^= _folded(int.from_bytes(data[at : at + 8], "little") + window, _GOLDEN_SQUARED)
    return _folded(value + window, _GOLDEN_SQUARED) & _MASK_31


def _folded(left: int, right: int) -> int:
    """Multiply to 128 bits, and fold the halves."""
    product = (left & _MASK_64) * right
    return (product & _MASK_64) ^ (product >> 64)


def range_slot(key: bytes) -> int:
    """Return where a key falls in AUTO_SPLIT range mode and in STICKY: 1 to 65535."""
    return (mmh3.hash(key, 0, False) & _MASK_31) % RANGE_SIZE or 1


def ring_slot(key: bytes) -> int:
    """Return where a key falls on the consistent-hash ring: 1 to 65535."""
    return (mmh3.hash(key, 0, False) & _MASK_31) % RING_SIZE + 1


def ring_points(consumer_name: str, name_index: int, count: int) -> list[int]:
    """Return the slots of a consumer's points 0 to ``count - 1``.

    ``name_index`` distinguishes consumers of one name: 0, 1, ... in the order they joined.
    """
    prefix = f"{consumer_name}\0{name_index}\0"
    return [ring_slot(f"{prefix}{i}".encode()) for i in range(count)]


_LITTLE_ENDIAN: Final = array("H", [1]).tobytes()[0] == 1
