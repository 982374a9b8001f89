"""What the topic's cursor ``__compaction`` says of the compacted view. Pure.

The cursor's mark-delete position keeps what is not compacted yet from being trimmed; its properties name the view. Both
change in one record (decision 008).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

VIEW_PROPERTY: Final = "#compacted"
"""The broker's own: neither shown nor replaced with the others."""


class CompactedLedger(NamedTuple):
    """A ledger of the topic, trimmed or not, of which something stays."""

    id: int
    ordinal: int
    """Ordinal of its entry 0."""
    end: int
    """Ordinal after the last one that is compacted or, at least, that stays."""


class ViewFacts(NamedTuple):
    """What the cursor's properties say."""

    generation: int
    oldest: int
    """The lowest generation that may still exist on disk."""
    horizon: int
    """Ordinal after the last entry that was compacted."""
    ledger: int
    """The first ledger of the view's own log: what statistics show."""
    ledgers: tuple[CompactedLedger, ...]

    def to_property(self) -> list[Any]:
        """The value of the cursor's property."""
        return [self.generation, self.oldest, self.horizon, self.ledger, [list(ledger) for ledger in self.ledgers]]

    @classmethod
    def from_property(cls, value: list[Any]) -> ViewFacts:
        """The inverse of :meth:`to_property`."""
        generation, oldest, horizon, ledger, ledgers = value
        return cls(generation, oldest, horizon, ledger, tuple(CompactedLedger(*one) for one in ledgers))


def view_name(topic_log: int, generation: int) -> str:
    """Name of the log; no topic's name, so it is in no list."""
    return f"internal://compacted/{topic_log}/{generation}"
