"""Makes what reads values, from the options and the registry.

The driver finds out the reader's schema once (`resolved`), it travels with the plan, and every task reads by it,
whatever the registry says meanwhile. The tasks ask the registry for the writers' versions, as they meet them.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from magnetar.client.lookup import Lookup
from magnetar.client.schemas import Registry
from magnetar.client.values.registry_answer import Versioned
from magnetar.columnar.arrow_decoder import METADATA, chosen_columns
from magnetar.columnar.sql_types import sql_type
from magnetar.columnar.value_readers import values_of
from magnetar.columnar.values import Binary, Text, ValueDecoder
from magnetar.model.errors import InvalidValueError
from magnetar.model.names import TopicName
from magnetar.model.schemas import SchemaDefinition
from magnetar.schema_definitions.validation import identity
from magnetar.spark.options.source_options import SourceOptions, open_lookup
from magnetar.spark.options.topic_selection import topic_partitions
from magnetar.spark.options.value_options import PRIMITIVES, ValueOptions, given_definition

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
    return ValueDecoder(values_of(value.definition, writers, value.label), value.on_error, value.on_new_schema)


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
