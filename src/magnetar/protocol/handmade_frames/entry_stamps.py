"""What a broker puts before an entry for clients that can read it: its BrokerEntryMetadata (rule 1.1.6).

    0e 02 | size | 10 index

It is outside the entry's checksum.
"""

from __future__ import annotations

from magnetar.protocol.varints import varint


def index_stamp(index: int) -> bytes:
    """The stamp with an index; for a batch that of its last message."""
    number = varint(index)
    return b"\x0e\x02" + (1 + len(number)).to_bytes(4, "big") + b"\x10" + number
