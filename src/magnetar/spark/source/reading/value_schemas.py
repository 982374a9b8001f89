"""Makes what reads values, from the options and the registry.

The driver finds out the reader's schema once (`resolved`), it travels with the plan, and every task reads by it,
whatever the registry says meanwhile. The tasks ask the registry for the writers' versions, as they meet them.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from magnetar.client.lookup import Lookup
from magnetar.client.schemas import Registry, Versioned
from magnetar.columnar.sql_types import sql_type
from magnetar.columnar.values import Binary, Text, ValueDecoder, Values
from magnetar.columnar.versions import SchemaLookup as Writers
from magnetar.model.errors import InvalidValueError
from magnetar.model.names import TopicName
from magnetar.model.schemas import SchemaDefinition, SchemaType
from magnetar.schema import key_value, protobuf_native
from magnetar.schema.avro import AvroSchemaError, parse
from magnetar.schema.validation import identity
from magnetar.spark.options.source_options import SourceOptions, open_lookup
from magnetar.spark.options.topic_selection import topic_partitions
from magnetar.spark.options.value_options import PRIMITIVES, ValueOptions, given_definition
from magnetar.spark.source.reading.arrow_decoder import METADATA, chosen_columns

_SEPARATED = "SEPARATED"
_VERSION = "version "


def resolved(options: SourceOptions) -> SourceOptions:
    """Return the options with the reader's schema; asks the registry only if that is where it comes from."""
    value = options.value
    if value.kind in ("binary", "string") or value.definition is not None:
        return options
    if value.kind in PRIMITIVES:
        definition, label = SchemaDefinition(PRIMITIVES[value.kind]), "as the option says"
    elif value.given is not None:
        definition, label = given_definition(value.kind, value.given, value.message), "given by option"
    else:
        with open_lookup(options) as lookup:
            names = topic_partitions(lookup, options.topics, create=False)
            definition, label = _registered(lookup, names, value)
    return dataclasses.replace(options, value=dataclasses.replace(value, definition=definition, label=label))


def matching(options: SourceOptions, given: list[str]) -> SourceOptions:
    """Return `resolved` options for a plan whose columns were fixed a moment ago: if the registry has gone on since, as
    it was then.

    ``given``: the plan's columns as `column_texts` has them.
    """
    found = resolved(options)
    from_registry = options.value.version is None and options.value.given is None
    while from_registry and column_texts(found) != given:
        number = found.value.label.removeprefix(_VERSION)
        if not number.isdecimal() or number == "0":
            break
        earlier = dataclasses.replace(options.value, version=int(number) - 1)
        found = resolved(dataclasses.replace(options, value=earlier))
    return found


def column_texts(options: SourceOptions) -> list[str]:
    """Return name and type of each column, as Spark shows them."""
    values = [f"{field.name} {sql_type(field.type).replace('`', '')}" for field in value_decoder(options).schema]
    return [*values, *(f"{name} {METADATA[name].sql}" for name in chosen_columns(options.metadata))]


def value_decoder(options: SourceOptions, lookup: Lookup | None = None, topic: str = "") -> ValueDecoder:
    """Return the decoder of one topic's messages; without a topic, for the schema only."""
    value = options.value
    if value.definition is None:
        return ValueDecoder(Text() if value.kind == "string" else Binary(), value.on_error, value.on_new_schema)
    writers = None if lookup is None else Registry(lookup, topic).version
    return ValueDecoder(_values(value.definition, writers, value.label), value.on_error, value.on_new_schema)


def _values(definition: SchemaDefinition, writers: Writers | None, label: str) -> Values:
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
    made = [_values(part, half(which), label) for which, part in enumerate(parts)]
    return KeyValueValues(made[0], made[1], separated=separated)


def _half(definition: SchemaDefinition, which: int) -> SchemaDefinition:
    return key_value.split(definition)[which] if definition.type is SchemaType.KEY_VALUE else definition


def _registered(lookup: Lookup, names: list[str], value: ValueOptions) -> tuple[SchemaDefinition, str]:
    """Return the schema of all topics, if they have the same one."""
    found: dict[str, Versioned] = {}
    for topic in dict.fromkeys(TopicName.parse(name).parent.fqn for name in names):
        registry = Registry(lookup, topic)
        latest = (
            registry.latest() if value.version is None else Versioned(value.version, registry.numbered(value.version))
        )
        if latest is None:
            raise InvalidValueError(
                f"{topic} has no schema in the registry; read it with value=binary, or give one with 'valueSchema'"
            )
        kind = latest.definition.type
        if value.kind != "auto" and kind.name.lower().partition("_")[0] != value.kind:
            raise InvalidValueError(f"{topic} has a schema of type {kind.name}, option 'value' is {value.kind!r}")
        found[topic] = latest
    if not found:
        raise InvalidValueError("there is no topic yet whose schema could be asked for; give one with 'valueSchema'")
    (first, one), *others = found.items()
    for topic, other in others:
        if _identity(other.definition) != _identity(one.definition):
            raise InvalidValueError(
                f"{first} ({one.definition.type.name}, version {one.version}) and {topic} "
                f"({other.definition.type.name}, version {other.version}) have different schemas; read them one by "
                "one, with a 'valueSchema' for all, or with value=binary"
            )
    return one.definition, f"{_VERSION}{one.version}"


def _identity(definition: SchemaDefinition) -> Any:
    return definition.type, identity(definition) or definition.data
