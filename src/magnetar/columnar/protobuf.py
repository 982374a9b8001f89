"""Protobuf values to columns, by a message's descriptor; ptars reads them, upb is the model in the tests.

Fields are columns: messages structs, repeated fields lists, maps maps, enums their names, Timestamp a timestamp. What
Spark has no type for becomes a larger one: uint32 a bigint, uint64 a decimal(20,0). As in protobuf itself, a field of
proto3 that was not written is its type's zero, unless it is a message or optional. A message that contains itself has
no columns.
"""

from __future__ import annotations

from typing import Any, Final

import ptars
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # the same

from magnetar.columnar.bisection import read_by_bisection
from magnetar.columnar.sql_types import sql_type
from magnetar.columnar.values import Decoded, Runs
from magnetar.columnar.versions import SchemaLookup, WritersType
from magnetar.model.errors import InvalidValueError
from magnetar.model.schemas import SchemaType

_CONFIG: Final = ptars.PtarsConfig(
    timestamp_unit="us",
    time_unit="us",
    enum_repr="string",
    list_nullable=True,
    map_nullable=True,
    list_value_nullable=True,
    map_value_nullable=True,
)
_KINDS: Final = (SchemaType.PROTOBUF, SchemaType.PROTOBUF_NATIVE)
_WIDER: Final = {pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0)}


class Protobuf:
    """Reads Protobuf values; implements `magnetar.columnar.values.Values`."""

    needs_keys = False
    record = True

    def __init__(self, descriptor: Any, writers: SchemaLookup | None = None, label: str = "given") -> None:
        """``descriptor``: protobuf's; ``writers`` are asked for the type only. Raises InvalidValueError."""
        _check_recursion(descriptor, ())
        self._handler = ptars.HandlerPool([descriptor.file], _CONFIG).get_for_message(descriptor)
        self._label = f"{descriptor.full_name} ({label})"
        self._writers = WritersType(writers, _KINDS, self._label)
        try:
            self.schema: Any = pa.schema([pa.field(one.name, _plain(one.type)) for one in self._handler.schema()])
            for one in self.schema:
                sql_type(one.type)
        except InvalidValueError as error:
            raise InvalidValueError(f"{descriptor.full_name}: {error}; read it with value=binary") from None

    def read(self, values: Any, runs: Runs, keys: Any = None) -> Decoded:
        """Decode ``values``; one that does not fit is null in every column."""
        return self._writers.read(values, runs, self.schema, self._read)

    def _read(self, values: Any) -> Decoded:
        return read_by_bisection(values, self.schema, self._columns, (ValueError,), f"does not fit {self._label}")

    def _columns(self, values: Any) -> list[Any]:
        found = self._handler.array_to_record_batch(values)
        columns = [column.cast(field.type) for column, field in zip(found.columns, self.schema, strict=True)]
        if not values.null_count:
            return columns
        # ptars takes a null for a message without fields.
        rows = pc.if_else(values.is_valid(), pa.array(range(len(values))), None)
        return [column.take(rows) for column in columns]


def _plain(arrow: Any) -> Any:
    """Return the type with everything nullable, and unsigned numbers as larger ones."""
    if pa.types.is_struct(arrow):
        return pa.struct([pa.field(one.name, _plain(one.type)) for one in arrow])
    if pa.types.is_list(arrow):
        return pa.list_(_plain(arrow.value_type))
    if pa.types.is_map(arrow):
        return pa.map_(_plain(arrow.key_type), _plain(arrow.item_type))
    return _WIDER.get(arrow, arrow)


def _check_recursion(descriptor: Any, around: tuple[str, ...]) -> None:
    if descriptor.full_name in around:
        raise InvalidValueError(
            f"message {descriptor.full_name} contains itself, which has no columns; read it with value=binary"
        )
    for field in descriptor.fields:
        if field.message_type is not None:
            _check_recursion(field.message_type, (*around, descriptor.full_name))


class ProtobufWriter:
    """Writes columns as Protobuf messages."""

    def __init__(self, descriptor: Any, names: list[str]) -> None:
        """``names`` of the columns. Raises InvalidValueError if they are not the message's fields."""
        _check_recursion(descriptor, ())
        self._handler = ptars.HandlerPool([descriptor.file], _CONFIG).get_for_message(descriptor)
        self._schema = self._handler.schema()
        self._name = descriptor.full_name
        if unknown := [name for name in names if name not in self._schema.names]:
            raise InvalidValueError(f"column {unknown[0]!r} is no field of {self._name}; drop it or rename it")

    def write(self, columns: dict[str, Any], present: Any) -> Any:
        """Return a pa.BinaryArray; ``present`` (NDArray[bool]) is false where a value is null. InvalidValueError."""
        arrays = []
        for field in self._schema:
            given = columns.get(field.name)
            arrays.append(self._field(pa.nulls(len(present), field.type) if given is None else given, field))
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        values = self._handler.record_batch_to_array(batch)
        return values.take(pa.array(range(len(present)), mask=~present))

    def _field(self, column: Any, field: Any) -> Any:
        try:
            return _whole(column, field)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InvalidValueError(f"column {field.name!r} does not fit {self._name}: {error}") from None


def _whole(column: Any, field: Any) -> Any:
    """Return the column in the type that ptars wants; what may not be null is its type's zero instead."""
    if pa.types.is_struct(field.type) and pa.types.is_struct(column.type):
        names = [one.name for one in column.type]
        children = [
            _whole(column.field(names.index(one.name)), one) if one.name in names else _zeros(len(column), one)
            for one in field.type
        ]
        return pa.StructArray.from_arrays(children, fields=list(field.type), mask=column.is_null())
    if pa.types.is_list(field.type) and pa.types.is_list(column.type):
        valid, ends = column.buffers()[:2]
        items = _whole(column.values, field.type.value_field)
        return pa.Array.from_buffers(field.type, len(column), [valid, ends], column.null_count, column.offset, [items])
    found = column.cast(field.type)
    return found if field.nullable or not found.null_count else found.fill_null(_zero(field.type))


def _zeros(count: int, field: Any) -> Any:
    return pa.nulls(count, field.type) if field.nullable else pa.repeat(_zero(field.type), count)


def _zero(arrow: Any) -> Any:
    empty = "" if pa.types.is_string(arrow) else b"" if pa.types.is_binary(arrow) else 0
    return pa.scalar(empty).cast(arrow)
