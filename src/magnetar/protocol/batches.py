"""Batches as a bulk sender makes them, each one entry (`columnar.entries.packer` makes them).

The bulk counterpart of `entries.join_batch`. Batches are cut by number and bytes only, never by time, so the same
messages give the same batches: a sender that has to start over meets the borders it had before. A message with a time
to be delivered at is an entry of its own, since a broker delays entries.

    message  [u32 size][01 properties.. 02 key 06 base64 03 size 05 event time 08 sequence 09 null 07 ordering key]
             [payload]

With ``digest_bits`` the lowest bits of the highest sequence id of each entry are a digest of all messages that this
writer has packed so far, wherever the batches were cut; the sequence ids that are given must leave these bits 0. From
what the broker remembers of a producer, a sender that starts over then sees whether it has the same messages again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from magnetar.protocol.entries import EntryMetadata

BATCH_MESSAGES_MAX: Final = 1_000
BATCH_BYTES_MAX: Final = 128 << 10

Seal: TypeAlias = Callable[[EntryMetadata, bytes], tuple[EntryMetadata, bytes]]
"""Encrypts an entry's payload, which is compressed by then."""


class Batch(NamedTuple):
    entry: bytes
    messages: int
    sequence_id: int
    """The id of the first message."""
    highest_sequence_id: int
    """The id of the last message."""
