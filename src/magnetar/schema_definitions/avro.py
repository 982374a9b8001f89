"""Parses the JSON text of an Avro schema into its tree, as strict as Apache Avro 1.11 is.

Default values are kept and not checked here: Pulsar admits a default that does not fit its type until a reader needs
it (:mod:`magnetar.schema_definitions.avro_resolution`). Errors name the place as a path of fields.
"""

from __future__ import annotations

import json
from typing import Any, Final

from magnetar.schema_definitions.avro_types import (
    PRIMITIVES,
    AvroArray,
    AvroEnum,
    AvroField,
    AvroFixed,
    AvroMap,
    AvroPrimitive,
    AvroRecord,
    AvroSchema,
    AvroUnion,
    short_name,
)

DEPTH_MAX: Final = 100
"""Types inside types. Python's own stack is the reason for a limit; no real schema is near it."""

_NAMED: Final = {"type", "name", "namespace", "aliases", "doc"}
_RESERVED: Final = {
    "record": _NAMED | {"fields"},
    "error": _NAMED | {"fields"},
    "enum": _NAMED | {"symbols", "default"},
    "fixed": _NAMED | {"size"},
    "array": {"type", "items"},
    "map": {"type", "values"},
}
_FIELD: Final = frozenset({"name", "type", "doc", "default", "order", "aliases"})
_ORDERS: Final = frozenset({"ascending", "descending", "ignore"})


class AvroSchemaError(ValueError):
    """The text is no schema; the message says what is wrong and where."""


def parse(data: bytes) -> AvroSchema:
    """Parse the text of a schema. Raises AvroSchemaError."""
    try:
        document = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise AvroSchemaError(f"not JSON: {error}") from None
    return parse_document(document)


def parse_document(document: Any) -> AvroSchema:
    """Parse a schema from JSON that was read already. Raises AvroSchemaError."""
    return _Parser().schema(document, "", "the schema", 0)


