"""Versions of schemas (rules 10.2, 10.3, 10.11): one record for each, so that a version once given stays as it is.

::

    /schemas/<tenant>/<namespace>/<topic>/<version>     {"type", "data" or "data_base64", "properties", "timestamp",
                                                         "deleted"}; the topic percent-encoded once more

A version is written under the condition that nothing is there yet and is durable when :meth:`SchemaStore.append`
returns. Numbers go up by one, deletions included; only :meth:`SchemaStore.purge`, with which the topic itself or its
whole history goes, lets them begin at 0 again.

Histories are read when they are first asked for and held as long as they are among those used last.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections import OrderedDict
from typing import Final
from urllib.parse import quote, unquote

from magnetar.metadata.collection import change_together
from magnetar.metadata.store import ABSENT, MetadataStore, RecordWrite
from magnetar.model.errors import MetadataError
from magnetar.model.policies import Json, JsonObject
from magnetar.model.schemas import SchemaDefinition, SchemaId, SchemaType, SchemaVersion

_ROOT: Final = "/schemas"
CACHED_BYTES_MAX: Final = 32 << 20
"""Definitions held in memory; the history in use is held in any case."""
_OVERHEAD_BYTES: Final = 500

History = tuple[SchemaVersion, ...]


class SchemaStore:
    """All versions of all schemas; used from the event loop's thread."""

    def __init__(self, store: MetadataStore, cached_bytes_max: int = CACHED_BYTES_MAX) -> None:
        self._store = store
        self._held: OrderedDict[SchemaId, History] = OrderedDict()
        self._held_bytes = 0
        self._bytes_max = cached_bytes_max
        store.watch(_ROOT, self._changed)

    def _changed(self, path: str) -> None:
        """A version came or went, by this process or by another one: its history is read again when it is asked for."""
        tenant, namespace, local_name, *_ = path[len(_ROOT) + 1 :].split("/")
        self._forget(SchemaId(unquote(tenant), unquote(namespace), unquote(local_name)))

    def history(self, schema: SchemaId) -> History:
        """Every version, in order, deletions included; empty for an unknown one. Raises MetadataError."""
        found = self._held.get(schema)
        if found is None:
            found = self._read(schema)
            self._hold(schema, found)
        else:
            self._held.move_to_end(schema)
        return found

    async def append(
        self, schema: SchemaId, definition: SchemaDefinition, now_ms: int, *, deleted: bool = False
    ) -> SchemaVersion:
        """Give it the next version; durable on return. Raises MetadataError, and then nothing has changed;
        BadVersionError if another writer gave that version meanwhile."""
        history = self.history(schema)
        number = history[-1].version + 1 if history else 0
        made = SchemaVersion(number, definition, now_ms, deleted)
        await self._store.put(_path(schema, number), _to_bytes(made), ABSENT)
        return made

    async def purge(self, schema: SchemaId) -> None:
        """Forget everything about it; durable on return."""
        await change_together(self._store, lambda: self.without(schema))

    def without(self, schema: SchemaId) -> list[RecordWrite]:
        """The writes that remove all its versions."""
        history = self.history(schema)
        if not history:
            self._forget(schema)  # what is not there need not be held
        return [RecordWrite(_path(schema, version.version), None) for version in history]

    def of_namespace(self, tenant: str, namespace: str) -> list[SchemaId]:
        """Schemas of a namespace, with or without a topic."""
        names = self._store.children(_join(tenant, namespace))
        return [SchemaId(tenant, namespace, unquote(name)) for name in names]

    def _read(self, schema: SchemaId) -> History:
        path = _join(schema.tenant, schema.namespace, schema.local_name)
        versions = []
        for child in self._store.children(path):
            record = self._store.get(f"{path}/{child}")
            if record is not None:
                versions.append(_from_bytes(f"{path}/{child}", child, record.data))
        return tuple(sorted(versions, key=lambda version: version.version))

    def _forget(self, schema: SchemaId) -> None:
        self._held_bytes -= _size(self._held.pop(schema, None))

    def _hold(self, schema: SchemaId, history: History) -> None:
        self._held_bytes += _size(history) - _size(self._held.pop(schema, None))
        self._held[schema] = history
        while self._held_bytes > self._bytes_max and len(self._held) > 1:
            self._held_bytes -= _size(self._held.popitem(last=False)[1])


def _size(history: History | None) -> int:
    if history is None:
        return 0
    return _OVERHEAD_BYTES + sum(len(version.definition.data) + _OVERHEAD_BYTES for version in history)


def _join(*parts: str) -> str:
    return "/".join((_ROOT, *(quote(part, safe="") for part in parts)))


def _path(schema: SchemaId, version: int) -> str:
    return f"{_join(schema.tenant, schema.namespace, schema.local_name)}/{version}"


def _to_bytes(version: SchemaVersion) -> bytes:
    definition = version.definition
    record: JsonObject = {"type": definition.type.name}
    try:
        record["data"] = definition.data.decode()
    except UnicodeDecodeError:
        record["data_base64"] = base64.b64encode(definition.data).decode()
    record["properties"] = dict(definition.properties)
    record["timestamp"] = version.timestamp_ms
    record["deleted"] = version.deleted
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()


def _from_bytes(path: str, child: str, data: bytes) -> SchemaVersion:
    try:
        record = json.loads(data)
        definition = SchemaDefinition(SchemaType[record["type"]], _data(record), dict(record["properties"]))
        return SchemaVersion(int(child), definition, int(record["timestamp"]), bool(record["deleted"]))
    except (ValueError, KeyError, TypeError, binascii.Error) as error:
        raise MetadataError(f"metadata record {path} is not a version of a schema: {error!r}") from error


def _data(record: dict[str, Json]) -> bytes:
    if "data" in record:
        return str(record["data"]).encode()
    return base64.b64decode(str(record["data_base64"]), validate=True)
