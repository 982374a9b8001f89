"""JSON records of one sort: read once, held in memory, written through with the version that was read.

Reads never touch the store, so they may stand in the path of every command. A write that fails changes nothing here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import quote, unquote

from magnetar.metadata.store import ABSENT, MetadataStore
from magnetar.model.errors import MetadataError
from magnetar.model.policies import JsonObject


class Collection:
    """Records below one path; a key has ``depth`` parts joined by ``/``, each percent-encoded in the store."""

    def __init__(self, store: MetadataStore, root: str, depth: int) -> None:
        self._store = store
        self._root = root
        self._records: dict[tuple[str, ...], tuple[JsonObject, int]] = {}
        self._load((), depth)

    def _load(self, key: tuple[str, ...], depth: int) -> None:
        for child in self._store.children(self._path(key)):
            below = (*key, unquote(child))
            if depth > 1:
                self._load(below, depth - 1)
            elif (record := self._store.get(self._path(below))) is not None:
                self._records[below] = (self._parse(below, record.data), record.version)

    def _parse(self, key: tuple[str, ...], data: bytes) -> JsonObject:
        try:
            value = json.loads(data)
        except ValueError as error:
            raise MetadataError(f"metadata record {self._path(key)} is not JSON: {error}") from error
        if not isinstance(value, dict):
            raise MetadataError(f"metadata record {self._path(key)} is not a JSON object")
        return value

    def _path(self, key: tuple[str, ...]) -> str:
        return "/".join((self._root, *(quote(part, safe="") for part in key)))

    def get(self, *key: str) -> JsonObject | None:
        """The record, not to be changed by the caller: write a new one with :meth:`put`."""
        found = self._records.get(key)
        return None if found is None else found[0]

    def __contains__(self, key: object) -> bool:
        return key in self._records

    def below(self, *prefix: str) -> Iterator[tuple[str, ...]]:
        """Keys that begin with ``prefix``, sorted."""
        size = len(prefix)
        return iter(sorted(key for key in self._records if key[:size] == prefix))

    def put(self, key: tuple[str, ...], value: JsonObject) -> None:
        """Create or replace; durable on return. Raises BadVersionError if somebody else wrote meanwhile."""
        expected = self._records[key][1] if key in self._records else ABSENT
        data = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        self._records[key] = (value, self._store.put(self._path(key), data, expected))

    def delete(self, key: tuple[str, ...]) -> None:
        """Remove a record that exists; durable on return."""
        self._store.delete(self._path(key), self._records[key][1])
        del self._records[key]
