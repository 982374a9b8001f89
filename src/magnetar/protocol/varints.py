"""Protobuf's variable-length integers for frames made by hand: seven bits a byte, least significant first."""

from __future__ import annotations

from typing import Final

from magnetar.model.ids import unsigned


def _slow(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


_BITS: Final = 14
_MASK: Final = (1 << _BITS) - 1
_ENDING: Final = [bytes((value,)) for value in range(128)]
"""What a varint ends with. The rest of these tables, 1.6 MB, is made when a larger number comes, or :func:`prepare`."""
_GOES_ON: Final = [bytes((value | 128,)) for value in range(128)]
"""What a varint of more than one byte begins with."""
_CONTINUED: Final[list[bytes]] = []
"""The lower 14 bits of a number that goes on."""


def varint(value: int) -> bytes:
    """Return ``value`` as a varint; a negative number as the uint64 it stands for."""
    if 0 <= value <= _MASK:
        try:
            return _ENDING[value]
        except IndexError:
            _ENDING.extend(_slow(ending) for ending in range(len(_ENDING), 1 << _BITS))
            return _ENDING[value]
    if 0 <= value >> _BITS <= _MASK:
        if not _CONTINUED:
            _CONTINUED.extend(bytes((low & 127 | 128, low >> 7 | 128)) for low in range(1 << _BITS))
        return _CONTINUED[value & _MASK] + varint(value >> _BITS)
    return _slow(unsigned(value))


def prepare() -> None:
    """Make all tables now: what stays lies side by side then, and no first large number holds a loop for some 10 ms."""
    varint(_MASK)
    varint(_MASK + 1)


def varint_ends(number: int) -> tuple[list[bytes], bytes]:
    """Return how the varints of 128 numbers begin, by their lowest seven bits, and how all of them end.

    ``beginnings[n & 127] + end`` is the varint of each ``n`` whose ``n >> 7`` is that of ``number``.
    """
    return (_GOES_ON, varint(number >> 7)) if number > 127 else (_ENDING, b"")


def varints(first: int, stop: int) -> list[bytes]:
    """Return the varints of the numbers from ``first``, 0 or above, to before ``stop``, as a list made at once."""
    found: list[bytes] = []
    while first < stop:
        if first <= _MASK:
            varint(_MASK)
            until = min(stop, _MASK + 1)
            found += _ENDING[first:until]
        else:
            varint(_MASK + 1)
            until = min(stop, ((first >> _BITS) + 1) << _BITS)
            tail, at = varint(first >> _BITS), first & _MASK
            found += [low + tail for low in _CONTINUED[at : at + until - first]]
        first = until
    return found


UNENDED: Final = 1 << 70
"""What :func:`read_varint` gives for bytes that are no varint; larger than any that is."""


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Read the number at ``position``, and where it ends; `UNENDED` if it is cut off or has over ten bytes."""
    value = shift = 0
    try:
        while shift < 70:
            byte = data[position]
            position += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value, position
            shift += 7
    except IndexError:
        pass
    return UNENDED, position
