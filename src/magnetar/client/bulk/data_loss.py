"""Data that a reader did not get because it is gone: found by what comes instead, proven by one question to the broker.

A broker that has trimmed what a reader was about to read goes on with what is left and says nothing (rule 4.3.2).
On the wire such a jump looks like one over entries that no reader gets (transaction markers, aborted messages), so a
jump alone proves nothing. But a second reader that asks to begin where the hole begins learns from its mark-delete
position where the broker has placed it: there if the entries still exist, after them if they are gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from magnetar.client.errors import ClientError
from magnetar.client.read_position import ReadPosition


class Hole(NamedTuple):
    """A range ``[start, stop)`` for which nothing came."""

    start: ReadPosition
    stop: ReadPosition


class DataGap(NamedTuple):
    """A range ``[start, stop)`` of a topic that is gone."""

    topic: str
    start: ReadPosition
    stop: ReadPosition
    certain: bool
    """Whether there ever was something. Not known if the hole begins where the ledger that is gone may have ended."""

    def __str__(self) -> str:
        there = "is" if self.certain else "is, if it ever was there,"
        return f"{self.topic}: what was between {self.start} and {self.stop} {there} trimmed or deleted"


class DataLossError(ClientError):
    """A range was asked for that the broker does not have any more, or not as it was sent."""

    def __init__(self, message: str, gap: DataGap | None = None) -> None:
        super().__init__(message)
        self.gap = gap
        """What is missing, if that is what is wrong."""


def gaps(topic: str, holes: Sequence[Hole], placed_at: ReadPosition, end: ReadPosition) -> list[DataGap]:
    """Return the holes, in order, that are gaps if a reader that asks for the first one's beginning is at
    ``placed_at``.

    ``end`` of the range that is read is after a message that existed.
    """
    found = []
    for hole in holes:
        stop = min(placed_at, hole.stop)
        if hole.start[:2] < stop[:2]:
            inside = hole.start.ledger in (stop.ledger, end.ledger) or stop.entry > 0
            found.append(DataGap(topic, hole.start, stop, inside))
    return found
