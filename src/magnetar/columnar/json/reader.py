"""JSON values to columns, by the schema that is declared for them in Avro's words (rule 10.14).

All values of a batch are one document for Arrow's reader, one line each: ``{"v": <value>}``. A value that breaks out of
its line is found before (`columnar.json.line_scan`), so it cannot shift its neighbours. The values that spoil a batch
are found by bisection (`columnar.bisection`), each with its reason.

Fields are found by name. A version of the schema that Avro's rules cannot resolve into ours (a double that would be a
float, a field without a default that is not there) is not read. A field that is missing or null has the schema's
default if its type has no null, else it is null; unknown fields are left out. An enum is one of its symbols, or its
default in place of another one; a number is the value of an Enum of the official Python client, which no schema names,
and stays that. Types that Arrow's reader has no form for (maps, bytes, decimals) are read value by value, which is
slower. A union of several types says nothing about JSON and is refused.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import json
import math
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # the same
import pyarrow.json  # type: ignore[import-untyped]  # the same

from magnetar.columnar.avro.defaults import default_of
from magnetar.columnar.avro.read.program import columns_of, program_of
from magnetar.columnar.avro.shape import Shape, is_optional
from magnetar.columnar.bisection import read_by_bisection
from magnetar.columnar.byte_columns import offsets_and_bytes
from magnetar.columnar.values import Decoded, Runs
from magnetar.columnar.versions import SchemaLookup, WritersType
from magnetar.model.errors import InvalidValueError, MagnetarError
from magnetar.model.schemas import SchemaDefinition, SchemaType
from magnetar.schema_definitions.avro import AvroSchemaError, parse
from magnetar.schema_definitions.avro_types import AvroEnum, AvroField, AvroRecord, AvroSchema, describe

_SLOW: Final = frozenset({"bytes", "decimal", "map"})
_NUMBERS: Final = frozenset({"int", "long", "millis"})
_ERRORS: Final = (InvalidValueError, pa.ArrowInvalid, pa.ArrowNotImplementedError)
_SIZE_MAX: Final = 1 << 30
"""Arrow's reader counts in 32 bits."""


