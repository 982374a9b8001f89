"""What Key_Shared hashes of an entry, read by hand where an entry is as nearly all are.

As all clients write metadata, the producer's name, the sequence id, the publish time and the partition key stand first
and in this order, with nothing in between. Of whatever differs from that in any byte, protobuf is asked.
"""

from __future__ import annotations

import re
from typing import Final

from magnetar.protocol.entries import sticky_key_by_protobuf

_VARINT_MAX: Final = 10
"""Bytes of a number."""
_only_sizes: Final = re.compile(rb"(?:[\x40\x48\x58\x60][\x80-\xff]{0,3}[\x00-\x7f])+").fullmatch
"""Compression, the size before it, messages in the batch and event time: fields that say nothing of the key."""


def sticky_key(entry: bytes) -> bytes:
    """Return what Key_Shared hashes (rule 5.6.1); never fails, an unreadable entry has NONE_KEY."""
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
                            return entry[start:stop]
    except IndexError:
        pass
    return sticky_key_by_protobuf(entry)
