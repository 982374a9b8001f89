"""JSON to Avro's binary form, as ``pulsar-client produce -vs avro:…`` does it: by Avro's own JSON encoding.

A value of a union other than null is written as an object with the name of its branch, ``{"string": "x"}``; the plain
value is taken too, where only one branch can have it. Bytes and fixed are text of the characters 0 to 255.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from magnetar.model.errors import InvalidValueError

_PRIMITIVES: Final = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}


def avro_bytes(definition: str, text: str) -> bytes:
    """Return the value that ``text`` says in JSON. Raises InvalidValueError with the place in it."""
    try:
        schema, value = json.loads(definition), json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidValueError(f"an Avro schema and its values are JSON: {error}") from None
    out = bytearray()
    _Writer(out).write(schema, value, "value")
    return bytes(out)


class _Writer:
    def __init__(self, out: bytearray) -> None:
        self._out = out
        self._named: dict[str, Any] = {}

    def write(self, schema: Any, value: Any, where: str) -> None:
        if isinstance(schema, list):
            self._union(schema, value, where)
            return
        kind = schema["type"] if isinstance(schema, dict) else schema
        if isinstance(kind, dict | list):
            self.write(kind, value, where)
        elif kind in _PRIMITIVES:
            self._primitive(kind, value, where)
        elif isinstance(schema, str):
            if schema not in self._named:
                raise InvalidValueError(f"{where}: there is no type {schema!r}")
            self.write(self._named[schema], value, where)
        elif kind in _COMPLEX:
            if "name" in schema:
                self._named[schema["name"]] = schema
                self._named[f"{schema.get('namespace', '')}.{schema['name']}"] = schema
            _COMPLEX[kind](self, schema, value, where)
        else:
            raise InvalidValueError(f"{where}: {kind!r} is no type of Avro")

    def _number(self, value: int) -> None:
        zigzag = (value << 1) ^ (value >> 63)
        while zigzag > 127:
            self._out.append(zigzag & 127 | 128)
            zigzag >>= 7
        self._out.append(zigzag)

    def _raw(self, data: bytes) -> None:
        self._number(len(data))
        self._out += data

    def _primitive(self, kind: str, value: Any, where: str) -> None:
        if not _fits(kind, value):
            raise InvalidValueError(f"{where}: {json.dumps(value)[:60]} is no {kind}")
        if kind == "boolean":
            self._out.append(value)
        elif kind in ("int", "long"):
            self._number(value)
        elif kind == "float":
            self._out += struct.pack("<f", value)
        elif kind == "double":
            self._out += struct.pack("<d", value)
        elif kind == "bytes":
            self._raw(_characters(value, where))
        elif kind == "string":
            self._raw(value.encode())

    def _union(self, branches: list[Any], value: Any, where: str) -> None:
        names = [_name(branch) for branch in branches]
        if isinstance(value, Mapping) and len(value) == 1 and next(iter(value)) in names:
            ((name, inner),) = value.items()
            number = names.index(name)
        else:
            fitting = [number for number, name in enumerate(names) if _fits(name, value)]
            if len(fitting) != 1:
                raise InvalidValueError(f'{where}: write {{"TYPE": …}} with one of {", ".join(names)}')
            number, inner = fitting[0], value
        self._number(number)
        self.write(branches[number], inner, where)

    def record(self, schema: Any, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise InvalidValueError(f"{where}: a record is a JSON object")
        names = {field["name"] for field in schema["fields"]}
        if unknown := value.keys() - names:
            raise InvalidValueError(f"{where}: the schema has no field {', '.join(sorted(unknown))}")
        for field in schema["fields"]:
            name = field["name"]
            if name not in value and "default" not in field:
                raise InvalidValueError(f"{where}.{name} is missing and has no default")
            self.write(field["type"], value[name] if name in value else field["default"], f"{where}.{name}")

    def array(self, schema: Any, value: Any, where: str) -> None:
        if not isinstance(value, list):
            raise InvalidValueError(f"{where}: an array is a JSON array")
        if value:
            self._number(len(value))
            for number, item in enumerate(value):
                self.write(schema["items"], item, f"{where}[{number}]")
        self._number(0)

    def map(self, schema: Any, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise InvalidValueError(f"{where}: a map is a JSON object")
        if value:
            self._number(len(value))
            for name, item in value.items():
                self._raw(name.encode())
                self.write(schema["values"], item, f"{where}.{name}")
        self._number(0)

    def enum(self, schema: Any, value: Any, where: str) -> None:
        if value not in schema["symbols"]:
            raise InvalidValueError(f"{where}: {value!r} is none of {', '.join(schema['symbols'])}")
        self._number(schema["symbols"].index(value))

    def fixed(self, schema: Any, value: Any, where: str) -> None:
        data = _characters(value, where)
        if len(data) != schema["size"]:
            raise InvalidValueError(f"{where}: {len(data)} bytes where {schema['size']} are fixed")
        self._out += data


_COMPLEX: Final[dict[str, Callable[[_Writer, Any, Any, str], None]]] = {
    "record": _Writer.record,
    "array": _Writer.array,
    "map": _Writer.map,
    "enum": _Writer.enum,
    "fixed": _Writer.fixed,
}


def _name(schema: Any) -> str:
    if isinstance(schema, dict):
        return str(schema.get("name", schema["type"]))
    return str(schema)


def _characters(value: Any, where: str) -> bytes:
    try:
        return str(value).encode("latin-1")
    except UnicodeEncodeError:
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
        case "bytes" | "string":
            return isinstance(value, str)
        case _:
            return isinstance(value, dict | list)
