"""The sink's option ``schema``: columns to values, and what the broker is told of them.

The value's columns are those whose names do not begin with two underscores. A row that is null in all of them is a
message without value, as it would be read. The schema is registered when a producer is opened; a broker that does not
let it follow the topic's says so, and the error here adds field, versions and rule.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.client.errors import RefusedError
from magnetar.client.lookup import Lookup
from magnetar.client.schemas import Registry
from magnetar.model.errors import InvalidValueError
from magnetar.model.schemas import SchemaDefinition, SchemaType
from magnetar.protocol import commands as c
from magnetar.schema import protobuf_native
from magnetar.schema.avro import AvroSchemaError, parse
from magnetar.schema.avro_resolution import problem
from magnetar.spark.options import SinkOptions
from magnetar.spark.value_options import PRIMITIVES, STRUCTURED, given_definition

_METADATA: Final = "__"


def is_value(name: str) -> bool:
    """Whether a column is part of the value."""
    return not name.startswith(_METADATA)


class ValueWriter:
    """For one task, whose record batches have the same columns."""

    def __init__(self, kind: str, given: str | None, message: str | None, lookup: Lookup, topic: str | None) -> None:
        self._kind = kind
        self._given = given
        self._message = message
        self._lookup = lookup
        self._topic = topic
        self._write: Callable[[dict[str, Any], Any], Any] | None = None
        self.definition: SchemaDefinition | None = None
        """Known with the first batch."""

    def encoded(self, batch: Any) -> Any:
        """The batch with one column ``value`` of bytes in place of the value's columns."""
        names = [name for name in batch.schema.names if is_value(name)]
        columns = {name: batch.column(name) for name in names}
        if self._write is None:
            kinds = pa.schema([batch.schema.field(name) for name in names])
            self.definition = self._defined(kinds)
            self._write = _way(self.definition, kinds)
        present = np.zeros(batch.num_rows, bool)
        for column in columns.values():
            present |= column.is_valid().to_numpy(zero_copy_only=False)
        rest = {name: batch.column(name) for name in batch.schema.names if not is_value(name)}
        return pa.RecordBatch.from_pydict({"value": self._write(columns, present), **rest})

    def command(self) -> c.Schema | None:
        """For opening a producer; bytes are no schema on the wire."""
        found = self.definition
        if found is None or found.type is SchemaType.BYTES:
            return None
        return c.Schema("", found.data, found.type, tuple(found.properties.items()))

    def _defined(self, columns: Any) -> SchemaDefinition:
        if self._kind == "auto":
            assert self._topic is not None, "check_value_columns has seen to it"
            latest = Registry(self._lookup, self._topic).latest()
            if latest is None:
                raise InvalidValueError(f"{self._topic} has no schema yet; say which with schema=avro, json, ...")
            return latest.definition
        if self._kind == "string":
            return SchemaDefinition(SchemaType.STRING)
        if self._kind == "bytes":
            return SchemaDefinition(SchemaType.BYTES)
        if self._kind in PRIMITIVES:
            return SchemaDefinition(PRIMITIVES[self._kind])
        if self._given is not None:
            return given_definition(self._kind, self._given, self._message)
        assert self._kind != "protobuf", "check_value_columns has seen to it"
        from magnetar.columnar.avro_writing import document_of

        kind = SchemaType.AVRO if self._kind == "avro" else SchemaType.JSON
        return SchemaDefinition(kind, json.dumps(document_of(columns), separators=(",", ":")).encode())

    def explained(self, refusal: RefusedError, topic: str) -> Exception:
        """Why the broker did not take the schema, as exactly as can be found out."""
        latest = Registry(self._lookup, topic).latest()
        why = ""
        if latest is not None and self.definition is not None:
            why = f" Against version {latest.version}: {_difference(latest.definition, self.definition)}."
        return InvalidValueError(f"{topic}: the broker refuses the schema of these columns.{why} It says: {refusal}")


def value_writer(options: SinkOptions, lookup: Lookup) -> ValueWriter | None:
    """None without the option ``schema``."""
    if options.schema is None:
        return None
    return ValueWriter(options.schema, options.value_schema, options.value_message, lookup, options.topic)


def check_value_columns(
    kind: str, given: str | None, message: str | None, types: dict[str, str], topic: str | None
) -> dict[str, str]:
    """The columns that the sink sees behind `ValueWriter.encoded`. Raises InvalidValueError."""
    names = [name for name in types if is_value(name)]
    if kind == "protobuf" and (given is None or message is None):
        raise InvalidValueError("schema=protobuf needs 'valueSchema' (a FileDescriptorSet) and 'valueMessage'")
    if given is not None and kind not in STRUCTURED:
        raise InvalidValueError(f"option 'valueSchema' has no meaning with schema={kind}")
    if kind == "auto" and topic is None:
        raise InvalidValueError("schema=auto needs the option 'topic', whose schema is asked for")
    if kind not in (*STRUCTURED, "auto") and names != ["value"]:
        raise InvalidValueError(f"schema={kind} takes one column 'value', these are {', '.join(names) or 'none'}")
    if not names:
        raise InvalidValueError("there is no column for the value; names with two underscores are metadata")
    return {"value": "binary", **{name: kind for name, kind in types.items() if not is_value(name)}}


def _way(definition: SchemaDefinition, columns: Any) -> Callable[[dict[str, Any], Any], Any]:
    """How values of a schema are written; modules are imported when they are needed."""
    kind = definition.type
    if kind in (SchemaType.STRING, SchemaType.BYTES, SchemaType.NONE):
        return lambda columns, _: _only(columns).cast(pa.binary())
    if kind is SchemaType.PROTOBUF_NATIVE:
        from magnetar.columnar.protobuf import ProtobufWriter

        return ProtobufWriter(protobuf_native.descriptor(definition.data), columns.names).write
    if kind in (SchemaType.AVRO, SchemaType.JSON):
        return _by_avro(definition, columns)
    from magnetar.columnar.primitives import WRITABLE, write_primitives

    if kind not in WRITABLE:
        raise InvalidValueError(f"values of type {kind.name} are not written; encode them and use schema=bytes")
    return lambda columns, _: write_primitives(kind, _only(columns))


def _only(columns: dict[str, Any]) -> Any:
    if list(columns) != ["value"]:
        raise InvalidValueError(f"the topic's schema takes one column 'value', these are {', '.join(columns)}")
    return columns["value"]


def _by_avro(definition: SchemaDefinition, columns: Any) -> Callable[[dict[str, Any], Any], Any]:
    from magnetar.columnar.avro_writing import AvroWriter
    from magnetar.columnar.json_writing import check_json, write_json

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


def _difference(before: SchemaDefinition, after: SchemaDefinition) -> str:
    if before.type is not after.type:
        return f"it is {before.type.name}, the new one {after.type.name} (rule: the type must stay)"
    try:
        old, new = parse(before.data), parse(after.data)
    except AvroSchemaError:
        return "they are different"
    found = problem(old, new)
    if found is not None:
        return f"the new one cannot read it: {found}"
    found = problem(new, old)
    return "each can read the other" if found is None else f"it cannot read the new one: {found}"
