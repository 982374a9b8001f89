"""What Key_Shared hashes of an entry, read by hand where an entry is as nearly all are.

As all clients write metadata, the producer's name, the sequence id, the publish time and the partition key stand first
and in this order, with nothing in between. Of whatever differs from that in any byte, protobuf is asked.
"""

from __future__ import annotations

import re
import struct
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from magnetar.protocol.entries import sticky_key_by_protobuf

_VARINT_MAX: Final = 10
"""Bytes of a number."""
_FEW: Final = 6
"""Reading so many entries one by one takes as long as looking at them together."""
_TOGETHER_MAX: Final = 512
"""Bytes of metadata of the largest entry that is read together with others."""
_only_sizes: Final = re.compile(rb"(?:[\x40\x48\x58\x60][\x80-\xff]{0,8}[\x00-\x7f])+").fullmatch
"""Compression, the size before it, messages in the batch and event time: fields that say nothing of the key."""


def sticky_key(entry: bytes) -> bytes:
    """Return what Key_Shared hashes (rule 5.6.1); never fails, an unreadable entry has NONE_KEY."""
    layout = _layout(entry)
    return sticky_key_by_protobuf(entry) if layout is None else entry[layout[1] : layout[2]]


def sticky_keys(entries: Sequence[bytes]) -> list[bytes]:
    """Return the :func:`sticky_key` of each entry.

    Entries whose metadata have one size are nearly always laid out alike. They are taken apart by one call, and each
    check is made for all of them at once.
    """
    if len(entries) < _FEW:
        return list(map(sticky_key, entries))
    sizes = [entry[6:12] for entry in entries]
    if sizes.count(sizes[0]) == len(entries):
        return _keys_of_alike(entries) or list(map(sticky_key, entries))
    places: defaultdict[bytes, list[int]] = defaultdict(list)
    for place, size in enumerate(sizes):
        places[size].append(place)
    found = [b""] * len(entries)
    for some in places.values():
        of_one_size = [entries[place] for place in some]
        for place, key in zip(some, sticky_keys(of_one_size), strict=True):
            found[place] = key
    return found


def _layout(entry: bytes) -> tuple[int, int, int] | None:
    """Return where the publish time, the key and what is behind the key begin; None of an entry that differs."""
    try:
        # magic, a size of metadata below 65,536, a name of less than 128 bytes
        if (
            entry[10] == 0x0A and entry[11] < 128
            and entry[0] == 0x0E and entry[1] == 0x01 and entry[6] == 0 and entry[7] == 0
        ):  # fmt: skip
            at = 12 + entry[11]
            if entry[at] == 0x10:
                last = at + 1
                while entry[last] > 127:
                    last += 1
                if last - at <= _VARINT_MAX and entry[last + 1] == 0x18:
                    at = last + 1
                    last += 2
                    while entry[last] > 127:
                        last += 1
                    if last - at <= _VARINT_MAX and entry[last + 1] == 0x32 and entry[last + 2] < 128:
                        start = last + 3
                        stop, end = start + entry[last + 2], 10 + (entry[8] << 8 | entry[9])
                        if stop <= end <= len(entry) and (stop == end or _only_sizes(entry, stop, end) is not None):
                            return at + 1, start, stop
    except IndexError:
        pass
    return None


def _keys_of_alike(entries: Sequence[bytes]) -> list[bytes] | None:
    """Return the keys of entries that are laid out as the first of them is, None if any is not.

    All have metadata of one size. Laid out alike are those that have the same bits as the first wherever a tag, a size
    or the bit stands that says whether another byte of a number follows.
    """
    first = entries[0]
    layout = _layout(first)
    if layout is None:
        return None
    time, key, behind = layout
    name, end = 12 + first[11], 10 + (first[8] << 8 | first[9])
    metadata = b"".join([entry[:end] for entry in entries]) if end <= _TOGETHER_MAX else b""
    if len(metadata) != end * len(entries):
        return None
    said = (
        b"\xff\xff\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff" + bytes(first[11])
        + b"\xff" + b"\x80" * (time - 2 - name)
        + b"\xff" + b"\x80" * (key - 2 - time)
        + b"\xff\xff" + bytes(behind - key)
    )  # fmt: skip
    number = False
    for byte in first[behind:end]:
        said += b"\x80" if number else b"\xff"
        number = byte > 127 or not number
    differ = int.from_bytes(metadata, "big") ^ int.from_bytes(first[:end] * len(entries), "big")
    if differ & int.from_bytes(said * len(entries), "big"):
        return None
    return [of_one for (of_one,) in struct.iter_unpack(f"{key}x{behind - key}s{end - behind}x", metadata)]
