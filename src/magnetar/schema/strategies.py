"""Compatibility strategies (SEMANTICS 10.6): which versions are compared, and who must be able to read whom."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Strategy(StrEnum):
    UNDEFINED = "UNDEFINED"
    ALWAYS_INCOMPATIBLE = "ALWAYS_INCOMPATIBLE"
    ALWAYS_COMPATIBLE = "ALWAYS_COMPATIBLE"
    BACKWARD = "BACKWARD"
    FORWARD = "FORWARD"
    FULL = "FULL"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def transitive(self) -> bool:
        """Whether all versions count, not only the latest."""
        return self.value.endswith("_TRANSITIVE")

    @property
    def new_reads_old(self) -> bool:
        return self in _NEW_READS_OLD

    @property
    def old_reads_new(self) -> bool:
        return self in _OLD_READS_NEW

    @property
    def never(self) -> bool:
        """Whether nothing may follow anything; what was never defined lets nothing through either."""
        return self in (Strategy.ALWAYS_INCOMPATIBLE, Strategy.UNDEFINED)


_NEW_READS_OLD: Final = frozenset(
    {Strategy.BACKWARD, Strategy.BACKWARD_TRANSITIVE, Strategy.FULL, Strategy.FULL_TRANSITIVE}
)
_OLD_READS_NEW: Final = frozenset(
    {Strategy.FORWARD, Strategy.FORWARD_TRANSITIVE, Strategy.FULL, Strategy.FULL_TRANSITIVE}
)
_CONSUMERS_READ_LATEST: Final = frozenset(
    {Strategy.BACKWARD, Strategy.FORWARD, Strategy.FORWARD_TRANSITIVE, Strategy.FULL}
)


def of_consumers(strategy: Strategy) -> tuple[Strategy, bool]:
    """What a consumer's schema is checked by, and whether against all versions (10.7)."""
    if strategy in _CONSUMERS_READ_LATEST:
        return Strategy.BACKWARD, False
    return strategy, True
