"""The sink's option ``schema``: columns to values, and the schema that the broker registers for them.

The value's columns are those whose names do not begin with two underscores. A row that is null in all of them is a
message without value, as it would be read. The schema is registered when a producer is opened; a broker that does not
let it follow the topic's says so, and the error here adds field, versions and rule.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.client.errors import RefusedError
from magnetar.client.lookup import Lookup
from magnetar.client.schemas import Registry
from magnetar.columnar.value_writers import any_valid, is_value, way_of
from magnetar.model.errors import InvalidValueError
from magnetar.model.schemas import SchemaDefinition, SchemaType
from magnetar.protocol import commands as c
from magnetar.schema_definitions import key_value
from magnetar.schema_definitions.avro import AvroSchemaError, parse
from magnetar.schema_definitions.avro_resolution import incompatibility
from magnetar.spark.options.sink_options import SinkOptions
from magnetar.spark.options.value_options import PRIMITIVES, STRUCTURED, given_definition
from magnetar.spark.sink.pair_writer import HALVES, PairWriter, definition_of


class ValueWriter:
    """Writes the values of one task, whose record batches have the same columns."""

    def __init__(self, options: SinkOptions, lookup: Lookup) -> None:
        assert options.schema is not None, "value_writer has seen to it"
        self._kind = options.schema
        self._given = options.value_schema
        self._message = options.value_message
        self._pair = options.pair
        self._lookup = lookup
        self._topic = options.topic
        self._write: Callable[[dict[str, Any]], dict[str, Any]] | None = None
        self.separated = False
        """Whether the values' keys are the messages' (KEY_VALUE). Known with the first batch."""
        self.definition: SchemaDefinition | None = None
        """Known with the first batch."""

    def encoded(self, batch: Any) -> Any:
        """Return the batch with one column ``value`` of bytes in place of the value's columns."""
        names = [name for name in batch.schema.names if is_value(name)]
        columns = {name: batch.column(name) for name in names}
        if self._write is None:
            kinds = pa.schema([batch.schema.field(name) for name in names])
            self.definition = self._defined(kinds)
            self._write = self._written(self.definition, kinds)
        found = self._write(columns)
        rest = {name: batch.column(name) for name in batch.schema.names if not is_value(name)}
        if twice := found.keys() & rest.keys():
            raise InvalidValueError(
                f"column {', '.join(twice)} cannot be there: the schema is KEY_VALUE, SEPARATED, whose key is 'key'"
            )
        return pa.RecordBatch.from_pydict({**found, **rest})

    def _written(self, definition: SchemaDefinition, kinds: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
        if definition.type is SchemaType.KEY_VALUE:
            pairs = PairWriter(definition, kinds, way_of)
            self.separated = pairs.separated
            return pairs.write
        way = way_of(definition, kinds)
        return lambda columns: {"value": way(columns, any_valid(columns))}

    def command(self) -> c.Schema | None:
        """Return the schema for opening a producer; bytes are no schema on the wire."""
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
        if self._kind == "keyvalue":
            return definition_of(columns, self._pair)
        if self._kind == "string":
            return SchemaDefinition(SchemaType.STRING)
        if self._kind == "bytes":
            return SchemaDefinition(SchemaType.BYTES)
        if self._kind in PRIMITIVES:
            return SchemaDefinition(PRIMITIVES[self._kind])
        if self._given is not None:
            return given_definition(self._kind, self._given, self._message)
        assert self._kind != "protobuf", "check_value_columns has seen to it"
        from magnetar.columnar.avro.write.writer import document_of

        kind = SchemaType.AVRO if self._kind == "avro" else SchemaType.JSON
        return SchemaDefinition(kind, json.dumps(document_of(columns), separators=(",", ":")).encode())

    def explained(self, refusal: RefusedError, topic: str) -> Exception:
        """Return why the broker did not take the schema, as exactly as can be found out."""
        latest = Registry(self._lookup, topic).latest()
        why = ""
        if latest is not None and self.definition is not None:
            why = f" Against version {latest.version}: {_difference(latest.definition, self.definition)}."
        return InvalidValueError(f"{topic}: the broker refuses the schema of these columns.{why} It says: {refusal}")


def value_writer(options: SinkOptions, lookup: Lookup) -> ValueWriter | None:
    """Return the writer of the option ``schema``; None without it."""
    if options.schema is None:
        return None
    return ValueWriter(options, lookup)


def check_value_columns(options: SinkOptions, types: dict[str, str]) -> dict[str, str]:
    """Return the columns that the sink sees after `ValueWriter.encoded`. Raises InvalidValueError."""
    kind, given, message, topic = options.schema, options.value_schema, options.value_message, options.topic
    names = [name for name in types if is_value(name)]
    if kind == "protobuf" and (given is None or message is None):
        raise InvalidValueError("schema=protobuf needs 'valueSchema' (a FileDescriptorSet) and 'valueMessage'")
    if kind == "auto" and topic is None:
        raise InvalidValueError("schema=auto needs the option 'topic', whose schema is asked for")
    if kind == "keyvalue" and sorted(names) != list(HALVES):
        raise InvalidValueError(
            f"schema=keyvalue takes the columns 'key' and 'value', these are {', '.join(names) or 'none'}"
        )
    if kind not in (*STRUCTURED, "auto", "keyvalue") and names != ["value"]:
        raise InvalidValueError(f"schema={kind} takes one column 'value', these are {', '.join(names) or 'none'}")
    if not names:
        raise InvalidValueError("there is no column for the value; names with two underscores are metadata")
    if options.pair.separated and "__key" in types:
        raise InvalidValueError("with keyvalue.encoding=SEPARATED the column 'key' is the message's key: drop '__key'")
    return {"value": "binary", **{name: kind for name, kind in types.items() if not is_value(name)}}


def _difference(before: SchemaDefinition, after: SchemaDefinition) -> str:
    if before.type is not after.type:
        return f"it is {before.type.name}, the new one {after.type.name} (rule: the type must stay)"
    if before.type is SchemaType.KEY_VALUE:
        halves = zip(HALVES, key_value.split(before), key_value.split(after), strict=True)
        return "; ".join(f"{name}: {_difference(old, new)}" for name, old, new in halves if old != new)
    try:
        old, new = parse(before.data), parse(after.data)
    except AvroSchemaError:
        return "they are different"
    found = incompatibility(old, new)
    if found is not None:
        return f"the new one cannot read it: {found}"
    found = incompatibility(new, old)
    return "each can read the other" if found is None else f"it cannot read the new one: {found}"
