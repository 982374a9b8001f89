"""JSON records of one sort, held in memory and written through with the version that was read.

Reads never touch the store, so they may stand in the path of every command. What is held follows the store's watch: a
change by this process is here when its write returns, one by another process when the store hears of it. A write that
fails changes nothing here.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final
from urllib.parse import quote, unquote

from magnetar.metadata.store import ABSENT, MetadataStore, RecordWrite
from magnetar.model.errors import BadVersionError, ConflictError, MetadataError, NotFoundError
from magnetar.model.policies import JsonObject

log = logging.getLogger(__name__)

Key = tuple[str, ...]
_TRIES: Final = 100


class Collection:
    """Records below one path; a key has ``depth`` parts joined by ``/``, each percent-encoded in the store.

    ``changed`` is called with the key after each change, also one by another process.
    """

    def __init__(
        self, store: MetadataStore, root: str, depth: int, changed: Callable[[Key], None] | None = None
    ) -> None:
        self._store = store
        self._root = root
        self._depth = depth
        self._records: dict[Key, tuple[JsonObject, int]] = {}
        self._load((), depth)
        self._changed = changed
        store.watch(root, self._follow)

    def _load(self, key: Key, depth: int) -> None:
        for child in self._store.children(self._path(key)):
            below = (*key, unquote(child))
            if depth > 1:
                self._load(below, depth - 1)
            elif (record := self._store.get(self._path(below))) is not None:
                self._records[below] = (self._parse(below, record.data), record.version)

    def _follow(self, path: str) -> None:
        key = tuple(unquote(part) for part in path[len(self._root) + 1 :].split("/"))
        if len(key) != self._depth:
            return
        record = self._store.get(path)
        if record is None:
            self._records.pop(key, None)
        else:
            try:
                self._records[key] = (self._parse(key, record.data), record.version)
            except MetadataError as error:
                log.error("%s; what was known before stays in force", error)
                return
        if self._changed is not None:
            self._changed(key)

    def _parse(self, key: Key, data: bytes) -> JsonObject:
        try:
            value = json.loads(data)
        except ValueError as error:
            raise MetadataError(f"metadata record {self._path(key)} is not JSON: {error}") from error
        if not isinstance(value, dict):
            raise MetadataError(f"metadata record {self._path(key)} is not a JSON object")
        return value

    def _path(self, key: Key) -> str:
        return "/".join((self._root, *(quote(part, safe="") for part in key)))

    def get(self, *key: str) -> JsonObject | None:
        """The record, not to be changed by the caller: write a new one with :meth:`put`."""
        found = self._records.get(key)
        return None if found is None else found[0]

    def __contains__(self, key: object) -> bool:
        return key in self._records

    def below(self, *prefix: str) -> Iterator[Key]:
        """Keys that begin with ``prefix``, sorted."""
        size = len(prefix)
        return iter(sorted(key for key in self._records if key[:size] == prefix))

    async def put(self, key: Key, value: JsonObject) -> None:
        """Create or replace; durable on return. Raises BadVersionError if another writer came first."""
        (write,) = self.replacing(key, value)
        assert write.data is not None
        await self._store.put(write.path, write.data, write.expected)

    def replacing(self, key: Key, value: JsonObject | None) -> list[RecordWrite]:
        """The write for :func:`change_together` that replaces a record or, with None, removes it; none if it is not
        there."""
        if value is None:
            return [RecordWrite(self._path(key), None, self._records[key][1])] if key in self._records else []
        expected = self._records[key][1] if key in self._records else ABSENT
        return [RecordWrite(self._path(key), _to_bytes(value), expected)]

    async def create(self, key: Key, value: JsonObject, conflict: str) -> None:
        """:meth:`put` of a record that must not exist. Raises ConflictError with the text ``conflict`` if it does."""
        if key in self._records:
            raise ConflictError(conflict)
        try:
            await self.put(key, value)
        except BadVersionError:
            raise ConflictError(conflict) from None

    async def change(self, key: Key, changed: Callable[[JsonObject | None], JsonObject | None]) -> None:
        """Replace a record by what ``changed`` makes of it (None: there is none); durable on return.

        ``changed`` is called again when another writer came first; what it raises ends the change. Raises
        BadVersionError after a hundred such tries.
        """
        for left in reversed(range(_TRIES)):
            value = changed(self.get(*key))
            try:
                if value is not None:
                    await self.put(key, value)
                elif key in self._records:
                    await self.delete(key)
            except BadVersionError:
                if not left:
                    raise
                await asyncio.sleep(0)
                continue
            return

    async def delete(self, key: Key) -> None:
        """Remove a record that exists; durable on return. Raises BadVersionError if another writer came first.

        One that another writer has removed meanwhile is gone as well.
        """
        with suppress(NotFoundError):
            await self._store.delete(self._path(key), self._records[key][1])


async def change_together(store: MetadataStore, planned: Callable[[], Sequence[RecordWrite]]) -> None:
    """Make the changes that ``planned`` returns, of several records, all or none of them; durable on return.

    ``planned`` is called again when another writer came first; what it raises ends the change. Raises BadVersionError
    after a hundred such tries.
    """
    for left in reversed(range(_TRIES)):
        writes = planned()
        try:
            await store.write(writes)
        except (BadVersionError, NotFoundError):
            if not left:
                raise
            await asyncio.sleep(0)
            continue
        return


def _to_bytes(value: JsonObject) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
