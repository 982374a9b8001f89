"""The schemas of topics for the blocking client: asked for over the broker's own port, remembered by this process."""

from __future__ import annotations

from magnetar.client.lookup import Lookup
from magnetar.client.values.registry_answer import (
    KnownSchemas,
    Versioned,
    no_such_version,
    read_schema,
    schema_topic,
    unless_deleted,
)
from magnetar.model.schemas import SchemaDefinition, version_bytes

_known = KnownSchemas()
"""By topic, with its cluster's first address, and version."""


class Registry:
    """The schemas of one topic, or of the topic whose partition it is."""

    def __init__(self, lookup: Lookup, topic: str) -> None:
        self._lookup = lookup
        self._topic = schema_topic(topic)
        self._name = f"{lookup.name} {self._topic}"

    def latest(self) -> Versioned | None:
        """Return the latest schema; None if the topic has none, or there is no such topic."""
        return unless_deleted(self._ask(None))

    def numbered(self, version: int) -> SchemaDefinition:
        """Return the schema of a version by its number. Raises InvalidValueError if there is no such version."""
        return self.version(version_bytes(version))

    def version(self, version: bytes) -> SchemaDefinition:
        """Return the schema of a version as an entry names it. Raises InvalidValueError if there is no such version."""
        known = _known.get(self._name, version)
        if known is None:
            found = self._ask(version)
            if found is None:
                raise no_such_version(self._topic, version)
            known = found.definition
            _known.add(self._name, version, known)
        return known

    def _ask(self, version: bytes | None) -> Versioned | None:
        return read_schema(self._topic, version, self._lookup.schema(self._topic, version))
