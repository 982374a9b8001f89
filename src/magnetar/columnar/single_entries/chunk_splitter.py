"""Splits a message that is larger than the broker takes into chunks (rule 3.6.2); `chunk_joiner` joins them again.

The message is compressed as a whole, cut into pieces that fit with their metadata, and each piece is encrypted for
itself. All chunks have the message's sequence id, and their uuid follows from producer and sequence id, so an attempt
that sends them again sends the same message again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from magnetar.protocol.batches import Seal
from magnetar.protocol.compression import compress
from magnetar.protocol.entries import EntryMetadata, build_entry, split_batch

_NUMBERS: Final = 32
"""Bytes that numbers of chunks and sizes, and the tag of an encrypted payload, may take beyond what was measured."""


def split_into_chunks(metadata: EntryMetadata, plain: bytes, limit: int, seal: Seal | None) -> list[bytes]:
    """Return entries of ``limit`` bytes at most; none if the metadata alone do not fit.

    ``metadata`` and ``plain`` are those of a batch of one message, neither compressed nor encrypted yet.
    """
    ((single, value),) = split_batch(plain, 1)
    whole = replace(
        metadata,
        properties=single.properties,
        event_time=single.event_time,
        null_value=single.null_value,
        uncompressed_size=len(value),
        num_messages_in_batch=None,
        highest_sequence_id=None,
        uuid=f"{metadata.producer_name}-{metadata.sequence_id}",
    )
    packed = compress(metadata.compression, value)
    marked = replace(whole, num_chunks_from_msg=1, chunk_id=0, total_chunk_msg_size=len(packed))
    room = limit - len(_entry(marked, b"", seal)) - _NUMBERS
    if room <= 0:
        return []
    pieces = [packed[at : at + room] for at in range(0, len(packed), room)]
    if len(pieces) < 2:
        # It was too large as a batch only.
        return [_entry(replace(whole, uuid=None), packed, seal)]
    marked = replace(marked, num_chunks_from_msg=len(pieces))
    return [_entry(replace(marked, chunk_id=number), piece, seal) for number, piece in enumerate(pieces)]


def _entry(metadata: EntryMetadata, payload: bytes, seal: Seal | None) -> bytes:
    if seal is not None:
        metadata, payload = seal(metadata, payload)
    return build_entry(metadata, payload)
