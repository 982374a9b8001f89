"""What `verify` reports: a place, and what is wrong there."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

LISTED_MAX: Final = 5
"""Numbers, rows or messages that a text names before it says how many more there are."""
NO_MANIFEST: Final = "no manifest names it: manifests were removed, or the checkpoint was set back"


class Discrepancy(NamedTuple):
    """One thing that is not as the manifests say."""

    where: str
    """The micro-batch, and the source or output."""
    text: str
    """What is wrong."""

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


def named(batches: Collection[int]) -> str:
    """Name micro-batches: ``batch 3``, ``batches 3 to 7``, ``batches 3, 5, 8 and 4 more``."""
    numbers = sorted(batches)
    if len(numbers) == 1:
        return f"batch {numbers[0]}"
    if numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"batches {numbers[0]} to {numbers[-1]}"
    more = f" and {len(numbers) - LISTED_MAX} more" if len(numbers) > LISTED_MAX else ""
    return f"batches {', '.join(map(str, numbers[:LISTED_MAX]))}{more}"
