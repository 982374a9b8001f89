"""From Avro's JSON encoding to its binary one, as the specification has them: what REST takes for an AVRO schema."""

from __future__ import annotations

import struct

from magnetar.admin.values.json_document import excerpt
from magnetar.model.errors import InvalidValueError
from magnetar.model.policies import Json
from magnetar.schema_definitions.avro_numbers import put_long
from magnetar.schema_definitions.avro_types import (
    AvroArray,
    AvroEnum,
    AvroFixed,
    AvroMap,
    AvroRecord,
    AvroSchema,
    AvroUnion,
)

_LIMITS = {"int": 1 << 31, "long": 1 << 63}
_FLOATS = {"float": "<f", "double": "<d"}


def to_binary(schema: AvroSchema, value: Json) -> bytes:
    """Encode a datum. Raises InvalidValueError, which names the place."""
    out = bytearray()
    _write(schema, value, out, "$")
    return bytes(out)


def _write(schema: AvroSchema, value: Json, out: bytearray, path: str) -> None:
    if isinstance(schema, AvroUnion):
        _union(schema, value, out, path)
    elif isinstance(schema, AvroRecord):
        if not isinstance(value, dict):
            raise _wrong(value, schema.name, path)
        for one in schema.fields:
            if one.name not in value:
                raise InvalidValueError(f"{path}.{one.name} is missing")
            _write(one.type, value[one.name], out, f"{path}.{one.name}")
    elif isinstance(schema, AvroArray):
        if not isinstance(value, list):
            raise _wrong(value, "array", path)
        put_long(out, len(value))
        for number, item in enumerate(value):
            _write(schema.items, item, out, f"{path}[{number}]")
        if value:
            out.append(0)
    elif isinstance(schema, AvroMap):
        if not isinstance(value, dict):
            raise _wrong(value, "map", path)
        put_long(out, len(value))
        for name, item in value.items():
            _bytes(name.encode(), out)
            _write(schema.values, item, out, f"{path}.{name}")
        if value:
            out.append(0)
    elif isinstance(schema, AvroEnum):
        if value not in schema.symbols:
            raise _wrong(value, schema.name, path)
        put_long(out, schema.symbols.index(str(value)))
    elif isinstance(schema, AvroFixed):
        data = _latin(value, schema.name, path)
        if len(data) != schema.size:
            raise InvalidValueError(f"{path}: {schema.name} has {schema.size} bytes, not {len(data)}")
        out += data
    else:
        _primitive(schema.kind, value, out, path)


def _primitive(kind: str, value: Json, out: bytearray, path: str) -> None:
    if kind == "null" and value is None:
        return
    if kind == "boolean" and isinstance(value, bool):
        out.append(value)
    elif kind in _LIMITS and isinstance(value, int) and not isinstance(value, bool):
        if not -_LIMITS[kind] <= value < _LIMITS[kind]:
            raise _wrong(value, kind, path)
        put_long(out, value)
    elif kind in _FLOATS and isinstance(value, int | float) and not isinstance(value, bool):
        try:
            out += struct.pack(_FLOATS[kind], value)
        except OverflowError:
            raise _wrong(value, kind, path) from None
    elif kind == "string" and isinstance(value, str):
        _bytes(value.encode(), out)
    elif kind == "bytes":
        _bytes(_latin(value, kind, path), out)
    else:
        raise _wrong(value, kind, path)


def _union(schema: AvroUnion, value: Json, out: bytearray, path: str) -> None:
    """A branch other than null stands in an object under its name."""
    name, inner = "null", value
    if isinstance(value, dict) and len(value) == 1:
        ((name, inner),) = value.items()
    elif value is not None:
        raise InvalidValueError(f'{path}: a union takes null or {{"<type>": value}}, not {excerpt(value)}')
    for number, branch in enumerate(schema.branches):
        if name == getattr(branch, "name", branch.kind):
            put_long(out, number)
            _write(branch, inner, out, path)
            return
    raise InvalidValueError(f"{path}: the union has no branch {name[:80]}")


def _latin(value: Json, kind: str, path: str) -> bytes:
    if not isinstance(value, str):
        raise _wrong(value, kind, path)
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        raise _wrong(value, kind, path) from None


def _bytes(data: bytes, out: bytearray) -> None:
    put_long(out, len(data))
    out += data


def _wrong(value: Json, kind: str, path: str) -> InvalidValueError:
    return InvalidValueError(f"{path}: {excerpt(value)} is no {kind}")
