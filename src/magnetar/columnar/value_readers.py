"""Which of the ways to read values belongs to a schema."""

from __future__ import annotations

from magnetar.columnar.values import Binary, Text, Values
from magnetar.columnar.versions import SchemaLookup as Writers
from magnetar.model.errors import InvalidValueError
from magnetar.model.schemas import SchemaDefinition, SchemaType
from magnetar.schema_definitions import key_value, protobuf_native
from magnetar.schema_definitions.avro import AvroSchemaError, parse

_SEPARATED = "SEPARATED"


def values_of(definition: SchemaDefinition, writers: Writers | None, label: str) -> Values:
    """Return how values of a schema are read.

    Modules are imported when they are needed: they bring numba, ptars and the like with them.
    """
    kind = definition.type
    if kind in (SchemaType.NONE, SchemaType.BYTES):
        return Binary()
    if kind is SchemaType.STRING:
        return Text()
    if kind is SchemaType.PROTOBUF_NATIVE:
        from magnetar.columnar.protobuf import Protobuf

        return Protobuf(protobuf_native.descriptor(definition.data), writers, label)
    if kind is SchemaType.PROTOBUF:
        raise InvalidValueError(
            "the registry describes this topic's Protobuf messages by an Avro schema only; read them with "
            "value=protobuf, 'valueSchema' (a FileDescriptorSet) and 'valueMessage'"
        )
    if kind is SchemaType.KEY_VALUE:
        return _pairs(definition, writers, label)
    if kind in (SchemaType.AVRO, SchemaType.JSON):
        return _by_avro(definition, writers, label)
    from magnetar.columnar.primitives import Primitives

    return Primitives(kind)


def _by_avro(definition: SchemaDefinition, writers: Writers | None, label: str) -> Values:
    try:
        schema = parse(definition.data)
    except AvroSchemaError as error:
        raise InvalidValueError(f"the {definition.type.name} schema ({label}) cannot be read: {error}") from None
    if definition.type is SchemaType.JSON:
        from magnetar.columnar.json.reader import Json

        return Json(schema, writers, label)
    from magnetar.columnar.avro.read.reader import Avro

    return Avro(schema, writers, label)


def _pairs(definition: SchemaDefinition, writers: Writers | None, label: str) -> Values:
    from magnetar.columnar.key_value import KeyValueValues

    def half(which: int) -> Writers | None:
        if writers is None:
            return None
        return lambda version: _half(writers(version), which)

    parts = key_value.split(definition)
    separated = definition.properties.get("kv.encoding.type") == _SEPARATED
    made = [values_of(part, half(which), label) for which, part in enumerate(parts)]
    return KeyValueValues(made[0], made[1], separated=separated)


def _half(definition: SchemaDefinition, which: int) -> SchemaDefinition:
    return key_value.split(definition)[which] if definition.type is SchemaType.KEY_VALUE else definition
