"""Identifiers inside commands: message ids, transaction ids, and lists of key and value.

Numbers that Pulsar keeps in a uint64 but means as a signed long (-1 for "none") are signed here.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

KeyValues: TypeAlias = tuple[tuple[str, str], ...]
"""Repeated KeyValue: order kept, duplicates kept (rule 3.8.5)."""

KeyLongValues: TypeAlias = tuple[tuple[str, int], ...]
"""Repeated KeyLongValue."""


class MessageIdData(NamedTuple):
    """Where a message is; what stands at its default is absent on the wire."""

    ledger: int
    entry: int
    partition: int = -1
    batch_index: int = -1
    ack_set: tuple[int, ...] = ()
    batch_size: int = 0
    first_chunk: MessageIdData | None = None


class TxnId(NamedTuple):
    """A transaction: coordinator in the most significant bits, its sequence in the least."""

    most: int
    least: int