class Json:
    """Reads JSON values; implements `magnetar.columnar.values.Values`."""

    needs_keys = False

    def __init__(self, reader: AvroSchema, writers: SchemaLookup | None = None, label: str = "given") -> None:
        """``writers`` are asked for the type only. Raises InvalidValueError if the schema has no columns."""
        self._writers = WritersType(writers, (SchemaType.JSON,), label, self._cannot)
        self._reader = reader
        self._label = label
        self.record = isinstance(reader, AvroRecord)
        self._columns = columns_of(reader)
        self.schema: Any = pa.schema([pa.field(name, shape.arrow) for name, shape in self._columns])
        shapes: list[Shape] = []
        for _, shape in self._columns:
            shape.walk(shapes.append)
        for shape in shapes:
            if shape.storage == "union":
                raise InvalidValueError(
                    f"{shape.path}: {describe(shape.schema)} cannot be inferred from JSON; read it with value=string"
                )
        self._slow = any(shape.storage in _SLOW for shape in shapes)
        self._enums = any(shape.storage == "enum" for shape in shapes)
        self._fields = reader.fields if isinstance(reader, AvroRecord) else []
        inner = pa.struct([pa.field(name, _parsed_as(shape)) for name, shape in self._columns])
        self._parsed = pa.schema([pa.field("v", inner if self.record else inner.field(0).type)])

    def read(self, values: Any, runs: Runs, keys: Any = None) -> Decoded:
        """Decode ``values``; one that does not fit is null in every column."""
        return self._writers.read(values, runs, self.schema, self._read)

    def _cannot(self, definition: SchemaDefinition) -> str | None:
        """Say why a writer's schema cannot be resolved into ours; None if it can, or has an old form without types."""
        try:
            writer = parse(definition.data)
        except AvroSchemaError:
            return None
        try:
            program_of(writer, self._reader)
        except (MagnetarError, AvroSchemaError) as error:
            return str(error)
        return None

    def _read(self, values: Any) -> Decoded:
        return read_by_bisection(
            values, self.schema, self._columns_of, _ERRORS, f"does not fit JSON schema {self._label}"
        )

    def _columns_of(self, values: Any) -> list[Any]:
        """Read all values at once. Raises one of `_ERRORS` if any of them does not fit."""
        if self._slow:
            return self._slowly(values)
        try:
            return self._parse(values)
        except pa.ArrowInvalid as error:
            # Arrow gives up on a member that is named twice; of those the last counts, as for Pulsar's clients.
            if "specified twice" in str(error) or (self._enums and "to number" in str(error)):
                return self._slowly(values)
            text = str(error).replace("JSON parse error: ", "").replace("Column(/v", "field (")
            raise InvalidValueError(text) from None

    def _parse(self, values: Any) -> list[Any]:
        # Kernels take a quarter of a second to load, and the driver needs only schemas.
        from magnetar.columnar.json.line_scan import first_broken_line

        if not len(values):
            return [pa.array([], field.type) for field in self.schema]
        if len(values) > 1 and int(np.ptp(offsets_and_bytes(values)[0])) > _SIZE_MAX:
            raise pa.ArrowInvalid("too much for one document")
        # Arrow's reader passes texts on as they are.
        values.cast(pa.string())
        if first_broken_line(*offsets_and_bytes(values)) >= 0:
            raise pa.ArrowInvalid("more or less than one JSON value")
        lines = pc.binary_join_element_wise(b'{"v":', pc.fill_null(values, b"null"), b"}\n", b"")
        ends, data = offsets_and_bytes(lines)
        document = pa.BufferReader(pa.py_buffer(data[ends[0] :]))
        table = pyarrow.json.read_json(
            document,
            pyarrow.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
            pyarrow.json.ParseOptions(explicit_schema=self._parsed, unexpected_field_behavior="ignore"),
        )
        if table.num_rows != len(values):
            raise pa.ArrowInvalid(f"{table.num_rows} JSON documents where one should be")
        (column,) = table.columns
        whole = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        if not self.record:
            return [_finished(whole, self._columns[0].shape, None, whole.is_valid())]
        there = whole.is_valid() if whole.null_count else None
        return [
            _finished(array, shape, field, there)
            for array, (_, shape), field in zip(whole.flatten(), self._columns, self._fields, strict=True)
        ]

    def _slowly(self, values: Any) -> list[Any]:
        """Read the values one by one."""
        rows: list[Any] = []
        for value in values.to_pylist():
            try:
                # Of bytes Python guesses the encoding.
                document = None if value is None else json.loads(value.decode(), parse_float=_Number)
            except (ValueError, RecursionError) as error:
                raise InvalidValueError(f"no JSON: {error}") from None
            if document is None:
                rows.append([None] * len(self._columns))
            elif not self.record:
                rows.append([_python(document, self._columns[0].shape)])
            else:
                rows.append(_record(document, self._fields, [shape for _, shape in self._columns], "the value"))
        try:
            return [pa.array([row[index] for row in rows], field.type) for index, field in enumerate(self.schema)]
        except UnicodeEncodeError as error:
            raise InvalidValueError(f"half of a surrogate pair ({error.object[error.start]!r}) is no text") from None


def _parsed_as(shape: Shape) -> Any:
    """Return the type that Arrow's reader is asked for; the rest is done afterwards."""
    if shape.storage in ("long", "millis"):
        return pa.int64()
    if shape.storage == "int":
        return pa.int32()
    if shape.storage == "list":
        return pa.list_(_parsed_as(shape.children[0]))
    if shape.storage == "struct":
        pairs = zip(shape.arrow, shape.children, strict=True)
        return pa.struct([pa.field(field.name, _parsed_as(child)) for field, child in pairs])
    return shape.arrow


def _finished(array: Any, shape: Shape, field: AvroField | None, there: Any) -> Any:
    """Moments from their numbers, defaults where nothing was; ``there``: where the value is not null, None: always."""
    if shape.storage == "millis":
        array = pc.multiply_checked(array, 1000)
    elif shape.storage == "enum":
        array = _symbols(array, shape)
    if array.type != shape.arrow:
        array = _nested(array, shape) if shape.children else array.cast(shape.arrow)
    elif shape.children:
        array = _nested(array, shape)
    if field is not None and array.null_count and field.has_default and not is_optional(field.type):
        default = pa.scalar(default_of(field.default, field.type, shape), shape.arrow)
        lacking = array.is_null() if there is None else pc.and_(array.is_null(), there)
        array = pc.if_else(lacking, default, array)
    return array


def _symbols(array: Any, shape: Shape) -> Any:
    """Check an enum's symbols. Raises InvalidValueError for another one, unless the enum has a default."""
    assert isinstance(shape.schema, AvroEnum), "enums are stored so"
    strange = pc.and_(array.is_valid(), pc.invert(pc.is_in(array, pa.array(shape.schema.symbols, pa.string()))))
    if not pc.any(strange).as_py():
        return array
    if shape.schema.default is None:
        raise InvalidValueError(_no_symbol(array.filter(strange)[0].as_py(), shape))
    return pc.if_else(strange, pa.scalar(shape.schema.default, pa.string()), array)


def _no_symbol(text: str, shape: Shape) -> str:
    return f"{shape.path}: {text[:60]!r} is no symbol of {describe(shape.schema)}"


