"""The tree of an Avro schema. Named types are shared, so the tree may have cycles; nodes compare by identity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})

Props: TypeAlias = Mapping[str, Any]
"""Attributes without a meaning to Avro itself, logicalType and its like included."""


@dataclass(eq=False, slots=True)
class Primitive:
    kind: str
    props: Props = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Array:
    items: Schema
    props: Props = field(default_factory=dict)
    kind: str = "array"


@dataclass(eq=False, slots=True)
class Map:
    values: Schema
    props: Props = field(default_factory=dict)
    kind: str = "map"


@dataclass(eq=False, slots=True)
class Union:
    branches: list[Schema]
    kind: str = "union"


@dataclass(eq=False, slots=True)
class Enum:
    name: str
    """With its namespace, as the names of all named types."""
    symbols: list[str]
    default: str | None
    aliases: tuple[str, ...] = ()
    props: Props = field(default_factory=dict)
    kind: str = "enum"


@dataclass(eq=False, slots=True)
class Fixed:
    name: str
    size: int
    aliases: tuple[str, ...] = ()
    props: Props = field(default_factory=dict)
    kind: str = "fixed"


@dataclass(eq=False, slots=True)
class Field:
    name: str
    type: Schema
    has_default: bool
    default: Any
    order: str
    aliases: tuple[str, ...] = ()
    props: Props = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Record:
    name: str
    fields: list[Field]
    aliases: tuple[str, ...] = ()
    props: Props = field(default_factory=dict)
    kind: str = "record"


Schema: TypeAlias = "Primitive | Array | Map | Union | Enum | Fixed | Record"


def short_name(name: str) -> str:
    """Without its namespace."""
    return name.rpartition(".")[2]


def describe(schema: Schema) -> str:
    """A type in one or two words, for people."""
    if isinstance(schema, Enum | Fixed | Record):
        return f"{schema.kind} {schema.name}"
    if isinstance(schema, Union):
        return "union of " + ", ".join(map(describe, schema.branches)) if schema.branches else "empty union"
    return schema.kind
