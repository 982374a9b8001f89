"""Which definition may follow which, and which are one and the same (rules 10.4 to 10.7).

Error texts begin as Apache Pulsar's and then say which version is in the way, at which field and by which rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from magnetar.model.errors import IncompatibleSchemaError
from magnetar.model.schemas import SchemaDefinition, SchemaType, SchemaVersion
from magnetar.schema_definitions import avro, key_value, protobuf_native
from magnetar.schema_definitions.avro_resolution import incompatibility
from magnetar.schema_definitions.json_schema import parse_old
from magnetar.schema_definitions.strategies import CompatibilityStrategy
from magnetar.schema_definitions.validation import identity, parsed, parsed_or_none

_NOT_READABLE: Final = "org.apache.avro.SchemaValidationException: Unable to read schema: "


def same(versions: Sequence[SchemaVersion], new: SchemaDefinition) -> SchemaVersion | None:
    """Find the version that has this very schema: the same type, and the same Avro schema or the same bytes."""
    found = identical(versions, new)
    if found is not None:
        return found
    wanted = identity(new)
    if wanted is None:
        return None
    for version in versions:
        if version.definition.type == new.type and identity(version.definition) == wanted:
            return version
    return None


def identical(versions: Sequence[SchemaVersion], new: SchemaDefinition) -> SchemaVersion | None:
    """Find the version of the same type and bytes."""
    for version in versions:
        if version.definition.type == new.type and version.definition.data == new.data:
            return version
    return None


def require_follows_latest(latest: SchemaVersion, new: SchemaDefinition, strategy: CompatibilityStrategy) -> None:
    """Raise IncompatibleSchemaError unless it may follow. The same bytes again always may."""
    if strategy is CompatibilityStrategy.ALWAYS_COMPATIBLE:
        return
    _require_type(latest, new)
    if latest.definition.data != new.data:
        _require(latest, new, strategy)


def require_follows_all(
    versions: Sequence[SchemaVersion], new: SchemaDefinition, strategy: CompatibilityStrategy
) -> None:
    """Compare with every version, the latest first. Raises IncompatibleSchemaError."""
    if strategy is CompatibilityStrategy.ALWAYS_COMPATIBLE:
        return
    for version in reversed(versions):
        _require_type(version, new)
    for version in reversed(versions):
        _require(version, new, strategy)


def _require_type(old: SchemaVersion, new: SchemaDefinition) -> None:
    if old.definition.type != new.type:
        raise IncompatibleSchemaError(
            f"Incompatible schema: exists schema type {old.definition.type.name}, new schema type {new.type.name}"
        )


def _require(old: SchemaVersion, new: SchemaDefinition, strategy: CompatibilityStrategy) -> None:
    _check(old.definition, new, strategy, f"version {old.version}")


def _check(old: SchemaDefinition, new: SchemaDefinition, strategy: CompatibilityStrategy, old_name: str) -> None:
    kind = new.type
    if kind is SchemaType.AVRO:
        _check_avro(old, new, strategy, old_name)
    elif kind is SchemaType.JSON:
        _check_json(old, new, strategy, old_name)
    elif kind is SchemaType.KEY_VALUE:
        _check_key_value(old, new, strategy, old_name)
    elif kind is SchemaType.PROTOBUF_NATIVE:
        _check_protobuf_native(old, new, strategy, old_name)
    elif strategy.never:
        raise IncompatibleSchemaError(f"Schema compatibility strategy is {strategy}")


def _check_avro(old: SchemaDefinition, new: SchemaDefinition, strategy: CompatibilityStrategy, old_name: str) -> None:
    begin = f"Error during schema compatibility check with strategy {strategy}: "
    if strategy.never:
        raise IncompatibleSchemaError(f"{begin}{_NOT_READABLE}under this strategy nothing may follow {old_name}")
    try:
        before, after = parsed(old.data), parsed(new.data)
    except avro.AvroSchemaError as error:
        raise IncompatibleSchemaError(f"{begin}org.apache.avro.SchemaParseException: {error}") from None
    if strategy.new_reads_old:
        found = incompatibility(before, after)
        if found is not None:
            raise IncompatibleSchemaError(f"{begin}{_NOT_READABLE}the new schema cannot read {old_name}: {found}")
    if strategy.old_reads_new:
        found = incompatibility(after, before)
        if found is not None:
            raise IncompatibleSchemaError(f"{begin}{_NOT_READABLE}{old_name} cannot read the new schema: {found}")


def _check_json(old: SchemaDefinition, new: SchemaDefinition, strategy: CompatibilityStrategy, old_name: str) -> None:
    """Compare; one of the old form and one of Avro's follow each other, since their clients differ in age."""
    before = None if parsed_or_none(old) is not None else parse_old(old.data)
    after = None if parsed_or_none(new) is not None else parse_old(new.data)
    if strategy.never or (before is None and after is None):
        _check_avro(old, new, strategy, old_name)
    elif before is not None and after is not None and before.id != after.id:
        raise IncompatibleSchemaError(
            f"Incompatible Schema: {old_name} is a JSON schema with id {before.id}, the new one has id {after.id} "
            "(rule: a JSON schema in the old form must keep its id)"
        )


def _check_key_value(
    old: SchemaDefinition, new: SchemaDefinition, strategy: CompatibilityStrategy, old_name: str
) -> None:
    before, after = key_value.split(old), key_value.split(new)
    for what, one, other in zip(("key", "value"), before, after, strict=True):
        if one.type != other.type:
            raise IncompatibleSchemaError(
                f"Incompatible schema: exists {what} schema type {one.type.name}, new {what} schema type "
                f"{other.type.name}"
            )
    for what, one, other in zip(("key", "value"), before, after, strict=True):
        _check(one, other, strategy, f"the {what} of {old_name}")


def _check_protobuf_native(
    old: SchemaDefinition, new: SchemaDefinition, strategy: CompatibilityStrategy, old_name: str
) -> None:
    if strategy.never:
        raise IncompatibleSchemaError(f"Unknown SchemaCompatibilityStrategy: {strategy} lets nothing follow {old_name}")
    before, after = protobuf_native.root_message(old.data), protobuf_native.root_message(new.data)
    if before != after:
        raise IncompatibleSchemaError(
            f"Protobuf root message change is not allowed under the '{strategy}' strategy. Original message name: "
            f"'{before}', new message name: '{after}'."
        )
