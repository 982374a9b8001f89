"""How one consumer reads values from one topic: a decoder for each version of the topic's schema that it meets.

An entry names the version that its messages were written with. Where the schema cannot do without the writer's
definition (`ValueSchema.needs_versions`), the consumer holds an entry back until the definition is here, so that
`Message.value` never waits. A definition that is not to be had, or that our schema cannot read, is an error of the
messages' values: they come all the same, unacknowledged, with their bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from magnetar.client.errors import SchemaError
from magnetar.client.values.key_value_schema import SeparatedPairs
from magnetar.client.values.value_schema import ReceivedContent, ValueSchema
from magnetar.model.schemas import SchemaDefinition

VERSIONS_MAX: Final = 256
"""Versions of one topic that are remembered; the one that was met first is asked for again."""


class ReceivedMessage(ReceivedContent, Protocol):
    """A message with what an error about it says."""

    def topic_name(self) -> str: ...
    def message_id(self) -> object: ...
    def schema_version(self) -> bytes | None: ...


class WrittenSchema:
    """How messages of one version are read; all of an entry share it."""

    __slots__ = ("_decode", "_failure")

    def __init__(self, decode: Callable[[ReceivedContent], Any] | None, failure: Exception | None = None) -> None:
        self._decode = decode
        self._failure = failure

    def value_of(self, message: ReceivedMessage) -> Any:
        """Return the value, None for one without, unless the key is a part of it. Raises SchemaError."""
        if message.has_null_value() and not message.data() and not isinstance(self._decode, SeparatedPairs):
            return None
        if self._decode is None:
            raise _about(message, self._failure) from self._failure
        try:
            return self._decode(message)
        except Exception as error:
            raise _about(message, error) from error


SEALED: Final = WrittenSchema(None, SchemaError("it is encrypted, and no key opened it"))


class SchemaReading:
    """The versions of one topic, as one consumer's schema reads them."""

    def __init__(self, schema: ValueSchema[Any]) -> None:
        self.schema = schema
        self.needs_versions = schema.needs_versions
        self._known: dict[bytes, WrittenSchema] = {}
        self._plain = self._made(None)
        """For messages that name no version, and for schemas that need none."""

    def knows(self, version: bytes | None) -> bool:
        """Whether messages of a version can be handed out."""
        return not version or not self.needs_versions or version in self._known

    def learn(self, version: bytes, found: SchemaDefinition | Exception) -> None:
        """Take the definition of a version, or why there is none."""
        while len(self._known) >= VERSIONS_MAX:
            del self._known[next(iter(self._known))]
        self._known[version] = WrittenSchema(None, found) if isinstance(found, Exception) else self._made(found)

    def forget(self, version: bytes) -> None:
        """Have a version asked for again when it is met again."""
        self._known.pop(version, None)

    def at(self, version: bytes | None) -> WrittenSchema:
        """Return how messages of a version are read."""
        if not version or not self.needs_versions:
            return self._plain
        found = self._known.get(version)
        if found is None:
            return WrittenSchema(None, SchemaError("the definition of its version is not known here"))
        return found

    def _made(self, writer: SchemaDefinition | None) -> WrittenSchema:
        try:
            return WrittenSchema(self.schema.content_decoder(writer))
        except Exception as error:  # whatever a schema of the application's own raises
            return WrittenSchema(None, error)


def _about(message: ReceivedMessage, cause: Exception | None) -> SchemaError:
    raw = message.schema_version()
    version = int.from_bytes(raw, "big", signed=True) if raw else None
    said = "without a schema version" if version is None else f"of schema version {version}"
    error = SchemaError(
        f"{message.topic_name()}: the value of message {message.message_id()} {said} cannot be read: {cause}; it is "
        "not acknowledged, and message.data() has its bytes"
    )
    error.topic, error.message_id, error.schema_version = message.topic_name(), message.message_id(), version
    return error
