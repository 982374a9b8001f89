"""The tree of an Avro schema. Named types are shared, so the tree may have cycles; nodes compare by identity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})

_SHOWN: Final = 20
"""Branches of a union in the text of an error."""

Props: TypeAlias = Mapping[str, Any]
"""Attributes without a meaning to Avro itself, logicalType and its like included."""


@dataclass(eq=False, slots=True)
class AvroPrimitive:
    kind: str
    props: Props = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class AvroArray:
    items: AvroSchema
    props: Props = field(default_factory=dict)
    kind: str = "array"


@dataclass(eq=False, slots=True)
class AvroMap:
    values: AvroSchema
    props: Props = field(default_factory=dict)
    kind: str = "map"


@dataclass(eq=False, slots=True)
class AvroUnion:
    branches: list[AvroSchema]
    kind: str = "union"


@dataclass(eq=False, slots=True)
class AvroEnum:
    name: str
    """The full name, with its namespace, as of all named types."""
    symbols: list[str]
    default: str | None
    aliases: tuple[str, ...] = ()
    props: Props = field(default_factory=dict)
    kind: str = "enum"


@dataclass(eq=False, slots=True)
class AvroFixed:
    name: str
    size: int
    aliases: tuple[str, ...] = ()
    props: Props = field(default_factory=dict)
    kind: str = "fixed"


@dataclass(eq=False, slots=True)
class AvroField:
    name: str
    type: AvroSchema
    has_default: bool
    default: Any
    order: str
    aliases: tuple[str, ...] = ()
    props: Props = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class AvroRecord:
    name: str
    fields: list[AvroField]
    aliases: tuple[str, ...] = ()
    props: Props = field(default_factory=dict)
    kind: str = "record"


AvroSchema: TypeAlias = "AvroPrimitive | AvroArray | AvroMap | AvroUnion | AvroEnum | AvroFixed | AvroRecord"


def short_name(name: str) -> str:
    """Return the name without its namespace."""
    return name.rpartition(".")[2]


def describe(schema: AvroSchema) -> str:
    """Name a type in one or two words, for error texts."""
    if isinstance(schema, AvroEnum | AvroFixed | AvroRecord):
        return f"{schema.kind} {schema.name}"
    if isinstance(schema, AvroUnion):
        shown = [describe(branch) for branch in schema.branches[:_SHOWN]]
        more = len(schema.branches) - len(shown)
        return "union of " + ", ".join([*shown, f"{more} more"] if more else shown) if shown else "empty union"
    return schema.kind