class _Parser:
    """One text: its named types so far."""

    def __init__(self) -> None:
        self._named: dict[str, AvroSchema] = {}

    def schema(self, node: Any, namespace: str, path: str, depth: int) -> AvroSchema:
        if depth > DEPTH_MAX:
            raise AvroSchemaError(f"{path}: more than {DEPTH_MAX} types inside each other")
        if isinstance(node, str):
            return self._by_name(node, namespace, path)
        if isinstance(node, list):
            return self._union(node, namespace, path, depth)
        if not isinstance(node, dict):
            raise AvroSchemaError(f"{path}: a type is a name, an object or a list, not {_shown(node)}")
        kind = node.get("type")
        if not isinstance(kind, str):
            raise AvroSchemaError(f'{path}: no "type" that is a name')
        if kind in PRIMITIVES:
            return AvroPrimitive(kind, _props(node, {"type"}))
        if kind in ("record", "error"):
            return self._record(node, namespace, path, depth)
        if kind == "enum":
            return self._enum(node, namespace, path)
        if kind == "fixed":
            return self._fixed(node, namespace, path)
        if kind == "array":
            props = _props(node, _RESERVED["array"])
            return AvroArray(self.schema(_needed(node, "items", path), namespace, f"{path}[]", depth + 1), props)
        if kind == "map":
            props = _props(node, _RESERVED["map"])
            return AvroMap(self.schema(_needed(node, "values", path), namespace, f"{path}{{}}", depth + 1), props)
        return self._by_name(kind, namespace, path)

    def _by_name(self, name: str, namespace: str, path: str) -> AvroSchema:
        if name in PRIMITIVES:
            return AvroPrimitive(name)
        found = self._named.get(_full(name, namespace)) or self._named.get(name)
        if found is None:
            raise AvroSchemaError(f"{path}: {_shown(name)} is not a type, nor the name of one defined before")
        return found

    def _union(self, node: list[Any], namespace: str, path: str, depth: int) -> AvroUnion:
        branches: list[AvroSchema] = []
        seen = set()
        for index, item in enumerate(node):
            branch = self.schema(item, namespace, f"{path}[{index}]", depth + 1)
            if isinstance(branch, AvroUnion):
                raise AvroSchemaError(f"{path}: a union directly inside a union")
            key = branch.name if isinstance(branch, AvroRecord | AvroEnum | AvroFixed) else branch.kind
            if key in seen:
                raise AvroSchemaError(f"{path}: {key} twice in a union")
            seen.add(key)
            branches.append(branch)
        return AvroUnion(branches)

    def _define(self, node: dict[str, Any], namespace: str, path: str) -> tuple[str, tuple[str, ...]]:
        name = node.get("name")
        if not isinstance(name, str):
            raise AvroSchemaError(f'{path}: a {node["type"]} needs a "name"')
        given = node.get("namespace")
        full = _full(name, given if isinstance(given, str) else namespace)
        _check_name(short_name(full), path)
        if full in PRIMITIVES:
            raise AvroSchemaError(f"{path}: {full} is the name of a type of Avro's own")
        if full in self._named:
            raise AvroSchemaError(f"{path}: {full} is defined twice")
        return full, tuple(_full(alias, full.rpartition(".")[0]) for alias in _aliases(node, path))

    def _record(self, node: dict[str, Any], namespace: str, path: str, depth: int) -> AvroRecord:
        name, aliases = self._define(node, namespace, path)
        record = AvroRecord(name, [], aliases, _props(node, _RESERVED["record"]))
        self._named[name] = record
        fields = node.get("fields")
        if not isinstance(fields, list):
            raise AvroSchemaError(f"{path}: record {name} has no fields")
        seen = set()
        for item in fields:
            field = self._field(item, name, name.rpartition(".")[0], depth)
            if field.name in seen:
                raise AvroSchemaError(f"field {name}.{field.name}: defined twice")
            seen.add(field.name)
            record.fields.append(field)
        return record

    def _field(self, node: Any, record: str, namespace: str, depth: int) -> AvroField:
        name = node.get("name") if isinstance(node, dict) else None
        if not isinstance(name, str):
            raise AvroSchemaError(f'record {record}: a field is an object with a "name", not {_shown(node)}')
        path = f"field {record}.{name}"
        _check_name(name, path)
        if "type" not in node:
            raise AvroSchemaError(f"{path}: no type")
        order = node.get("order", "ascending")
        if not isinstance(order, str) or order.lower() not in _ORDERS:
            raise AvroSchemaError(f"{path}: order {_shown(order)} is none of {', '.join(sorted(_ORDERS))}")
        kind = self.schema(node["type"], namespace, path, depth + 1)
        return AvroField(
            name,
            kind,
            "default" in node,
            _default(node.get("default"), kind, path),
            order.lower(),
            tuple(_aliases(node, path)),
            _props(node, _FIELD),
        )

    def _enum(self, node: dict[str, Any], namespace: str, path: str) -> AvroEnum:
        name, aliases = self._define(node, namespace, path)
        symbols = node.get("symbols")
        if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
            raise AvroSchemaError(f"{path}: enum {name} has no list of symbols")
        for symbol in symbols:
            _check_name(symbol, f"{path}: symbol of {name}")
        if len(set(symbols)) < len(symbols):
            raise AvroSchemaError(f"{path}: a symbol of enum {name} stands twice")
        default = node.get("default")
        if default is not None and default not in symbols:
            raise AvroSchemaError(f"{path}: default {_shown(default)} of enum {name} is not one of its symbols")
        self._named[name] = found = AvroEnum(name, symbols, default, aliases, _props(node, _RESERVED["enum"]))
        return found

    def _fixed(self, node: dict[str, Any], namespace: str, path: str) -> AvroFixed:
        name, aliases = self._define(node, namespace, path)
        size = node.get("size")
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:
            raise AvroSchemaError(f"{path}: fixed {name} has no size")
        self._named[name] = found = AvroFixed(name, size, aliases, _props(node, _RESERVED["fixed"]))
        return found


def _default(value: Any, kind: AvroSchema, path: str) -> Any:
    """Return a default; a number may be given as text where a float or double is wanted."""
    if isinstance(value, str) and kind.kind in ("float", "double"):
        try:
            return float(value)
        except ValueError:
            raise AvroSchemaError(f"{path}: default {_shown(value)} is no number") from None
    return value


def _full(name: str, namespace: str) -> str:
    if "." in name:
        return name.removeprefix(".")
    return f"{namespace}.{name}" if namespace else name


def _check_name(name: str, path: str) -> None:
    # a letter is whatever Unicode calls one, as in Java
    letters = name.replace("_", "a")
    if not (letters[:1].isalpha() and letters.isalnum()):
        raise AvroSchemaError(f"{path}: {_shown(name)} is not a name: letters, digits and _, no digit first")


def _aliases(node: dict[str, Any], path: str) -> list[str]:
    found = node.get("aliases", [])
    if not isinstance(found, list) or not all(isinstance(alias, str) for alias in found):
        raise AvroSchemaError(f"{path}: aliases are a list of names, not {_shown(found)}")
    return found


def _needed(node: dict[str, Any], name: str, path: str) -> Any:
    if name not in node:
        raise AvroSchemaError(f'{path}: a {node["type"]} needs "{name}"')
    return node[name]


def _props(node: dict[str, Any], reserved: set[str] | frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in node.items() if name not in reserved}


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}..."
