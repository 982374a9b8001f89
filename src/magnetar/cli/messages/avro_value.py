"""JSON to Avro's binary form, as ``pulsar-client produce -vs avro:…`` does it: by Avro's own JSON encoding.

A value of a union other than null is written as an object with the name of its branch, ``{"string": "x"}``; the plain
value is taken too, where only one branch can have it. Bytes and fixed are text of the characters 0 to 255.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any, Final

from magnetar.model.errors import InvalidValueError
from magnetar.schema_definitions.avro import AvroSchemaError
from magnetar.schema_definitions.avro_numbers import put_long
from magnetar.schema_definitions.avro_types import (
    AvroArray,
    AvroEnum,
    AvroFixed,
    AvroMap,
    AvroPrimitive,
    AvroRecord,
    AvroSchema,
    AvroUnion,
    short_name,
)
from magnetar.schema_definitions.validation import parsed

_FLOATS: Final = {"float": "<f", "double": "<d"}


def avro_schema(definition: str) -> AvroSchema:
    """Return the schema of a definition. Raises InvalidValueError with the place in it."""
    try:
        return parsed(definition.encode())
    except AvroSchemaError as error:
        raise InvalidValueError(f"avro: the definition is no schema: {error}") from None


def avro_bytes(definition: str, text: str) -> bytes:
    """Return the value that ``text`` says in JSON. Raises InvalidValueError with the place in it."""
    schema = avro_schema(definition)
    out = bytearray()
    try:
        _Writer(out).write(schema, json.loads(text), "value")
    except RecursionError:
        raise InvalidValueError("value: there are too many levels inside each other") from None
    except ValueError as error:
        raise InvalidValueError(f"the value of an Avro schema is JSON: {error}") from None
    return bytes(out)


class _Writer:
    """Appends one value. ``default``: it is a default of the schema, whose unions are written without a branch."""

    def __init__(self, out: bytearray) -> None:
        self._out = out

    def write(self, schema: AvroSchema, value: Any, where: str, default: bool = False) -> None:
        match schema:
            case AvroUnion():
                self._union(schema.branches, value, where, default)
            case AvroRecord():
                self._record(schema, value, where, default)
            case AvroArray():
                self._array(schema, value, where, default)
            case AvroMap():
                self._map(schema, value, where, default)
            case AvroEnum():
                if value not in schema.symbols:
                    raise InvalidValueError(f"{where}: {_shown(value)} is none of {', '.join(schema.symbols)}")
                put_long(self._out, schema.symbols.index(value))
            case AvroFixed():
                data = _characters(value, where)
                if len(data) != schema.size:
                    raise InvalidValueError(f"{where}: {len(data)} bytes where {schema.size} are fixed")
                self._out += data
            case AvroPrimitive():
                self._primitive(schema.kind, value, where)

    def _raw(self, data: bytes) -> None:
        put_long(self._out, len(data))
        self._out += data

    def _primitive(self, kind: str, value: Any, where: str) -> None:
        if not _fits(kind, value):
            raise InvalidValueError(f"{where}: {_shown(value)} is no {kind}")
        if kind == "boolean":
            self._out.append(value)
        elif kind in ("int", "long"):
            put_long(self._out, value)
        elif kind in _FLOATS:
            try:
                self._out += struct.pack(_FLOATS[kind], float(value))
            except OverflowError:
                raise InvalidValueError(f"{where}: {_shown(value)} is too large for a {kind}") from None
        elif kind == "bytes":
            self._raw(_characters(value, where))
        elif kind == "string":
            self._raw(_text(value, where))

    def _union(self, branches: list[AvroSchema], value: Any, where: str, default: bool) -> None:
        names = [_name(branch) for branch in branches]
        if not default and isinstance(value, Mapping) and len(value) == 1:
            ((name, inner),) = value.items()
            number = next((at for at, one in enumerate(names) if name in (one, short_name(one))), None)
            if number is not None:
                put_long(self._out, number)
                self.write(branches[number], inner, where)
                return
        fitting = [number for number, branch in enumerate(branches) if _fits(branch.kind, value)]
        if not fitting or (len(fitting) > 1 and not default):
            raise InvalidValueError(f'{where}: write {{"TYPE": …}} with one of {", ".join(names)}')
        put_long(self._out, fitting[0])
        self.write(branches[fitting[0]], value, where, default)

    def _record(self, schema: AvroRecord, value: Any, where: str, default: bool) -> None:
        if not isinstance(value, dict):
            raise InvalidValueError(f"{where}: a record is a JSON object")
        if unknown := value.keys() - {field.name for field in schema.fields}:
            names = ", ".join(_shown(name)[1:-1] for name in sorted(unknown))
            raise InvalidValueError(f"{where}: the schema has no field {names}")
        for field in schema.fields:
            there = field.name in value
            if not there and not field.has_default:
                raise InvalidValueError(f"{where}.{field.name} is missing and has no default")
            inner = value[field.name] if there else field.default
            self.write(field.type, inner, f"{where}.{field.name}", default or not there)

    def _array(self, schema: AvroArray, value: Any, where: str, default: bool) -> None:
        if not isinstance(value, list):
            raise InvalidValueError(f"{where}: an array is a JSON array")
        if value:
            put_long(self._out, len(value))
            for number, item in enumerate(value):
                self.write(schema.items, item, f"{where}[{number}]", default)
        put_long(self._out, 0)

    def _map(self, schema: AvroMap, value: Any, where: str, default: bool) -> None:
        if not isinstance(value, dict):
            raise InvalidValueError(f"{where}: a map is a JSON object")
        if value:
            put_long(self._out, len(value))
            for name, item in value.items():
                self._raw(_text(name, where))
                self.write(schema.values, item, f"{where}.{name}", default)
        put_long(self._out, 0)


def _name(schema: AvroSchema) -> str:
    return schema.name if isinstance(schema, AvroRecord | AvroEnum | AvroFixed) else schema.kind


def _shown(value: Any) -> str:
    return json.dumps(value)[:60]


def _text(value: str, where: str) -> bytes:
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise InvalidValueError(f"{where}: {_shown(value)} has half of a character, which no text is") from None


def _characters(value: Any, where: str) -> bytes:
    try:
        return str.encode(value, "latin-1")
    except (TypeError, UnicodeEncodeError):
        raise InvalidValueError(f"{where}: bytes are text of the characters 0 to 255") from None


def _fits(kind: str, value: Any) -> bool:
    match kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int" | "long":
            bits = 31 if kind == "int" else 63
            return isinstance(value, int) and not isinstance(value, bool) and -(1 << bits) <= value < 1 << bits
        case "float" | "double":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "bytes" | "string" | "enum" | "fixed":
            return isinstance(value, str)
        case "array":
            return isinstance(value, list)
        case _:
            return isinstance(value, dict)
