"""An object store in memory for offloaded ledgers, which loses and damages what it holds when a test wants it."""

from __future__ import annotations

import io
from typing import Any


class MemoryObjectStore:
    """Implements :class:`magnetar.offload.object_store.ObjectStore`; outlives the brokers that use it."""

    def __init__(self, url: str = "file:///memory") -> None:
        self.url = url
        self.objects: dict[str, bytes] = {}
        self.deleted: list[str] = []
        self.failing = False
        """Nothing can be reached."""

    def _reach(self) -> None:
        if self.failing:
            raise OSError("the object store does not answer")

    def draft(self, name: str) -> _Draft:
        self._reach()
        return _Draft(self, name)

    def open(self, name: str) -> Any:
        self._reach()
        if name not in self.objects:
            raise FileNotFoundError(f"there is no {name}")
        return io.BytesIO(self.objects[name])

    def delete(self, name: str) -> None:
        self._reach()
        if self.objects.pop(name, None) is not None:
            self.deleted.append(name)

    def damage(self, name: str) -> None:
        """A bit in the middle of an object turns."""
        data = bytearray(self.objects[name])
        data[len(data) // 3] ^= 1
        self.objects[name] = bytes(data)


class _Draft:
    def __init__(self, place: MemoryObjectStore, name: str) -> None:
        self._place = place
        self._name = name
        self.target = io.BytesIO()

    def commit(self) -> int:
        self._place._reach()
        if self._name in self._place.objects:
            raise FileExistsError(self._name)
        data = self._place.objects[self._name] = self.target.getvalue()
        return len(data)

    def abandon(self) -> None:
        """Nothing to do: what was not committed does no harm."""
