"""Values to Avro's binary form. A schema is compiled once into functions, one for each type in it.

A record is written from a mapping or from attributes (dataclasses, pydantic models, declared records). In a mapping a
field may be left out that has a default or may be null; a key that is no field is an error. A union's branch is that
of the value's Python type: the first one that takes it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final, TypeAlias

from magnetar.client.errors import SchemaError, ValueTypeError
from magnetar.client.values.avro.defaults import default_value
from magnetar.client.values.avro.logical_types import LogicalType, logical_type
from magnetar.client.values.value_schema import shown
from magnetar.schema_definitions.avro_numbers import put_long
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
    short_name,
)

Write: TypeAlias = Callable[[bytearray, Any], None]
"""Appends a value. Raises ValueTypeError, ValueError, OverflowError."""

_FLOAT: Final = struct.Struct("<f").pack
_DOUBLE: Final = struct.Struct("<d").pack
_MISSING: Final = object()
_RANGES: Final = {"int": (-(1 << 31), 1 << 31), "long": (-(1 << 63), 1 << 63)}


class AvroEncoder:
    """Encodes values of one schema."""

    def __init__(self, schema: AvroSchema) -> None:
        self._write = _Compiler().compile(schema)
        self._what = describe(schema)

    def encode(self, value: Any) -> bytes:
        """Return the binary form. Raises SchemaError with the place in the value."""
        out = bytearray()
        try:
            self._write(out, value)
        except _Misplaced as error:
            raise ValueTypeError(f"{self._what}: field {error.path}: {error.reason}") from None
        except (ValueError, OverflowError, SchemaError, RecursionError) as error:
            raise ValueTypeError(f"{self._what}: {error}") from None
        return bytes(out)


class _Misplaced(Exception):
    """What is wrong, on its way out through the records that it stands in."""

    def __init__(self, path: str, reason: object) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason


class _Compiler:
    def __init__(self) -> None:
        self._records: dict[int, Write] = {}

    def compile(self, schema: AvroSchema) -> Write:
        if isinstance(schema, AvroPrimitive | AvroFixed):
            plain = _PRIMITIVE[schema.kind] if isinstance(schema, AvroPrimitive) else _fixed(schema)
            logical = logical_type(schema)
            return plain if logical is None else _logical(plain, logical)
        if isinstance(schema, AvroEnum):
            return _enum(schema)
        if isinstance(schema, AvroArray):
            return _array(self.compile(schema.items))
        if isinstance(schema, AvroMap):
            return _map(self.compile(schema.values))
        if isinstance(schema, AvroUnion):
            return self._union(schema)
        return self._record(schema)

    def _record(self, schema: AvroRecord) -> Write:
        known = self._records.get(id(schema))
        if known is not None:
            return known
        fields: list[tuple[str, Write, Callable[[], Any]]] = []

        def write(out: bytearray, value: Any) -> None:
            if isinstance(value, Mapping):
                written = 0
                for name, put, default in fields:
                    found = value.get(name, _MISSING)
                    if found is _MISSING:
                        found = default()
                        if found is _MISSING:
                            raise _Misplaced(name, "it is not there, has no default and may not be null")
                    else:
                        written += 1
                    _put(put, out, found, name)
                if written < len(value):
                    names = {name for name, _, _ in fields}
                    extra = ", ".join(sorted(str(name) for name in value if name not in names))
                    raise ValueTypeError(f"{schema.name} has no field {extra}")
            else:
                for name, put, _ in fields:
                    found = getattr(value, name, _MISSING)
                    if found is _MISSING:
                        raise ValueTypeError(f"{describe(schema)} is expected, not {_typed(value)}")
                    _put(put, out, found, name)

        self._records[id(schema)] = write
        fields += [(one.name, self.compile(one.type), _default(one)) for one in schema.fields]
        return write

    def _union(self, schema: AvroUnion) -> Write:
        branches = [
            (bytes(_varint(index)), self.compile(one), branch_test(one)) for index, one in enumerate(schema.branches)
        ]
        null = next((head for head, _, _ in branches if schema.branches[head[0] >> 1].kind == "null"), None)
        others = [one for one in branches if one[0] != null]
        if null is not None and len(others) == 1:
            (head, put, _) = others[0]

            def write_optional(out: bytearray, value: Any) -> None:
                if value is None:
                    out += null
                else:
                    out += head
                    put(out, value)

            return write_optional

        def write(out: bytearray, value: Any) -> None:
            for head, put, takes in branches:
                if takes(value):
                    out += head
                    put(out, value)
                    return
            raise ValueTypeError(f"{describe(schema)} is expected, not {_typed(value)}")

        return write


def _put(put: Write, out: bytearray, value: Any, name: str) -> None:
    try:
        put(out, value)
    except _Misplaced as error:
        raise _Misplaced(f"{name}.{error.path}", error.reason) from None
    except (ValueError, OverflowError, SchemaError) as error:
        raise _Misplaced(name, error) from None


def _default(field: AvroField) -> Callable[[], Any]:
    if field.has_default:
        try:
            return default_value(field.default, field.type)
        except (AttributeError, TypeError, ValueError):
            pass  # the registry admits defaults that are not of their type (rule 10.4)
    optional = isinstance(field.type, AvroUnion) and any(one.kind == "null" for one in field.type.branches)
    return (lambda: None) if optional or field.type.kind == "null" else (lambda: _MISSING)


def _varint(number: int) -> bytearray:
    out = bytearray()
    put_long(out, number)
    return out


def _typed(value: Any) -> str:
    return f"{type(value).__name__} {shown(value)}"


def _whole(kind: str) -> Write:
    low, high = _RANGES[kind]

    def write(out: bytearray, value: Any) -> None:
        if not isinstance(value, int) or value is True or value is False:
            raise ValueTypeError(f"{kind} is expected, not {_typed(value)}")
        if not low <= value < high:
            raise ValueTypeError(f"{value} does not fit {kind}")
        put_long(out, value)

    return write


def _real(kind: str, pack: Callable[[float], bytes]) -> Write:
    def write(out: bytearray, value: Any) -> None:
        if not isinstance(value, float | int) or isinstance(value, bool):
            raise ValueTypeError(f"{kind} is expected, not {_typed(value)}")
        out += pack(value)

    return write


def _null(out: bytearray, value: Any) -> None:
    if value is not None:
        raise ValueTypeError(f"null is expected, not {_typed(value)}")


def _boolean(out: bytearray, value: Any) -> None:
    if not isinstance(value, bool):
        raise ValueTypeError(f"boolean is expected, not {_typed(value)}")
    out.append(value)


def _text(out: bytearray, value: Any) -> None:
    if not isinstance(value, str):
        raise ValueTypeError(f"string is expected, not {_typed(value)}")
    raw = value.encode()
    put_long(out, len(raw))
    out += raw


def _bytes(out: bytearray, value: Any) -> None:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise ValueTypeError(f"bytes is expected, not {_typed(value)}")
    raw = bytes(value)
    put_long(out, len(raw))
    out += raw


def _fixed(schema: AvroFixed) -> Write:
    def write(out: bytearray, value: Any) -> None:
        if not isinstance(value, bytes | bytearray | memoryview) or len(value) != schema.size:
            raise ValueTypeError(f"{schema.size} bytes are expected, not {_typed(value)}")
        out += value

    return write


def _enum(schema: AvroEnum) -> Write:
    indexes = {symbol: bytes(_varint(index)) for index, symbol in enumerate(schema.symbols)}

    def write(out: bytearray, value: Any) -> None:
        symbol = value.name if isinstance(value, Enum) else value
        index = indexes.get(symbol) if isinstance(symbol, str) else None
        if index is None:
            raise ValueTypeError(f"one of {', '.join(schema.symbols)} is expected, not {_typed(value)}")
        out += index

    return write


def _array(put: Write) -> Write:
    def write(out: bytearray, value: Any) -> None:
        if not isinstance(value, list | tuple | set | frozenset):
            raise ValueTypeError(f"array is expected, not {_typed(value)}")
        if value:
            put_long(out, len(value))
            for index, one in enumerate(value):
                _put(put, out, one, f"[{index}]")
        out.append(0)

    return write


def _map(put: Write) -> Write:
    def write(out: bytearray, value: Any) -> None:
        if not isinstance(value, Mapping):
            raise ValueTypeError(f"map is expected, not {_typed(value)}")
        if value:
            put_long(out, len(value))
            for key, one in value.items():
                _text(out, key)
                _put(put, out, one, f"[{key!r}]")
        out.append(0)

    return write


def _logical(put: Write, logical: LogicalType) -> Write:
    python, plain = logical.python, logical.plain

    def write(out: bytearray, value: Any) -> None:
        if isinstance(value, python):
            try:
                value = plain(value)
            except ValueError as error:
                raise ValueTypeError(f"{_typed(value)}: {error}") from None
        put(out, value)

    return write


def branch_test(schema: AvroSchema) -> Callable[[Any], bool]:
    """Return whether a branch of a union is the one for a value."""
    logical = logical_type(schema)
    python = None if logical is None else logical.python
    if isinstance(schema, AvroRecord):
        return _takes_record(schema)
    if isinstance(schema, AvroEnum):
        symbols = set(schema.symbols)
        return lambda value: (value.name if isinstance(value, Enum) else value) in symbols if _named(value) else False
    if isinstance(schema, AvroArray):
        return lambda value: isinstance(value, list | tuple | set | frozenset)
    if isinstance(schema, AvroMap):
        return lambda value: isinstance(value, Mapping)
    if isinstance(schema, AvroFixed):
        size = schema.size
        exact = python or bytes
        return lambda value: isinstance(value, exact) or (isinstance(value, bytes) and len(value) == size)
    if python is not None:
        exact = python
        return lambda value: type(value) is exact or _PYTHON[schema.kind](value)
    return _PYTHON[schema.kind]


def _named(value: Any) -> bool:
    return isinstance(value, Enum | str)


def _takes_record(schema: AvroRecord) -> Callable[[Any], bool]:
    needed = {one.name for one in schema.fields if _default(one)() is _MISSING}
    known = {one.name for one in schema.fields}
    name = short_name(schema.name)

    def takes(value: Any) -> bool:
        if isinstance(value, Mapping):
            return needed <= value.keys() <= known
        return type(value).__name__ == name

    return takes


def _in_range(kind: str) -> Callable[[Any], bool]:
    low, high = _RANGES[kind]
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value < high


_PYTHON: Final[dict[str, Callable[[Any], bool]]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "int": _in_range("int"),
    "long": _in_range("long"),
    "float": lambda value: isinstance(value, float),
    "double": lambda value: isinstance(value, float),
    "string": lambda value: isinstance(value, str) and not isinstance(value, Enum),
    "bytes": lambda value: isinstance(value, bytes | bytearray),
}
_PRIMITIVE: Final[dict[str, Write]] = {
    "null": _null,
    "boolean": _boolean,
    "int": _whole("int"),
    "long": _whole("long"),
    "float": _real("float", _FLOAT),
    "double": _real("double", _DOUBLE),
    "string": _text,
    "bytes": _bytes,
}