def _symbol(value: Any, shape: Shape) -> str:
    assert isinstance(shape.schema, AvroEnum), "enums are stored so"
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    text: str = _typed(str)(value, shape)
    if text in shape.schema.symbols:
        return text
    if shape.schema.default is None:
        raise InvalidValueError(_no_symbol(text, shape))
    return shape.schema.default


def _nested(array: Any, shape: Shape) -> Any:
    if shape.storage == "list":
        items = _finished(array.values, shape.children[0], None, None)
        if items is array.values:
            return array
        valid, ends = array.buffers()[:2]
        return pa.Array.from_buffers(shape.arrow, len(array), [valid, ends], array.null_count, array.offset, [items])
    assert isinstance(shape.schema, AvroRecord), "lists and records have children here"
    there = array.is_valid() if array.null_count else None
    children = [
        _finished(child, one, field, there)
        for child, one, field in zip(array.flatten(), shape.children, shape.schema.fields, strict=True)
    ]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(shape.arrow), mask=mask)


class _Number(float):
    """A number with a point, and its text, since a decimal is more exact than a float."""

    text: str

    def __new__(cls, text: str) -> _Number:
        """Make the number from its text, as json.loads does."""
        made = super().__new__(cls, text)
        made.text = text
        return made


def _record(document: Any, fields: list[AvroField], shapes: list[Shape], path: str) -> list[Any]:
    if not isinstance(document, dict):
        raise InvalidValueError(f"{path}: {type(document).__name__} where an object should be")
    found = []
    for field, shape in zip(fields, shapes, strict=True):
        value = document.get(field.name)
        if value is None and field.has_default and not is_optional(field.type):
            found.append(default_of(field.default, field.type, shape))
        else:
            found.append(None if value is None else _python(value, shape))
    return found


def _python(value: Any, shape: Shape) -> Any:
    """Return a value as Arrow takes it. Raises InvalidValueError with the place."""
    if value is None:
        return None
    try:
        return _CONVERSIONS[shape.storage](value, shape)
    except (TypeError, ValueError, OverflowError, binascii.Error, InvalidOperation) as error:
        raise InvalidValueError(f"{shape.path}: {str(value)[:60]!r} is no {describe(shape.schema)}: {error}") from None


def _typed(*types: type) -> Callable[[Any, Shape], Any]:
    def checked(value: Any, _: Shape) -> Any:
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise TypeError(f"it is {type(value).__name__}")
        return value

    return checked


def _whole(value: Any, shape: Shape) -> Any:
    number = _typed(int)(value, shape) * (1000 if shape.storage == "millis" else 1)
    if not -(1 << 63) <= number < 1 << 63 or (shape.storage == "int" and not -(1 << 31) <= number < 1 << 31):
        raise OverflowError("too large")
    if pa.types.is_date(shape.arrow):
        return dt.date(1970, 1, 1) + dt.timedelta(days=number)
    return pa.scalar(number, pa.int64()).cast(shape.arrow) if pa.types.is_timestamp(shape.arrow) else number


def _real(value: Any, shape: Shape) -> float:
    number = float(_typed(int, float)(value, shape))
    if isinstance(value, _Number) and math.isinf(number):
        raise OverflowError("too large")
    return number


def _struct(value: Any, shape: Shape) -> Any:
    assert isinstance(shape.schema, AvroRecord), "structs come from records"
    names = [field.name for field in shape.schema.fields]
    return dict(zip(names, _record(value, shape.schema.fields, shape.children, shape.path), strict=True))


def _decimal(value: Any, shape: Shape) -> Any:
    number = Decimal(getattr(value, "text", value))
    if round(number, shape.arrow.scale) != number or number.adjusted() >= shape.arrow.precision - shape.arrow.scale:
        raise ValueError(f"it does not fit decimal({shape.arrow.precision},{shape.arrow.scale})")
    return round(number, shape.arrow.scale)


_CONVERSIONS: Final[dict[str, Callable[[Any, Shape], Any]]] = {
    "boolean": _typed(bool),
    **dict.fromkeys(_NUMBERS, _whole),
    **dict.fromkeys(("float", "double"), _real),
    **dict.fromkeys(("text", "null"), _typed(str)),
    "enum": _symbol,
    "bytes": lambda value, shape: base64.b64decode(_typed(str)(value, shape), validate=True),
    "decimal": _decimal,
    "list": lambda value, shape: [_python(one, shape.children[0]) for one in _typed(list)(value, shape)],
    "map": lambda value, shape: [
        (key, _python(one, shape.children[1])) for key, one in _typed(dict)(value, shape).items()
    ],
    "struct": _struct,
}
