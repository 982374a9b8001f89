"""Whether a reader with one Avro schema can read what a writer with another wrote, and if not: where and why.

The rules are those that Apache Pulsar 4.0.8 applies (Apache Avro's grammar of resolution), observed pair by pair and
kept in tests/unit/schema/resolution.json. Against the letter of Avro's specification they are

- stricter: every branch of a writer's union must be readable, not only the one that was written;
- laxer: records of different names match, and an enum may lose symbols (a value that was written with a lost symbol
  is then an error for whoever reads it).

A pair of records that refers to itself is readable unless something else in it is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from magnetar.schema.avro_defaults import misfit
from magnetar.schema.avro_types import (
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Primitive,
    Record,
    Schema,
    Union,
    describe,
    short_name,
)

_DEPTH_MAX: Final = 150
"""References through named types go deeper than a text is nested."""

_PROMOTIONS: Final[Mapping[str, frozenset[str]]] = {
    "int": frozenset({"long", "float", "double"}),
    "long": frozenset({"float", "double"}),
    "float": frozenset({"double"}),
    "string": frozenset({"bytes"}),
    "bytes": frozenset({"string"}),
}


class Rule(StrEnum):
    """What was broken, in the words of an error."""

    MISSING_DEFAULT = "a field that was not written needs a default"
    BAD_DEFAULT = "the default that replaces a field which was not written must be of its type, in a union of the first"
    TYPE = (
        "a type must stay or be promoted: int to long, float, double; long to float, double; string to and from bytes"
    )
    NAME = "an enum or fixed must keep its name or name the old one as alias"
    SIZE = "a fixed must keep its size"
    ALIAS = "a field with an alias stands for the old field or for the new one, so only one of them may be written"
    BRANCH = "a reader's union needs a branch for every type that may have been written"
    DEPTH = f"no more than {_DEPTH_MAX} types inside each other"


class Problem(NamedTuple):
    """The first thing that cannot be read."""

    path: str
    rule: Rule
    detail: str

    def __str__(self) -> str:
        return f"{self.path}: {self.detail} (rule: {self.rule.value})"


def problem(writer: Schema, reader: Schema) -> Problem | None:
    """None: the reader can read it."""
    return Resolution(reader).resolve(writer, reader, "the schema", 0)


class Resolution:
    """One question. Pairs under way or answered are not asked again; ids are safe, the trees outlive this."""

    def __init__(self, reader: Schema) -> None:
        self._answers: dict[tuple[int, int], Problem | None] = {}
        self._types: dict[str, str] = {}
        self._fields: dict[str, dict[str, str]] = {}
        self._gather(reader)

    def _gather(self, reader: Schema) -> None:
        """The reader's aliases: the writer's names are read as if they were the new ones."""
        seen: set[int] = set()
        waiting = [reader]
        while waiting:
            schema = waiting.pop()
            if id(schema) in seen:
                continue
            seen.add(id(schema))
            if isinstance(schema, Enum | Fixed | Record):
                self._types.update(dict.fromkeys(schema.aliases, schema.name))
            if isinstance(schema, Array):
                waiting.append(schema.items)
            elif isinstance(schema, Map):
                waiting.append(schema.values)
            elif isinstance(schema, Union):
                waiting.extend(schema.branches)
            elif isinstance(schema, Record):
                for field in schema.fields:
                    waiting.append(field.type)
                    for alias in field.aliases:
                        self._fields.setdefault(schema.name, {})[alias] = field.name

    def resolve(self, writer: Schema, reader: Schema, path: str, depth: int) -> Problem | None:
        if depth > _DEPTH_MAX:
            return Problem(path, Rule.DEPTH, "too deep")
        if isinstance(writer, Union):
            return self._union(writer, reader, path, depth)
        if isinstance(reader, Union):
            match = self._branch(writer, reader, path, depth)
            if match is None:
                text = f"{describe(writer)} was written, the reader has {describe(reader)}"
                return Problem(path, Rule.BRANCH, text)
            return self.resolve(writer, match, path, depth + 1)
        if isinstance(writer, Record) and isinstance(reader, Record):
            return self._record(writer, reader, path, depth)
        if isinstance(writer, Array) and isinstance(reader, Array):
            return self.resolve(writer.items, reader.items, f"{path}[]", depth + 1)
        if isinstance(writer, Map) and isinstance(reader, Map):
            return self.resolve(writer.values, reader.values, f"{path}{{}}", depth + 1)
        if isinstance(writer, Enum) and isinstance(reader, Enum):
            return self._same_name(writer, reader, path)
        if isinstance(writer, Fixed) and isinstance(reader, Fixed):
            if writer.size != reader.size and self._same_name(writer, reader, path) is None:
                return Problem(path, Rule.SIZE, f"{writer.size} bytes were written, the reader has {reader.size}")
            return self._same_name(writer, reader, path)
        if isinstance(writer, Primitive) and (
            writer.kind == reader.kind or reader.kind in _PROMOTIONS.get(writer.kind, ())
        ):
            return None
        return Problem(path, Rule.TYPE, f"{describe(writer)} was written, the reader has {describe(reader)}")

    def _union(self, writer: Union, reader: Schema, path: str, depth: int) -> Problem | None:
        for branch, target in zip(writer.branches, self.targets(writer, reader), strict=True):
            found = self.resolve(branch, target, path, depth + 1)
            if found is not None:
                return found
        return None

    def targets(self, writer: Union, reader: Schema) -> list[Schema]:
        """What reads each branch of the writer's union: the branch in its place, or whatever ``reader`` makes of it."""
        if isinstance(reader, Union) and self._equivalent(writer, reader, set()):
            return reader.branches
        return [reader] * len(writer.branches)

    def branch(self, writer: Schema, reader: Union) -> Schema | None:
        """The branch of the reader's union that reads what is no union."""
        return self._branch(writer, reader, "", 0)

    def written(self, writer: Record, reader: Record) -> list[tuple[Field, Field | None]]:
        """Each field of the writer, in order, and the reader's that takes it."""
        renamed = self._fields.get(self._name(writer), {})
        wanted = {field.name: field for field in reader.fields}
        return [(field, wanted.get(renamed.get(field.name, field.name))) for field in writer.fields]

    def _equivalent(self, writer: Schema, reader: Schema, seen: set[tuple[int, int]]) -> bool:
        """Whether two unions match branch by branch; namespaces do not matter then, as they do in ``_branch``."""
        if len(seen) > _DEPTH_MAX:
            return False
        if isinstance(writer, Union) and isinstance(reader, Union):
            return len(writer.branches) == len(reader.branches) and all(
                self._equivalent(one, other, seen) for one, other in zip(writer.branches, reader.branches, strict=True)
            )
        if isinstance(writer, Array) and isinstance(reader, Array):
            return self._equivalent(writer.items, reader.items, seen)
        if isinstance(writer, Map) and isinstance(reader, Map):
            return self._equivalent(writer.values, reader.values, seen)
        if (
            isinstance(writer, Enum | Fixed | Record)
            and isinstance(reader, Enum | Fixed | Record)
            and (writer.kind != reader.kind or short_name(self._name(writer)) != short_name(reader.name))
        ):
            return False
        if isinstance(writer, Enum) and isinstance(reader, Enum):
            return writer.symbols == reader.symbols
        if isinstance(writer, Fixed) and isinstance(reader, Fixed):
            return writer.size == reader.size
        if isinstance(writer, Record) and isinstance(reader, Record):
            key = (id(writer), id(reader))
            if key in seen:
                return True
            seen.add(key)
            return len(writer.fields) == len(reader.fields) and all(
                self._equivalent(one.type, other.type, seen)
                for one, other in zip(writer.fields, reader.fields, strict=True)
            )
        return writer.kind == reader.kind

    def _same_name(self, writer: Enum | Fixed, reader: Enum | Fixed, path: str) -> Problem | None:
        # namespaces may change, as in Avro's own resolution
        if short_name(self._name(writer)) == short_name(reader.name):
            return None
        return Problem(path, Rule.NAME, f"{describe(writer)} was written, the reader has {describe(reader)}")

    def _name(self, writer: Enum | Fixed | Record) -> str:
        return self._types.get(writer.name, writer.name)

    def _record(self, writer: Record, reader: Record, path: str, depth: int) -> Problem | None:
        key = (id(writer), id(reader))
        if key in self._answers:
            return self._answers[key]
        self._answers[key] = None
        found = self._answers[key] = self._fields_problem(writer, reader, path, depth)
        return found

    def _fields_problem(self, writer: Record, reader: Record, path: str, depth: int) -> Problem | None:
        renamed = self._fields.get(self._name(writer), {})
        written = {renamed.get(field.name, field.name): field for field in writer.fields}
        if len(written) < len(writer.fields):
            return Problem(path, Rule.ALIAS, f"fields of {describe(reader)} stand for two fields of {describe(writer)}")
        for field in reader.fields:
            place = f"field {field.name}" if path == "the schema" else f"{path}.{field.name}"
            before = written.get(field.name)
            if before is not None:
                found = self.resolve(before.type, field.type, place, depth + 1)
            else:
                found = _without(field, place)
            if found is not None:
                return found
        return None

    def _branch(self, writer: Schema, reader: Union, path: str, depth: int) -> Schema | None:
        """The first of the same type and name, then a record that matches by its fields, then a promotion."""
        by_structure: Schema | None = None
        for branch in reader.branches:
            if branch.kind != writer.kind:
                continue
            if not isinstance(writer, Record | Enum | Fixed) or not isinstance(branch, Record | Enum | Fixed):
                return branch
            if self._name(writer) == branch.name:
                return branch
            if isinstance(writer, Record) and isinstance(branch, Record):
                same = short_name(self._name(writer)) == short_name(branch.name)
                if (by_structure is None or same) and self._record(writer, branch, path, depth + 1) is None:
                    by_structure = branch
        if by_structure is not None:
            return by_structure
        promoted = _PROMOTIONS.get(writer.kind, frozenset())
        return next((branch for branch in reader.branches if branch.kind in promoted), None)


def _without(field: Field, place: str) -> Problem | None:
    if not field.has_default:
        return Problem(place, Rule.MISSING_DEFAULT, "was not written and the reader has no default for it")
    wrong = misfit(field.default, field.type)
    return None if wrong is None else Problem(place, Rule.BAD_DEFAULT, wrong)
