"""The schemas of topics, asked for over the broker's own port (rule 10.9) and remembered by this process.

A version never changes, so it is asked for once; what is the latest is asked for each time.
"""

from __future__ import annotations

from typing import NamedTuple

from magnetar.client.errors import RefusedError
from magnetar.client.lookup import Lookup
from magnetar.model.errors import InvalidValueError, ServerError
from magnetar.model.names import TopicName
from magnetar.model.schemas import SchemaDefinition, SchemaType, version_bytes

_known: dict[tuple[str, bytes], SchemaDefinition] = {}
"""The schemas that are known, by topic (with its cluster's first address) and version."""
_KNOWN_MAX = 4096


class Versioned(NamedTuple):
    version: int
    definition: SchemaDefinition


class Registry:
    """The schemas of one topic, or of the topic whose partition it is."""

    def __init__(self, lookup: Lookup, topic: str) -> None:
        self._lookup = lookup
        self._topic = TopicName.parse(topic).parent.fqn
        self._name = f"{lookup.name} {self._topic}"

    def latest(self) -> Versioned | None:
        """Return the latest schema; None if the topic has none, or there is no such topic."""
        found = self._ask(None)
        # A schema that was deleted is a version without a type.
        return None if found is None or found.definition.type is SchemaType.NONE else found

    def numbered(self, version: int) -> SchemaDefinition:
        """Return the schema of a version by its number. Raises InvalidValueError if there is no such version."""
        return self.version(version_bytes(version))

    def version(self, version: bytes) -> SchemaDefinition:
        """Return the schema of a version as an entry names it. Raises InvalidValueError if there is no such version."""
        key = self._name, version
        known = _known.get(key)
        if known is None:
            found = self._ask(version)
            if found is None:
                number = int.from_bytes(version, "big", signed=True)
                raise InvalidValueError(
                    f"the registry has no version {number} of the schema of {self._topic}; was it deleted?"
                )
            if len(_known) >= _KNOWN_MAX:
                _known.clear()
            known = _known[key] = found.definition
        return known

    def _ask(self, version: bytes | None) -> Versioned | None:
        answer = self._lookup.schema(self._topic, version)
        if answer.error is ServerError.TopicNotFound:
            return None
        if answer.error is not None:
            what = f"ask for the schema of {self._topic}"
            raise RefusedError(what, answer.error, answer.message)
        if answer.schema is None:
            return None
        given = answer.schema
        number = int.from_bytes(answer.schema_version or version or b"", "big", signed=True)
        return Versioned(number, SchemaDefinition(given.type, given.schema_data, dict(given.properties)))
