"""Compatibility strategies (rule 10.6): which versions are compared, and who must be able to read whom."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class CompatibilityStrategy(StrEnum):
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
        """Whether nothing may follow anything; a strategy that was never defined lets nothing through either."""
        return self in (CompatibilityStrategy.ALWAYS_INCOMPATIBLE, CompatibilityStrategy.UNDEFINED)


_NEW_READS_OLD: Final = frozenset(
    {
        CompatibilityStrategy.BACKWARD,
        CompatibilityStrategy.BACKWARD_TRANSITIVE,
        CompatibilityStrategy.FULL,
        CompatibilityStrategy.FULL_TRANSITIVE,
    }
)
_OLD_READS_NEW: Final = frozenset(
    {
        CompatibilityStrategy.FORWARD,
        CompatibilityStrategy.FORWARD_TRANSITIVE,
        CompatibilityStrategy.FULL,
        CompatibilityStrategy.FULL_TRANSITIVE,
    }
)
_CONSUMERS_READ_LATEST: Final = frozenset(
    {
        CompatibilityStrategy.BACKWARD,
        CompatibilityStrategy.FORWARD,
        CompatibilityStrategy.FORWARD_TRANSITIVE,
        CompatibilityStrategy.FULL,
    }
)


def of_consumers(strategy: CompatibilityStrategy) -> tuple[CompatibilityStrategy, bool]:
    """Return what a consumer's schema is checked by, and whether against all versions (rule 10.7)."""
    if strategy in _CONSUMERS_READ_LATEST:
        return CompatibilityStrategy.BACKWARD, False
    return strategy, True
