"""Rows for entries that cannot be decoded on their own: a chunk of a message, or an encrypted entry.

Jobs compare what is stored, not what a consumer makes of it: two clusters hold the same if they hold the same
chunks, and an audit needs no keys. So a chunk and an encrypted entry each become one row whose value is the payload as
it is. Properties whose names no producer uses say what the row is.
"""

from __future__ import annotations

from typing import Final

from magnetar.columnar.single_entries.opener import as_single_message, is_chunk
from magnetar.protocol.entries import build_entry, is_encrypted, may_be_chunk, mended_metadata_of, payload_of

CHUNK: Final = "__chunk"
"""Property of a row that is one chunk of a message: uuid, number and count of chunks, separated by blanks."""
ENCRYPTED: Final = "__encrypted"
"""Property of a row whose value is encrypted: the number of messages in it."""


def readable_entry(entry: bytes, *, first_chunks: bool = False) -> bytes | None:
    """Return the entry itself, or one plain message with its payload if it is a chunk or encrypted. Raises
    ProtocolError.

    Returns None for a chunk after the first if only ``first_chunks`` are wanted.
    """
    if not may_be_chunk(entry) and not is_encrypted(entry):
        return entry
    metadata = mended_metadata_of(entry)
    notes: tuple[tuple[str, str], ...] = ()
    if metadata.encryption_keys:
        notes += ((ENCRYPTED, str(metadata.num_messages_in_batch or 1)),)
    if is_chunk(metadata):
        notes += ((CHUNK, f"{metadata.uuid} {metadata.chunk_id} {metadata.num_chunks_from_msg}"),)
        if first_chunks and metadata.chunk_id:
            return None
    if not notes:
        return entry
    return build_entry(as_single_message(metadata, notes), payload_of(entry))
