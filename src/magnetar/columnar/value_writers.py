"""Which of the ways to write values belongs to a schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.model.errors import InvalidValueError
from magnetar.model.schemas import SchemaDefinition, SchemaType
from magnetar.schema_definitions import protobuf_native
from magnetar.schema_definitions.avro import AvroSchemaError, parse

Write = Callable[[dict[str, Any], Any], Any]
"""Columns, and which rows are there, to a pa.BinaryArray."""
_METADATA: Final = "__"


def is_value(name: str) -> bool:
    """Whether a column is part of the value."""
    return not name.startswith(_METADATA)


def any_valid(columns: dict[str, Any]) -> Any:
    """Return an NDArray[bool]: the rows that are not null in all columns."""
    valid = [column.is_valid().to_numpy(zero_copy_only=False) for column in columns.values()]
    return np.logical_or.reduce(valid)


def way_of(definition: SchemaDefinition, columns: Any, name: str = "value") -> Write:
    """Return how values of a schema are written; modules are imported when they are needed."""
    kind = definition.type
    if kind in (SchemaType.STRING, SchemaType.BYTES, SchemaType.NONE):
        _check_bytes(kind, columns, name)
        return lambda columns, _: columns[name].cast(pa.binary())
    if kind is SchemaType.PROTOBUF_NATIVE:
        from magnetar.columnar.protobuf import ProtobufWriter

        return ProtobufWriter(protobuf_native.descriptor(definition.data), columns.names).write
    if kind in (SchemaType.AVRO, SchemaType.JSON):
        return _by_avro(definition, columns)
    from magnetar.columnar.primitives import WRITABLE, write_primitives

    if kind not in WRITABLE:
        raise InvalidValueError(f"values of type {kind.name} are not written; encode them and use schema=bytes")
    _check_only(columns, name)
    return lambda columns, _: write_primitives(kind, columns[name], name)


def _check_only(columns: Any, name: str) -> None:
    if columns.names != [name]:
        raise InvalidValueError(f"the topic's schema takes one column {name!r}, these are {', '.join(columns.names)}")


def _check_bytes(kind: SchemaType, columns: Any, name: str) -> None:
    _check_only(columns, name)
    if (arrow := columns.field(name).type) not in (pa.string(), pa.binary()):
        raise InvalidValueError(f"column {name!r} is {arrow}, which is no {kind.name}; cast it")


def _by_avro(definition: SchemaDefinition, columns: Any) -> Write:
    from magnetar.columnar.avro.write.writer import AvroWriter
    from magnetar.columnar.json.writer import check_json, write_json

    try:
        schema = parse(definition.data)
    except AvroSchemaError as error:
        raise InvalidValueError(f"the {definition.type.name} schema of these columns is none: {error}") from None
    # It also checks the names for JSON.
    writer = AvroWriter(schema, list(columns.names))
    if definition.type is not SchemaType.JSON:
        return writer.write
    check_json(columns)
    return write_json
