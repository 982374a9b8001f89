"""What a broker says about the schema of a topic (rule 10.9), and the versions that are remembered.

A version never changes, so it is asked for once; what is the latest is asked for each time.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from magnetar.client.errors import RefusedError
from magnetar.model.errors import InvalidValueError, ServerError
from magnetar.model.names import TopicName
from magnetar.model.schemas import SchemaDefinition, SchemaType
from magnetar.protocol.commands import CommandGetSchemaResponse

_KNOWN_MAX: Final = 4096


class Versioned(NamedTuple):
    """A version's number and its definition."""

    version: int
    definition: SchemaDefinition


class KnownSchemas:
    """Definitions by topic and version, as many as are worth it."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, bytes], SchemaDefinition] = {}

    def get(self, topic: str, version: bytes) -> SchemaDefinition | None:
        """Return the definition, None if it is not known."""
        return self._known.get((topic, version))

    def add(self, topic: str, version: bytes, definition: SchemaDefinition) -> None:
        """Remember a definition."""
        if len(self._known) >= _KNOWN_MAX:
            self._known.clear()
        self._known[topic, version] = definition


def schema_topic(topic: str) -> str:
    """Return the topic whose schema it is: that of a partition is its parent's (rule 10.2)."""
    return TopicName.parse(topic).parent.fqn


def read_schema(topic: str, version: bytes | None, answer: CommandGetSchemaResponse) -> Versioned | None:
    """Return what an answer says; None if there is no such topic, schema or version. Raises RefusedError."""
    if answer.error is ServerError.TopicNotFound:
        return None
    if answer.error is not None:
        raise RefusedError(f"ask for the schema of {topic}", answer.error, answer.message)
    if answer.schema is None:
        return None
    given = answer.schema
    number = int.from_bytes(answer.schema_version or version or b"", "big", signed=True)
    return Versioned(number, SchemaDefinition(given.type, given.schema_data, dict(given.properties)))


def unless_deleted(found: Versioned | None) -> Versioned | None:
    """Return the latest version; None for a schema that was deleted, which is a version without a type."""
    return None if found is None or found.definition.type is SchemaType.NONE else found


def no_such_version(topic: str, version: bytes) -> InvalidValueError:
    """Return the error about a version that the registry does not have."""
    number = int.from_bytes(version, "big", signed=True)
    return InvalidValueError(f"the registry has no version {number} of the schema of {topic}; was it deleted?")
