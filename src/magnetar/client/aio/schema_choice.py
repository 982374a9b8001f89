"""What the ``schema`` that an application gives means: what the broker hears, and how values become bytes and back."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from typing_extensions import TypeVar

from magnetar.client.aio.connections.topic_lookup import TopicLookup
from magnetar.client.values.auto_schemas import AutoConsumeSchema, AutoProduceBytesSchema
from magnetar.client.values.primitives import BytesSchema
from magnetar.client.values.value_schema import ValueSchema
from magnetar.model.errors import InvalidValueError
from magnetar.protocol.commands import Schema

T = TypeVar("T", default=bytes)
GivenSchema: TypeAlias = ValueSchema[T] | Schema | None
"""What applications give: a schema for values, or a definition to register for messages that stay bytes."""


class SchemaChoice(NamedTuple):
    """Both halves; None where there is none."""

    registered: Schema | None
    values: ValueSchema[Any] | None


async def schema_of_producer(schema: GivenSchema[Any], topic: str, lookup: TopicLookup) -> SchemaChoice:
    """Return what a producer is opened with. AutoProduceBytesSchema asks what the topic has.

    Raises InvalidValueError for what is no schema, SchemaError for one that produces nothing.
    """
    if isinstance(schema, AutoConsumeSchema):
        raise InvalidValueError("AutoConsumeSchema is for consumers and readers; produce with AutoProduceBytesSchema")
    if isinstance(schema, AutoProduceBytesSchema):
        schema = schema.bound_to(await lookup.latest_schema(topic))
    if not isinstance(schema, ValueSchema):
        return SchemaChoice(_definition(schema), None)
    plain = isinstance(schema, BytesSchema)
    return SchemaChoice(schema.schema_info().registered(), None if plain else schema)


def schema_of_consumer(schema: GivenSchema[Any]) -> SchemaChoice:
    """Return what a consumer or reader subscribes with. Raises InvalidValueError for what is no schema."""
    if isinstance(schema, AutoProduceBytesSchema):
        raise InvalidValueError("AutoProduceBytesSchema is for producers; consume with AutoConsumeSchema")
    if not isinstance(schema, ValueSchema):
        return SchemaChoice(_definition(schema), None)
    plain = isinstance(schema, BytesSchema)
    return SchemaChoice(schema.schema_info().subscribed(), None if plain else schema)


def _definition(schema: Schema | None) -> Schema | None:
    if schema is not None and not isinstance(schema, Schema):
        kind = f"{type(schema).__module__}.{type(schema).__qualname__}"
        raise InvalidValueError(
            f"schema: an object of magnetar.schema is expected, such as StringSchema() or AvroSchema(Order), not {kind}"
        )
    return schema
