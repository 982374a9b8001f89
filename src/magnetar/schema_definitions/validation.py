"""What may be registered at all: a definition that its own type cannot read is refused before anything is compared.

Texts begin as Apache Pulsar's; what follows ``caused by`` is ours and names the place.
"""

from __future__ import annotations

from typing import Final

from magnetar.model.byte_budget_cache import ByteBudgetCache
from magnetar.model.errors import InvalidSchemaDataError
from magnetar.model.schemas import SchemaDefinition, SchemaType
from magnetar.schema_definitions import avro, key_value, protobuf_native
from magnetar.schema_definitions.avro_canonical import canonical
from magnetar.schema_definitions.avro_types import AvroSchema, AvroUnion
from magnetar.schema_definitions.json_schema import parse_old

DATA_BYTES_MAX: Final = 1 << 20
"""Reading and comparing a larger one would keep every other client waiting; ours, Pulsar knows no limit."""

_PARSED_BYTES: Final = 12
"""What one byte of a definition takes when it is parsed; measured with records of 5 to 150 fields."""
_NONE_OF_PYTHON: Final = b"null"
"""What the official Python client sends with a STRING schema."""
_CLIENTS_OWN: Final = frozenset({SchemaType.AUTO, SchemaType.AUTO_CONSUME, SchemaType.AUTO_PUBLISH})
_BY_AVRO: Final = frozenset({SchemaType.AVRO, SchemaType.JSON, SchemaType.PROTOBUF})


def require_valid(schema: SchemaDefinition) -> None:
    """Raise InvalidSchemaDataError for a definition that its own type cannot read."""
    kind, data = schema.type, schema.data
    if kind in _CLIENTS_OWN:
        raise InvalidSchemaDataError(f"Schema {kind.name} is a client-side schema type")
    if len(data) > DATA_BYTES_MAX:
        raise InvalidSchemaDataError(
            f"Invalid schema definition data for {kind.name} schema caused by its size: {len(data)} bytes, magnetar "
            f"takes {DATA_BYTES_MAX}"
        )
    if kind in _BY_AVRO:
        _require_avro(schema)
    elif kind is SchemaType.PROTOBUF_NATIVE:
        protobuf_native.root_message(data)
    elif kind is SchemaType.KEY_VALUE:
        for part in key_value.split(schema):
            require_valid(part)
    elif kind is SchemaType.STRING:
        if data and data != _NONE_OF_PYTHON:
            shown = data.decode(errors="replace")
            raise InvalidSchemaDataError(f"Invalid schema definition data for string schema : '{shown[:200]}'")
    elif kind not in (SchemaType.NONE, SchemaType.BYTES) and data:
        raise InvalidSchemaDataError(
            "Invalid schema definition data for primitive schemas :length of schema data should be zero, but "
            f"{len(data)} bytes is found"
        )


# every client that comes is compared with every version, whose text it may write in its own way; a thread that judges
# large ones may come between two steps of these, which then counts a few bytes too many or too few
_schemas = ByteBudgetCache[bytes, AvroSchema](2 << 20)
_identities = ByteBudgetCache[bytes, str](1 << 19)
_NO_IDENTITY: Final = ""


def parsed(data: bytes) -> AvroSchema:
    """Return the Avro schema in a definition; lately used ones are remembered. Raises AvroSchemaError."""
    found = _schemas.get(data)
    if found is None:
        found = avro.parse(data)
        _schemas.put(data, found, 500 + _PARSED_BYTES * len(data))
    return found


def parsed_or_none(schema: SchemaDefinition) -> AvroSchema | None:
    """Return the Avro schema by which a definition is compared, None if it has none."""
    if schema.type not in _BY_AVRO:
        return None
    try:
        return parsed(schema.data)
    except avro.AvroSchemaError:
        return None


def identity(schema: SchemaDefinition) -> str | None:
    """Return a text that is the same for definitions of the same Avro schema, None for other types (rule 10.4)."""
    if schema.type not in _BY_AVRO:
        return None
    found = _identities.get(schema.data)
    if found is None:
        found = _identity(schema.data)
        _identities.put(schema.data, found, 200 + len(schema.data) + len(found))
    return found or None


def _identity(data: bytes) -> str:
    try:
        return canonical(parsed(data))
    except avro.AvroSchemaError:
        return _NO_IDENTITY


def _require_avro(schema: SchemaDefinition) -> None:
    kind = schema.type
    try:
        found = parsed(schema.data)
    except avro.AvroSchemaError as error:
        if kind is SchemaType.JSON and parse_old(schema.data) is not None:
            return
        raise InvalidSchemaDataError(
            f"Invalid schema definition data for {kind.name} schema caused by {error}"
        ) from None
    if kind is SchemaType.AVRO and isinstance(found, AvroUnion):
        raise InvalidSchemaDataError("Avro schema typed [UNION] is not supported")
