"""First in, first out, for very many ordinals: eight bytes each."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Final

_SLACK: Final = 1_024


class LateQueue:
    """Entries that were passed over and are open now, in the order in which they are to go out."""

    __slots__ = ("_at", "_ordinals")

    def __init__(self) -> None:
        self._ordinals = array("q")
        self._at = 0

    def __len__(self) -> int:
        return len(self._ordinals) - self._at

    def extend(self, ordinals: Iterable[int]) -> None:
        self._ordinals.extend(ordinals)

    def front(self, entries_max: int) -> Sequence[int]:
        """The first ones."""
        return self._ordinals[self._at : self._at + entries_max]

    def drop(self, entries: int) -> None:
        """Take the first ones out."""
        self._at += entries
        if self._at >= _SLACK and 2 * self._at >= len(self._ordinals):
            del self._ordinals[: self._at]
            self._at = 0

    def clear(self) -> None:
        del self._ordinals[:]
        self._at = 0
