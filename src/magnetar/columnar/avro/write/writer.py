"""Columns to Avro values, by a schema that is given or made from the columns' types.

Columns are brought into the types that a reader of the schema would get (`avro.shape`) and written by a compiled loop.
A field that is not among the columns is null, if it may be. Unions of several types are refused.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # the same

from magnetar.columnar.avro.shape import Shape, members_of, shape_of
from magnetar.columnar.avro.write import kernel as k
from magnetar.model.errors import InvalidValueError
from magnetar.schema_definitions.avro_types import AvroEnum, AvroFixed, AvroRecord, AvroSchema, AvroUnion, describe

_NUMBERS: Final = {
    "int": k.INT,
    "enum": k.INT,
    "long": k.LONG,
    "millis": k.MILLIS,
    "boolean": k.BOOLEAN,
    "float": k.FOUR,
    "double": k.EIGHT,
}
_PLAIN: Final = {
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
}
_REASONS: Final = {
    k.NULL: "is null, and its type has no null",
    k.SIZE: "does not have the size of its type",
    k.SYMBOL: "is none of the enum's symbols",
}


def document_of(columns: Any, name: str = "value") -> dict[str, Any]:
    """Return a schema for columns (pa.Schema or fields of a struct): a record whose fields may all be null.

    Raises InvalidValueError for a type that Avro does not have."""
    fields = [
        {"name": one.name, "type": ["null", _type(one.type, f"{name}_{one.name}")], "default": None} for one in columns
    ]
    return {"type": "record", "name": name, "fields": fields}


def _type(arrow: Any, name: str) -> Any:
    if (plain := _PLAIN.get(arrow)) is not None:
        return plain
    if pa.types.is_date32(arrow):
        return {"type": "int", "logicalType": "date"}
    if pa.types.is_timestamp(arrow):
        return {"type": "long", "logicalType": "timestamp-micros" if arrow.tz else "local-timestamp-micros"}
    if pa.types.is_decimal128(arrow):
        return {"type": "bytes", "logicalType": "decimal", "precision": arrow.precision, "scale": arrow.scale}
    if pa.types.is_list(arrow):
        return {"type": "array", "items": ["null", _type(arrow.value_type, name)]}
    if pa.types.is_map(arrow) and pa.types.is_string(arrow.key_type):
        return {"type": "map", "values": ["null", _type(arrow.item_type, name)]}
    if pa.types.is_struct(arrow):
        return document_of(arrow, name)
    raise InvalidValueError(f"column {name.partition('_')[2]!r} is {arrow}, for which Avro has no type")


class AvroWriter:
    """Writes record batches that have one set of columns."""

    def __init__(self, schema: AvroSchema, names: list[str]) -> None:
        """``names`` of the columns. Raises InvalidValueError if they are not the schema's fields."""
        if not isinstance(schema, AvroRecord):
            raise InvalidValueError(f"a schema whose values are rows is a record, not {describe(schema)}")
        known = {one.name for one in schema.fields}
        if unknown := [name for name in names if name not in known]:
            raise InvalidValueError(f"column {unknown[0]!r} is no field of {describe(schema)}; drop it or rename it")
        self._code: list[int] = []
        self._shapes: list[tuple[str, Shape]] = []
        self._nodes: list[Shape] = []
        self._paths: dict[int, str] = {}
        self._lists = 0
        for one in schema.fields:
            if one.name in names:
                shape = shape_of(one.type, f"field {one.name}")
                self._shapes.append((one.name, shape))
                self._value(one.type, shape)
            else:
                self._absent(one.type, one.name)
        self._code.extend((k.END, 0, 0))

    def _add(self, op: int, node: int, argument: int = 0, path: str = "") -> int:
        at = len(self._code)
        self._code.extend((op, node, argument))
        self._paths[at] = path
        return at

    def _absent(self, schema: AvroSchema, name: str) -> None:
        if schema.kind == "null":
            return
        if isinstance(schema, AvroUnion):
            for index, branch in enumerate(schema.branches):
                if branch.kind == "null":
                    self._add(k.BRANCH, index)
                    return
        raise InvalidValueError(f"there is no column for field {name!r}, which cannot be null")

    def _value(self, schema: AvroSchema, shape: Shape) -> None:
        shape.number = len(self._nodes)
        self._nodes.append(shape)
        if not isinstance(schema, AvroUnion):
            self._add(k.REQUIRED, shape.number, path=shape.path)
            self._content(schema, shape)
            return
        members = members_of(schema)
        if len(members) > 1:
            raise InvalidValueError(f"{shape.path}: {describe(schema)} cannot be written from a column")
        if not members:
            self._add(k.BRANCH, 0)
            return
        branch = schema.branches.index(members[0])
        if len(schema.branches) == 1:
            self._add(k.REQUIRED, shape.number, path=shape.path)
            self._add(k.BRANCH, 0)
            self._content(members[0], shape)
            return
        at = len(self._code)
        self._code.extend((k.OPTION, shape.number, 1 - branch, branch, 0))
        self._content(members[0], shape)
        self._code[at + 4] = len(self._code)

    def _content(self, schema: AvroSchema, shape: Shape) -> None:
        node, storage = shape.number, shape.storage
        if storage in _NUMBERS:
            self._add(_NUMBERS[storage], node, path=shape.path)
        elif storage == "decimal":
            fixed = isinstance(schema, AvroFixed)
            self._add(
                k.DECIMAL_FIXED if fixed else k.DECIMAL, node, schema.size if isinstance(schema, AvroFixed) else 0
            )
            self._paths[len(self._code) - 3] = shape.path
        elif storage == "struct" and isinstance(schema, AvroRecord):
            for one, child in zip(schema.fields, shape.children, strict=True):
                self._value(one.type, child)
        elif storage in ("list", "map"):
            self._lists += 1
            if self._lists > k.DEPTH_MAX:
                raise InvalidValueError(f"{shape.path}: more than {k.DEPTH_MAX} arrays and maps inside each other")
            at = self._add(k.LIST, node, path=shape.path)
            if storage == "map":
                self._value(shape.children[0].schema, shape.children[0])
            self._value(schema.items if schema.kind == "array" else schema.values, shape.children[-1])  # type: ignore[union-attr]  # arrays and maps have them
            self._add(k.NEXT, node, at + 3)
            self._code[at + 2] = len(self._code)
            self._lists -= 1
        elif isinstance(schema, AvroFixed):
            self._add(k.FIXED, node, schema.size, shape.path)
        elif storage != "null":
            self._add(k.BYTES, node, path=shape.path)

    def write(self, columns: dict[str, Any], present: Any) -> Any:
        """Return a pa.BinaryArray; ``present`` (NDArray[bool]) is false where a value is null. InvalidValueError."""
        rows = len(present)
        table = np.zeros((max(len(self._nodes), 1), k.NODE_COLUMNS), np.int64)
        kept: list[Any] = []
        for name, shape in self._shapes:
            self._place(table, shape, _cast(columns[name], shape, name), kept)
        code = np.array(self._code, np.int64)
        there = np.ascontiguousarray(present, np.uint8)
        ends = np.zeros(rows + 1, np.int32)
        state = np.zeros(2 + 3 * k.DEPTH_MAX, np.int64)
        out = np.empty(64 * (rows + 1), np.uint8)
        arrays = (code, table, there, ends, state)
        program, nodes, wanted, limits, notes = (one.ctypes.data for one in arrays)
        at = 0
        while True:
            target, filled, room = out.ctypes.data, int(ends[at]), len(out)
            at = k.encode(program, nodes, wanted, at, rows, target, filled, room, limits, notes)
            if at == rows:
                break
            if state[1] != k.NO_ROOM:
                path = self._paths.get(int(state[0]), "a value")
                raise InvalidValueError(f"row {at}: {path} {_REASONS[int(state[1])]}")
            out = np.concatenate([out[: int(ends[at])], np.empty(2 * len(out) - int(ends[at]), np.uint8)])
        bitmap = pa.py_buffer(np.packbits(there, bitorder="little"))
        return pa.Array.from_buffers(pa.binary(), rows, [bitmap, pa.py_buffer(ends), pa.py_buffer(out)])

    def _place(self, table: Any, shape: Shape, array: Any, kept: list[Any]) -> None:
        """Note where the array's buffers are; they live as long as ``kept``."""
        if shape.storage == "enum":
            assert isinstance(shape.schema, AvroEnum), "its schema is the enum itself"
            # A null of the column stays one; a text that is no symbol is -1, for the kernel to refuse.
            indices = pc.fill_null(pc.index_in(array, pa.array(shape.schema.symbols)), -1)
            array = pc.if_else(array.is_valid(), indices, pa.scalar(None, pa.int32()))
        kept.append(array)
        row = table[shape.number]
        buffers = array.buffers()
        row[k.VALID] = buffers[0].address if array.null_count and buffers[0] is not None else 0
        row[k.OFFSET] = array.offset
        if shape.storage == "struct":
            for index, child in enumerate(shape.children):
                self._place(table, child, array.field(index), kept)
            return
        if shape.storage in ("list", "map"):
            row[k.ENDS] = buffers[1].address if buffers[1] is not None else 0
            inner = [array.keys, array.items] if shape.storage == "map" else [array.values]
            for child, one in zip(shape.children, inner, strict=True):
                self._place(table, child, one, kept)
            return
        if shape.storage in ("bytes", "text", "null"):
            row[k.ENDS] = buffers[1].address if buffers[1] is not None else 0
            row[k.DATA] = buffers[2].address if buffers[2] is not None else 0
            return
        row[k.DATA] = buffers[1].address if buffers[1] is not None else 0
        row[k.ENDS] = 1 if shape.storage == "enum" else 0


def _cast(column: Any, shape: Shape, name: str) -> Any:
    try:
        return column.cast(shape.arrow)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidValueError(
            f"column {name!r} is {column.type}, its field is {shape.arrow}: {str(error)[:200]}"
        ) from None
