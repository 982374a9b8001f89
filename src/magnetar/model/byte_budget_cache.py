"""A cache of what was computed from what clients sent, within a budget of bytes.

A number of entries alone is no bound where a client chooses how long the keys are.
"""

from __future__ import annotations

from typing import Generic, TypeVar

Key = TypeVar("Key", str, bytes)
Value = TypeVar("Value")


class ByteBudgetCache(Generic[Key, Value]):
    """Values by key. What was not used goes first, what would take too much of the budget is not kept at all.

    Two generations: when the young one has half of the budget it becomes the old one, and what was the old one goes.
    """

    __slots__ = ("_bytes", "_half", "_old", "_young")

    def __init__(self, budget: int) -> None:
        self._young: dict[Key, tuple[Value, int]] = {}
        self._old: dict[Key, tuple[Value, int]] = {}
        self._half = budget // 2
        self._bytes = 0

    def get(self, key: Key) -> Value | None:
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key)
            if found is None:
                return None
            self.put(key, *found)
        return found[0]

    def put(self, key: Key, value: Value, size: int) -> None:
        """Keep a value; ``size`` is about the bytes of both. A key is put once, or again with the same value."""
        if size * 8 > self._half:
            return
        self._bytes += size
        if self._bytes > self._half:
            self._young, self._old, self._bytes = {}, self._young, size
        self._young[key] = (value, size)

    def clear(self) -> None:
        """Forget everything."""
        self._young, self._old, self._bytes = {}, {}, 0

    def __len__(self) -> int:
        return len(self._young.keys() | self._old.keys())
