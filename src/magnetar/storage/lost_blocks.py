"""What segments say of blocks that are gone: the start and ``magnetar verify`` judge alike, and in the same words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from magnetar.storage.backends.journal_backend import segment_name

LOST_SEQUENCES: Final = 1 << 32
"""How far the numbers of blocks go on where it is not known how many were lost: more than a segment can have had."""
LOST_IDS: Final = 1 << 24
"""How far the ids of logs, ledgers and cursors go on where blocks are lost: more than a segment can have given. A start
that leaves no checkpoint is followed by one that skips as many again: there are 2**39 times as many."""


def gap_after(covered: int, segments: Iterable[int]) -> str | None:
    """Which segment is missing of those that must be replayed, after what a checkpoint covers; in words."""
    for expected, number in enumerate((number for number in segments if number > covered), covered + 1):
        if number != expected:
            return (
                f"{segment_name(expected)} is missing although {segment_name(number)} exists: restore it, or the "
                "newest checkpoint if one was damaged; starting without it would lose acknowledged messages"
            )
    return None


def newest_lost(noted: int | None, newest: int, *, hollow: bool) -> str | None:
    """What it means that the segment that was ``noted`` as begun is gone, or has no whole block, in words.

    ``newest``: the newest that there is, or that a checkpoint covers. None if all is well.
    """
    if noted is None or noted < newest or (noted == newest and not hollow):
        return None
    what = "has no readable block, not even its first," if noted == newest else "is missing:"
    return (
        f"{segment_name(noted)}, the newest, {what} what was written since the segment before it is lost. "
        "Put it back before the broker starts again; after that start it cannot be used any more"
    )


def begun_but_hollow(number: int) -> str:
    """What it means that a segment was noted as begun and has no whole block, though another follows, in words."""
    return f"{segment_name(number)} has no readable block, not even its first: what was written in it is lost"


def blocks_missing(number: int, expected: int, found: int) -> str | None:
    """What it means that the blocks after segment ``number`` begin with ``found`` where ``expected`` was, in words.

    None if nothing is missing, or only what an earlier start has named: it skipped the numbers that it may have had.
    """
    missing = (found - expected) % LOST_SEQUENCES if found > expected else 0
    if not missing:
        return None
    return (
        f"{segment_name(number)} ends before the segment after it begins: {missing} blocks between them, from "
        f"sequence {expected} on, are lost"
    )
