"""Values to JSON and back, by an Avro definition (rule 10.14).

| Avro | JSON |
| --- | --- |
| numbers, times | a number, in the unit of the logical type |
| decimal, uuid | text |
| bytes, fixed | base64, as Java's client writes them; UTF-8 with declared records, as the official Python client does |
| enum | the symbol |

Of what is read, names that are no fields are left out; a field that is missing has its default, or is null where it may
be.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any, Final, TypeAlias
from uuid import UUID

from magnetar.client.errors import SchemaError, ValueTypeError
from magnetar.client.values.avro.defaults import Made, default_value
from magnetar.client.values.avro.encoder import branch_test
from magnetar.client.values.avro.logical_types import logical_type
from magnetar.client.values.value_schema import shown
from magnetar.schema_definitions.avro_defaults import misfit
from magnetar.schema_definitions.avro_types import (
    AvroArray,
    AvroEnum,
    AvroField,
    AvroFixed,
    AvroMap,
    AvroPrimitive,
    AvroRecord,
    AvroSchema,
    AvroUnion,
    describe,
)

Convert: TypeAlias = Callable[[Any], Any]
"""Raises SchemaError, ValueError."""

_MISSING: Final = object()
_PYTHON: Final[dict[str, tuple[type, ...]]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "int": (int,),
    "long": (int,),
    "float": (float, int),
    "double": (float, int),
    "string": (str,),
    "bytes": (bytes, bytearray),
    "fixed": (bytes, bytearray),
}
_BITS: Final = {"int": 31, "long": 63}


class JsonForm:
    """How values of one definition look in JSON."""

    def __init__(self, schema: AvroSchema, made: Made, *, bytes_as_text: bool) -> None:
        """``made`` makes the application's records and enums, by their names."""
        self._made = made
        self._text = bytes_as_text
        self._records: dict[tuple[str, int], Convert] = {}
        self.write = self._writer(schema)
        """Returns what JSON is written from."""
        self.read = self._reader(schema)
        """Returns the value of parsed JSON."""

    def _writer(self, schema: AvroSchema) -> Convert:
        if isinstance(schema, AvroRecord):
            return self._record_writer(schema)
        if isinstance(schema, AvroArray):
            item = self._writer(schema.items)
            return lambda value: [
                _at(item, one, f"[{index}]")
                for index, one in enumerate(_of(value, (list, tuple, set, frozenset), schema))
            ]
        if isinstance(schema, AvroMap):
            inner = self._writer(schema.values)
            return lambda value: {
                _of(key, (str,), "a key of a map"): _at(inner, one, f"[{key!r}]")
                for key, one in _of(value, (Mapping,), schema).items()
            }
        if isinstance(schema, AvroUnion):
            return _chosen([(branch_test(one), self._writer(one)) for one in schema.branches], schema)
        if isinstance(schema, AvroEnum):
            symbols = set(schema.symbols)
            return lambda value: _symbol(value.name if isinstance(value, Enum) else value, symbols, schema)
        return self._plain_writer(schema)

    def _plain_writer(self, schema: AvroPrimitive | AvroFixed) -> Convert:
        logical, text, types = logical_type(schema), self._text, _PYTHON[schema.kind]
        bits = _BITS.get(schema.kind)

        def write(value: Any) -> Any:
            if logical is not None and isinstance(value, logical.python):
                if logical.python is Decimal:
                    logical.plain(value)
                    return format(value, "f")
                value = logical.plain(value)
            _of(value, types, schema)
            if isinstance(value, bytes | bytearray):
                return value.decode() if text else base64.b64encode(value).decode()
            if bits is not None and not -(1 << bits) <= value < 1 << bits:
                raise ValueTypeError(f"{value} does not fit {schema.kind}")
            return value

        return write

    def _record_writer(self, schema: AvroRecord) -> Convert:
        known = self._records.get(("write", id(schema)))
        if known is not None:
            return known
        fields: list[tuple[str, Convert, Convert]] = []

        def write(value: Any) -> dict[str, Any]:
            found: dict[str, Any] = {}
            mapping = isinstance(value, Mapping)
            for name, put, default in fields:
                one = value.get(name, _MISSING) if mapping else getattr(value, name, _MISSING)
                if one is _MISSING:
                    one = default(value) if mapping else _of(value, (), schema)
                found[name] = _at(put, one, name)
            if mapping and value.keys() - found.keys():
                extra = ", ".join(sorted(map(str, value.keys() - found.keys())))
                raise ValueTypeError(f"{schema.name} has no field {extra}")
            return found

        self._records["write", id(schema)] = write
        fields += [(one.name, self._writer(one.type), _missing(one, {})) for one in schema.fields]
        return write

    def _reader(self, schema: AvroSchema) -> Convert:
        if isinstance(schema, AvroRecord):
            return self._record_reader(schema)
        if isinstance(schema, AvroArray):
            item = self._reader(schema.items)
            return lambda said: [_at(item, one, f"[{index}]") for index, one in enumerate(_of(said, (list,), schema))]
        if isinstance(schema, AvroMap):
            inner = self._reader(schema.values)
            return lambda said: {key: _at(inner, one, f"[{key!r}]") for key, one in _of(said, (dict,), schema).items()}
        if isinstance(schema, AvroUnion):
            return _chosen([*self._whole_records(schema), *self._said_branches(schema)], schema)
        if isinstance(schema, AvroEnum):
            return self._enum_reader(schema)
        return self._plain_reader(schema)

    def _enum_reader(self, schema: AvroEnum) -> Convert:
        make, symbols, other = self._made.get(schema.name), set(schema.symbols), schema.default
        by_value = self._text

        def read(said: Any) -> Any:
            if not (isinstance(said, str) and said in symbols) and not (by_value and make is not None):
                said = _symbol(said if other is None else other, symbols, schema)
            return said if make is None else make(said)

        return read

    def _plain_reader(self, schema: AvroPrimitive | AvroFixed) -> Convert:
        logical, text, kind = logical_type(schema), self._text, schema.kind
        bits = _BITS.get(kind)

        def read(said: Any) -> Any:
            if logical is not None and logical.python is Decimal:
                return _decimal(said)
            if kind in ("bytes", "fixed"):
                return _of(said, (str,), schema).encode() if text else _unpacked(said, schema)
            _of(said, _PYTHON[kind], schema)
            if bits is not None and not -(1 << bits) <= said < 1 << bits:
                raise SchemaError(f"{said} does not fit {kind}")
            if logical is not None:
                return logical.value(said)
            return float(said) if kind in ("float", "double") else said

        return read

    def _record_reader(self, schema: AvroRecord) -> Convert:
        known = self._records.get(("read", id(schema)))
        if known is not None:
            return known
        fields: list[tuple[str, Convert, Convert]] = []
        make = self._made.get(schema.name)

        def read(said: Any) -> Any:
            _of(said, (dict,), schema)
            found = {
                name: _at(get, said[name], name) if name in said else default(said) for name, get, default in fields
            }
            return found if make is None else make(found)

        self._records["read", id(schema)] = read
        fields += [(one.name, self._reader(one.type), _missing(one, self._made)) for one in schema.fields]
        return read

    def _said_branches(self, schema: AvroUnion) -> list[tuple[Convert, Convert]]:
        return [(self._said(one), self._reader(one)) for one in schema.branches]

    def _whole_records(self, schema: AvroUnion) -> list[tuple[Convert, Convert]]:
        """Return the records of a union with a test for values that have no names but theirs: where another one takes
        the value, too, but would leave something out, it is of this one."""
        records = [one for one in schema.branches if isinstance(one, AvroRecord)]
        if len(records) < 2:
            return []

        def test(one: AvroRecord) -> Convert:
            takes, names = self._said(one), {field.name for field in one.fields}
            return lambda said: takes(said) and said.keys() <= names

        return [(test(one), self._reader(one)) for one in records]

    def _said(self, schema: AvroSchema) -> Convert:
        """Return whether a branch of a union is the one for a value of JSON."""
        logical = logical_type(schema)
        if isinstance(schema, AvroRecord):
            needed = {one.name for one in schema.fields if not (one.has_default or _may_be_null(one))}
            return lambda said: isinstance(said, dict) and needed <= said.keys()
        if isinstance(schema, AvroEnum):
            symbols = set(schema.symbols)
            by_value = self._text
            return lambda said: said in symbols if isinstance(said, str) else by_value and type(said) is int
        if isinstance(schema, AvroArray | AvroMap):
            kind = list if isinstance(schema, AvroArray) else dict
            return lambda said: isinstance(said, kind)
        if logical is not None and logical.python in (Decimal, UUID):
            return lambda said: isinstance(said, str | int | float) and not isinstance(said, bool)
        types = (str,) if schema.kind in ("bytes", "fixed") else _PYTHON[schema.kind]
        return lambda said: isinstance(said, types) and isinstance(said, bool) == (bool in types)


