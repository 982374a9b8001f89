"""The message that deletes a key from a compacted topic."""

from __future__ import annotations

from magnetar.protocol.entries import EntryMetadata, build_entry


def deletion(key: str) -> bytes:
    single = b"\x12" + bytes([len(key)]) + key.encode() + b"\x18\x00"
    metadata = EntryMetadata("p", 0, 1, num_messages_in_batch=1)
    return build_entry(metadata, len(single).to_bytes(4, "big") + single)
