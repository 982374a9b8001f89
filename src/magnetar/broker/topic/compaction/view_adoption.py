"""A view that a job computed (decision 015): what the job gets, and what is checked before its result counts.

The job's word is taken for which messages stay, not for where they stand: their places must grow, lie below the
horizon, and be places of this topic. The generation says whether the topic was compacted meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple

from magnetar.broker.topic.compaction.compacted_view import CompactedView
from magnetar.broker.topic.compaction.view_writer import ViewWriter
from magnetar.compaction.view_entries import place_of
from magnetar.model.errors import ConflictError
from magnetar.model.ids import Position
from magnetar.storage.ledgers.managed_ledger import ManagedLedger

_STEP_ENTRIES: Final = 200
"""After so many the loop goes on with others."""

Pieces = AsyncIterator[tuple[Sequence[bytes], Sequence[int] | None]]
"""Packed entries of a view with their message counts, in order."""


class CompactionPlan(NamedTuple):
    """What is to be compacted, and from what."""

    generation: int
    """Generation of the view that is there; 0: none."""
    view: str
    """Name of its log, empty if there is none; it comes before everything else."""
    start: int
    """Ordinal from which on the log itself is to be read."""
    horizon: int
    """Ordinal after the last entry; what is between ``start`` and this lies in closed ledgers and may be read."""


async def adopt(
    log: ManagedLedger, old: CompactedView | None, horizon: int, pieces: Pieces, writer: ViewWriter
) -> None:
    """Write a job's result. Raises ConflictError if it cannot be one of this topic, and what writing raised."""
    last = -1
    async for entries, counts in pieces:
        for i, packed in enumerate(entries):
            ordinal, ledger, entry, data = place_of(packed)
            if not last < ordinal < horizon or not _stands(log, old, ordinal, Position(ledger, entry)):
                raise ConflictError(f"{log.name} has no entry {ledger}:{entry} with the number {ordinal} to be kept")
            last = ordinal
            await writer.write(ordinal, ledger, entry, data, 1 if counts is None else counts[i])
            if i % _STEP_ENTRIES == _STEP_ENTRIES - 1:
                await asyncio.sleep(0)
    await writer.durable()


def _stands(log: ManagedLedger, old: CompactedView | None, ordinal: int, position: Position) -> bool:
    if ordinal >= log.first:
        return log.exact_ordinal(position) == ordinal
    return old is not None and old.exact(position) == ordinal