def _at(convert: Convert, value: Any, place: str) -> Any:
    try:
        return convert(value)
    except (ValueError, SchemaError, ArithmeticError) as error:  # what a float, date or decimal cannot hold
        raise ValueTypeError(f"{place}: {error}") from None


def _of(value: Any, types: tuple[type, ...], what: AvroSchema | str) -> Any:
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        name = what if isinstance(what, str) else describe(what)
        raise ValueTypeError(f"{name} is expected, not {type(value).__name__} {shown(value)}")
    return value


def _symbol(symbol: Any, symbols: set[str], schema: AvroEnum) -> Any:
    if not isinstance(symbol, str) or symbol not in symbols:
        raise ValueTypeError(f"one of {', '.join(schema.symbols)} is expected, not {shown(symbol)}")
    return symbol


def _unpacked(said: Any, schema: AvroSchema) -> bytes:
    try:
        return base64.b64decode(_of(said, (str,), schema), validate=True)
    except binascii.Error as error:
        raise SchemaError(f"{shown(said)} is no base64: {error}") from None


def _decimal(said: Any) -> Decimal:
    try:
        return Decimal(said if isinstance(said, str) else repr(_of(said, (int, float), "decimal")))
    except InvalidOperation:
        raise SchemaError(f"{shown(said)} is no decimal") from None


def _chosen(branches: list[tuple[Convert, Convert]], schema: AvroUnion) -> Convert:
    def convert(value: Any) -> Any:
        for takes, branch in branches:
            if takes(value):
                return branch(value)
        raise ValueTypeError(f"{describe(schema)} is expected, not {type(value).__name__} {shown(value)}")

    return convert


def _may_be_null(field: AvroField) -> bool:
    optional = isinstance(field.type, AvroUnion) and any(one.kind == "null" for one in field.type.branches)
    return optional or field.type.kind == "null"


def _missing(field: AvroField, made: Made) -> Convert:
    """Return what gives the value of a field that is not there."""
    if field.has_default and misfit(field.default, field.type) is None:
        make = default_value(field.default, field.type, made)
        return lambda _: make()
    if _may_be_null(field):
        return lambda _: None

    def refuse(_: Any) -> Any:
        raise ValueTypeError(f"{field.name}: it is not there, has no default and may not be null")

    return refuse
