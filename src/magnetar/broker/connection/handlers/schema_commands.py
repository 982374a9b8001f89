"""Schemas in commands: GET_SCHEMA, GET_OR_CREATE_SCHEMA, and the schemas of PRODUCER and SUBSCRIBE (rules of group 10).

Texts of refused producers repeat themselves as Apache Pulsar's do, so that a program that looks for them finds them.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Any, Final, Protocol

from magnetar.broker.connection.handlers.metadata_write import write_metadata
from magnetar.broker.connection.session import Session
from magnetar.broker.schema_registry import SchemaRegistry
from magnetar.model.errors import IncompatibleSchemaError, MagnetarError, ServerError
from magnetar.model.names import TopicName
from magnetar.model.schemas import SchemaDefinition, SchemaId, SchemaType, SchemaVersion, version_bytes
from magnetar.protocol import commands as c

_INCOMPATIBLE: Final = "org.apache.pulsar.broker.service.schema.exceptions.IncompatibleSchemaException"
_VERSION_BYTES: Final = 8


class _Consumer(Protocol):
    @property
    def info(self) -> dict[str, Any]: ...


class _Subscription(Protocol):
    @property
    def consumers(self) -> Sequence[_Consumer]: ...


class _Log(Protocol):
    @property
    def first(self) -> int: ...
    @property
    def end(self) -> int: ...


class SchemaTopic(Protocol):
    """What the schema commands need of a topic before a schema is added to it."""

    @property
    def name(self) -> TopicName: ...
    @property
    def producers(self) -> Sized: ...
    def loaded_subscriptions(self) -> Sequence[_Subscription]: ...
    @property
    def log(self) -> _Log: ...


async def version_for_producer(registry: SchemaRegistry, topic: TopicName, schema: c.Schema | None) -> bytes:
    """The schema version for PRODUCER_SUCCESS, registered if it is new; empty without a schema.

    Raises IncompatibleSchemaError, InvalidSchemaDataError.
    """
    try:
        if schema is not None:
            return version_bytes(await registry.add(topic, definition_of(schema), by_client=True))
        registry.require_schema_of_producer(topic)
    except IncompatibleSchemaError as error:
        text = f"{_INCOMPATIBLE}: {error}"
        raise IncompatibleSchemaError(f"{text} caused by {text}") from None
    return b""


async def admit_consumer(registry: SchemaRegistry, topic: SchemaTopic, schema: c.Schema | None) -> None:
    """Check the schema of a consumer; on a topic that is not in use yet it becomes the topic's (rules 10.7, 10.8).

    Raises IncompatibleSchemaError, InvalidSchemaDataError.
    """
    if schema is None or schema.type is SchemaType.AUTO_CONSUME:
        return
    definition = definition_of(schema)
    if registry.versions(topic.name) or _in_use(topic):
        await registry.require_readable(topic.name, definition)
    else:
        await registry.add(topic.name, definition, by_client=True)


def takes_any_schema(schema: c.Schema | None) -> bool:
    """Whether a consumer takes messages of any schema (AUTO_CONSUME), and so does not count as a user of one."""
    return schema is not None and schema.type is SchemaType.AUTO_CONSUME


def _in_use(topic: SchemaTopic) -> bool:
    if len(topic.producers) or (topic.name.persistent and topic.log.end > topic.log.first):
        return True
    return any(
        not consumer.info.get("takesAnySchema")
        for subscription in topic.loaded_subscriptions()
        for consumer in subscription.consumers
    )


def definition_of(schema: c.Schema) -> SchemaDefinition:
    """The definition in a command's schema, whose name only the client uses."""
    return SchemaDefinition(schema.type, schema.schema_data, dict(schema.properties))


def get_schema(session: Session, command: c.CommandGetSchema) -> None:
    """Answer GET_SCHEMA (rule 10.9); the latest version may be a deletion, which has type None."""
    try:
        name = TopicName.parse(command.topic)
        found = _wanted(session.service.schemas, name, command.schema_version)
    except MagnetarError as error:
        session.complain(error.code.name, "GET_SCHEMA of %s refused: %s", command.topic, error)
        text = str(error).removeprefix("Invalid topic name: ")
        session.send(c.CommandGetSchemaResponse(command.request_id, error.code, text))
        return
    if found is None:
        text = f"Topic not found or no-schema {command.topic}"
        session.send(c.CommandGetSchemaResponse(command.request_id, ServerError.TopicNotFound, text))
        return
    given = found.definition
    schema = c.Schema(str(SchemaId.of(name)), given.data, given.type, tuple(given.properties.items()))
    session.send(
        c.CommandGetSchemaResponse(command.request_id, schema=schema, schema_version=version_bytes(found.version))
    )


def _wanted(registry: SchemaRegistry, name: TopicName, version: bytes | None) -> SchemaVersion | None:
    if version is None:
        history = registry.history(name)
        return history[-1] if history else None
    if not version:
        raise IncompatibleSchemaError("Empty schema version")
    if len(version) != _VERSION_BYTES:
        raise IncompatibleSchemaError(f"a schema version has {_VERSION_BYTES} bytes, {len(version)} were sent")
    return registry.get(name, int.from_bytes(version, "big", signed=True))


def get_or_create_schema(session: Session, command: c.CommandGetOrCreateSchema) -> None:
    """Answer GET_OR_CREATE_SCHEMA as for a producer, except that type None stands for no schema (rule 10.10)."""
    schema = None if command.schema.type is SchemaType.NONE else command.schema

    def answer(version: bytes | None, error: MagnetarError | None) -> None:
        if error is None:
            session.send(c.CommandGetOrCreateSchemaResponse(command.request_id, schema_version=version))
            return
        session.complain(error.code.name, "GET_OR_CREATE_SCHEMA of %s refused: %s", command.topic, error)
        session.send(c.CommandGetOrCreateSchemaResponse(command.request_id, error.code, str(error)))

    try:
        name = TopicName.parse(command.topic)
        if not session.service.exists(name):
            text = f"Topic not found {command.topic}"
            session.send(c.CommandGetOrCreateSchemaResponse(command.request_id, ServerError.TopicNotFound, text))
            return
    except MagnetarError as error:
        answer(None, error)
    else:
        write_metadata(
            session, version_for_producer(session.service.schemas, name, schema), answer, "GET_OR_CREATE_SCHEMA"
        )
