"""What an empty message is on the wire."""

from __future__ import annotations

import pytest

from magnetar.client.machines.outgoing.outgoing_message import EntryMaker, OutgoingMessage
from magnetar.protocol.compression import CompressionType
from magnetar.protocol.entries import metadata_of, payload_of


@pytest.mark.parametrize("compression", CompressionType)
def test_nothing_is_not_compressed(compression: CompressionType) -> None:
    """The official C++ and Python clients cannot unpack the eight bytes that ZLIB makes of it. Anything else is
    compressed, also below the 4 KiB of Java (rule 3.7.7)."""
    maker = EntryMaker("p", compression)
    empty = maker.single(OutgoingMessage(b"", null_value=True), 0, 0)
    metadata = metadata_of(empty)
    assert (metadata.compression, metadata.uncompressed_size, payload_of(empty)) == (CompressionType.NONE, 0, b"")
    full = maker.single(OutgoingMessage(b"value"), 1, 0)
    assert metadata_of(full).compression is compression
