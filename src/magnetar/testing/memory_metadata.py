"""A metadata store that forgets: for tests. Behaves as the metadata log of :mod:`magnetar.storage` does."""

from __future__ import annotations

from collections.abc import Sequence

from magnetar.metadata.store import Record, RecordWrite, Unwatch, Watcher, Watchers, follow_versions


class MemoryMetadataStore:
    """Everything in one dictionary."""

    def __init__(self) -> None:
        self._records: dict[str, Record] = {}
        self._watchers = Watchers()

    def get(self, path: str) -> Record | None:
        return self._records.get(path)

    async def put(self, path: str, data: bytes, expected: int | None = None) -> int:
        await self.write([RecordWrite(path, data, expected)])
        return self._records[path].version

    async def delete(self, path: str, expected: int | None = None) -> None:
        await self.write([RecordWrite(path, None, expected)])

    async def write(self, writes: Sequence[RecordWrite]) -> None:
        versions = follow_versions(self, writes)
        for write, version in zip(writes, versions, strict=True):
            if write.data is None:
                del self._records[write.path]
            else:
                self._records[write.path] = Record(write.data, version)
        for write in writes:
            self._watchers.changed(write.path)

    def children(self, path: str) -> list[str]:
        prefix = path.rstrip("/") + "/"
        return sorted({p[len(prefix) :].partition("/")[0] for p in self._records if p.startswith(prefix)})

    def watch(self, prefix: str, watcher: Watcher) -> Unwatch:
        return self._watchers.add(prefix, watcher)

    async def close(self) -> None:
        self._records.clear()
