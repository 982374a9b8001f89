"""A metadata store that forgets: for tests. Behaves as the metadata log of :mod:`magnetar.storage` does."""

from __future__ import annotations

from magnetar.metadata.store import ABSENT, Record, Unwatch, Watcher, Watchers
from magnetar.model.errors import BadVersionError, NotFoundError


class MemoryMetadataStore:
    """Everything in one dictionary."""

    def __init__(self) -> None:
        self._records: dict[str, Record] = {}
        self._watchers = Watchers()

    def get(self, path: str) -> Record | None:
        return self._records.get(path)

    async def put(self, path: str, data: bytes, expected: int | None = None) -> int:
        current = self._records.get(path)
        found = ABSENT if current is None else current.version
        if expected is not None and expected != found:
            raise BadVersionError(f"{path} has version {found}, not {expected}")
        self._records[path] = Record(data, found + 1)
        self._watchers.changed(path)
        return found + 1

    async def delete(self, path: str, expected: int | None = None) -> None:
        current = self._records.get(path)
        if current is None:
            raise NotFoundError(f"{path} does not exist")
        if expected is not None and expected != current.version:
            raise BadVersionError(f"{path} has version {current.version}, not {expected}")
        del self._records[path]
        self._watchers.changed(path)

    def children(self, path: str) -> list[str]:
        prefix = path.rstrip("/") + "/"
        return sorted({p[len(prefix) :].partition("/")[0] for p in self._records if p.startswith(prefix)})

    def watch(self, prefix: str, watcher: Watcher) -> Unwatch:
        return self._watchers.add(prefix, watcher)

    async def close(self) -> None:
        self._records.clear()
