"""A metadata store whose writes are counted and timed, for /metrics; reads are answered from memory and are not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from time import perf_counter
from typing import Final

from magnetar.metadata.store import MetadataStore, Record, RecordWrite, Unwatch, Watcher
from magnetar.runtime.distributions import Buckets

_MS: Final = (1, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)


class MeasuredStore:
    """Passes everything on to another :class:`~magnetar.metadata.store.MetadataStore`."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self.operations: dict[tuple[str, str], Buckets] = {}
        """Milliseconds by type (put, del) and status (success, fail)."""
        self.put_bytes = 0

    def get(self, path: str) -> Record | None:
        return self._store.get(path)

    async def put(self, path: str, data: bytes, expected: int | None = None) -> int:
        with self._timed("put"):
            version = await self._store.put(path, data, expected)
        self.put_bytes += len(data)
        return version

    async def delete(self, path: str, expected: int | None = None) -> None:
        with self._timed("del"):
            await self._store.delete(path, expected)

    async def write(self, writes: Sequence[RecordWrite]) -> None:
        with ExitStack() as timed:
            for write in writes:
                timed.enter_context(self._timed("del" if write.data is None else "put"))
            await self._store.write(writes)
        self.put_bytes += sum(len(write.data or b"") for write in writes)

    def children(self, path: str) -> list[str]:
        return self._store.children(path)

    def watch(self, prefix: str, watcher: Watcher) -> Unwatch:
        return self._store.watch(prefix, watcher)

    async def close(self) -> None:
        await self._store.close()

    @contextmanager
    def _timed(self, kind: str) -> Iterator[None]:
        began, status = perf_counter(), "fail"
        try:
            yield
            status = "success"
        finally:
            found = self.operations.setdefault((kind, status), Buckets(_MS))
            found.add((perf_counter() - began) * 1000)
