"""KEY_VALUE in the sink: the columns ``key`` and ``value`` as two schemas in one (rule 10.13).

Each is a struct, written as Avro or JSON, or one of the plain types; without a word which, its column's type says it.
INLINE, both go into the message's value. SEPARATED, the key is the message's, always as base64, as Java clients write
it: they route and compact by that text, and equal keys must be equal for all who write to a topic.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.columnar.value_writers import Write
from magnetar.model.errors import InvalidValueError
from magnetar.model.schemas import SchemaDefinition, SchemaType
from magnetar.schema_definitions import key_value
from magnetar.spark.options.value_options import PRIMITIVES, PairOptions, schema_text

HALVES: Final = ("key", "value")
ENCODING: Final = "kv.encoding.type"
SEPARATED: Final = "SEPARATED"
_KINDS: Final = {
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.bool_(): "boolean",
    pa.int8(): "int8",
    pa.int16(): "int16",
    pa.int32(): "int32",
    pa.int64(): "int64",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "local_date",
}
_RECORDS: Final = (SchemaType.AVRO, SchemaType.JSON)
Way = Callable[[SchemaDefinition, Any, str], Write]
"""How values of a schema are written whose columns (pa.Schema) are these; the last names them in errors."""


def definition_of(columns: Any, options: PairOptions) -> SchemaDefinition:
    """Return the schema of two columns. Raises InvalidValueError if options and columns do not fit."""
    given = (options.key, options.key_schema), (options.value, options.value_schema)
    halves = [
        _half(name, columns.field(name).type, kind, text) for name, (kind, text) in zip(HALVES, given, strict=True)
    ]
    properties = {ENCODING: SEPARATED if options.separated else "INLINE"}
    for name, half in zip(HALVES, halves, strict=True):
        properties |= {f"{name}.schema.name": "", f"{name}.schema.type": half.type.name}
        properties[f"{name}.schema.properties"] = "{}"
    return SchemaDefinition(SchemaType.KEY_VALUE, key_value.join(*(half.data for half in halves)), properties)


def _half(name: str, arrow: Any, kind: str | None, text: str | None) -> SchemaDefinition:
    kind = kind or _kind(name, arrow)
    if kind in ("avro", "json"):
        from magnetar.columnar.avro.write.writer import document_of

        _check_record(name, arrow, kind)
        if text is not None:
            data = schema_text(text, f"{name}Schema")
        else:
            data = json.dumps(document_of(arrow, name), separators=(",", ":"))
        return SchemaDefinition(SchemaType.AVRO if kind == "avro" else SchemaType.JSON, data.encode())
    if text is not None:
        raise InvalidValueError(f"option '{name}Schema' has no meaning with keyvalue.{name}={kind}: give avro or json")
    if kind in PRIMITIVES:
        return SchemaDefinition(PRIMITIVES[kind])
    return SchemaDefinition(SchemaType.STRING if kind == "string" else SchemaType.BYTES)


def _kind(name: str, arrow: Any) -> str:
    if pa.types.is_struct(arrow):
        return "avro"
    if pa.types.is_timestamp(arrow):
        return "timestamp"
    if (kind := _KINDS.get(arrow)) is not None:
        return kind
    raise InvalidValueError(f"column {name!r} is {arrow}, for which KEY_VALUE has no schema; make it a struct")


def _check_record(name: str, arrow: Any, kind: str) -> None:
    if not pa.types.is_struct(arrow):
        raise InvalidValueError(f"column {name!r} is {arrow}, and {kind} takes a struct: struct({name} AS id)")


class PairWriter:
    """Writes record batches with one type of ``key`` and ``value``."""

    def __init__(self, definition: SchemaDefinition, columns: Any, way: Way) -> None:
        """Take ``columns``, a pa.Schema. Raises InvalidValueError if they do not fit."""
        if sorted(columns.names) != list(HALVES):
            raise InvalidValueError(
                f"a KEY_VALUE schema takes the columns 'key' and 'value', these are {', '.join(columns.names)}"
            )
        self.separated = definition.properties.get(ENCODING) == SEPARATED
        self._halves = {
            name: (part.type in _RECORDS, _write_half(name, columns.field(name).type, part, way))
            for name, part in zip(HALVES, key_value.split(definition), strict=True)
        }

    def write(self, columns: dict[str, Any]) -> dict[str, Any]:
        """Return the columns ``value``, and ``__key`` if it is apart, of bytes. Rows without both are tombstones."""
        from magnetar.columnar.key_value import join_pairs

        key, value = (self._one(name, columns[name]) for name in HALVES)
        return {"value": value, "__key": key} if self.separated else {"value": join_pairs(key, value)}

    def _one(self, name: str, column: Any) -> Any:
        record, write = self._halves[name]
        present = column.is_valid().to_numpy(zero_copy_only=False)
        names = [field.name for field in column.type] if record else [name]
        parts = column.flatten() if record else [column]
        try:
            return write(dict(zip(names, parts, strict=True)), present)
        except InvalidValueError as error:
            raise InvalidValueError(f"column {name!r}: {error}") from None


def _write_half(name: str, arrow: Any, part: SchemaDefinition, way: Way) -> Write:
    if part.type in _RECORDS:
        _check_record(name, arrow, part.type.name)
        return way(part, pa.schema(list(arrow)), name)
    return way(part, pa.schema([pa.field(name, arrow)]), name)
