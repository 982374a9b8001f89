"""Whether a reader with one Avro schema can read what a writer with another wrote, and if not: where and why.

The rules are those that Apache Pulsar 4.0.8 applies (Apache Avro's grammar of resolution), observed pair by pair and
kept in tests/unit/schema_definitions/resolution.json. Against the letter of Avro's specification they are

- stricter: every branch of a writer's union must be readable, not only the one that was written;
- laxer: records of different names match, and an enum may lose symbols (a value that was written with a lost symbol
  is then an error for its reader).

A pair of records that refers to itself is readable unless something else in it is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

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
    short_name,
)

_DEPTH_MAX: Final = 150
"""References through named types go deeper than a text is nested."""

_WORK_MAX: Final = 1_000_000
"""Pairs of types that one question may compare: two unions of thousands of records each are millions."""

_PROMOTIONS: Final[Mapping[str, frozenset[str]]] = {
    "int": frozenset({"long", "float", "double"}),
    "long": frozenset({"float", "double"}),
    "float": frozenset({"double"}),
    "string": frozenset({"bytes"}),
    "bytes": frozenset({"string"}),
}


class ResolutionRule(StrEnum):
    """The rule that was broken, in the words of an error."""

    MISSING_DEFAULT = "a field that was not written needs a default"
    BAD_DEFAULT = "the default that replaces a field which was not written must be of its type, in a union of the first"
    TYPE = (
        "a type must stay or be promoted: int to long, float, double; long to float, double; string to and from bytes"
    )
    NAME = "an enum or fixed must keep its name or name the old one as alias"
    SIZE = "a fixed must keep its size"
    ALIAS = "a field with an alias stands for the old field or for the new one, so only one of them may be written"
    BRANCH = "a reader's union needs a branch for every type that may have been written"
    WORK = f"no more than {_WORK_MAX:,} pairs of types are compared"
    DEPTH = f"no more than {_DEPTH_MAX} types inside each other"


class Incompatibility(NamedTuple):
    """The first thing that the reader cannot read."""

    path: str
    rule: ResolutionRule
    detail: str

    def __str__(self) -> str:
        return f"{self.path}: {self.detail} (rule: {self.rule.value})"


def incompatibility(writer: AvroSchema, reader: AvroSchema) -> Incompatibility | None:
    """Find what the reader cannot read of the writer's schema; None if it can read it."""
    return Resolution(reader).resolve(writer, reader, "the schema", 0)


class Resolution:
    """One question. Pairs under way or answered are not asked again; ids are safe, the trees outlive this."""

    def __init__(self, reader: AvroSchema) -> None:
        self._answers: dict[tuple[int, int], Incompatibility | None] = {}
        self._types: dict[str, str] = {}
        self._fields: dict[str, dict[str, str]] = {}
        self._names: dict[int, dict[tuple[str, str], AvroSchema]] = {}
        self._work = 0
        self._gather(reader)

    def _gather(self, reader: AvroSchema) -> None:
        """Collect the reader's aliases: the writer's names are read as if they were the new ones."""
        seen: set[int] = set()
        waiting = [reader]
        while waiting:
            schema = waiting.pop()
            if id(schema) in seen:
                continue
            seen.add(id(schema))
            if isinstance(schema, AvroEnum | AvroFixed | AvroRecord):
                self._types.update(dict.fromkeys(schema.aliases, schema.name))
            if isinstance(schema, AvroArray):
                waiting.append(schema.items)
            elif isinstance(schema, AvroMap):
                waiting.append(schema.values)
            elif isinstance(schema, AvroUnion):
                waiting.extend(schema.branches)
            elif isinstance(schema, AvroRecord):
                for field in schema.fields:
                    waiting.append(field.type)
                    for alias in field.aliases:
                        self._fields.setdefault(schema.name, {})[alias] = field.name

    def resolve(self, writer: AvroSchema, reader: AvroSchema, path: str, depth: int) -> Incompatibility | None:
        if depth > _DEPTH_MAX:
            return Incompatibility(path, ResolutionRule.DEPTH, "too deep")
        self._work += 1
        if self._work > _WORK_MAX:
            return _too_much(path)
        if isinstance(writer, AvroUnion):
            return self._union(writer, reader, path, depth)
        if isinstance(reader, AvroUnion):
            match = self._branch(writer, reader, path, depth)
            if match is None and self._work > _WORK_MAX:
                return _too_much(path)
            if match is None:
                text = f"{describe(writer)} was written, the reader has {describe(reader)}"
                return Incompatibility(path, ResolutionRule.BRANCH, text)
            return self.resolve(writer, match, path, depth + 1)
        if isinstance(writer, AvroRecord) and isinstance(reader, AvroRecord):
            return self._record(writer, reader, path, depth)
        if isinstance(writer, AvroArray) and isinstance(reader, AvroArray):
            return self.resolve(writer.items, reader.items, f"{path}[]", depth + 1)
        if isinstance(writer, AvroMap) and isinstance(reader, AvroMap):
            return self.resolve(writer.values, reader.values, f"{path}{{}}", depth + 1)
        if isinstance(writer, AvroEnum) and isinstance(reader, AvroEnum):
            return self._same_name(writer, reader, path)
        if isinstance(writer, AvroFixed) and isinstance(reader, AvroFixed):
            if writer.size != reader.size and self._same_name(writer, reader, path) is None:
                return Incompatibility(
                    path, ResolutionRule.SIZE, f"{writer.size} bytes were written, the reader has {reader.size}"
                )
            return self._same_name(writer, reader, path)
        if isinstance(writer, AvroPrimitive) and (
            writer.kind == reader.kind or reader.kind in _PROMOTIONS.get(writer.kind, ())
        ):
            return None
        return Incompatibility(
            path, ResolutionRule.TYPE, f"{describe(writer)} was written, the reader has {describe(reader)}"
        )

    def _union(self, writer: AvroUnion, reader: AvroSchema, path: str, depth: int) -> Incompatibility | None:
        for branch, target in zip(writer.branches, self.targets(writer, reader), strict=True):
            found = self.resolve(branch, target, path, depth + 1)
            if found is not None:
                return found
        return None

    def targets(self, writer: AvroUnion, reader: AvroSchema) -> list[AvroSchema]:
        """Return what reads each branch of the writer's union: the branch in its place, or all of ``reader``."""
        if isinstance(reader, AvroUnion) and self._equivalent(writer, reader, set()):
            return reader.branches
        return [reader] * len(writer.branches)

    def branch(self, writer: AvroSchema, reader: AvroUnion) -> AvroSchema | None:
        """Return the branch of the reader's union that reads what is no union."""
        return self._branch(writer, reader, "", 0)

    def written(self, writer: AvroRecord, reader: AvroRecord) -> list[tuple[AvroField, AvroField | None]]:
        """Return each field of the writer, in order, and the reader's that takes it."""
        renamed = self._fields.get(self._name(writer), {})
        wanted = {field.name: field for field in reader.fields}
        return [(field, wanted.get(renamed.get(field.name, field.name))) for field in writer.fields]

    def _equivalent(self, writer: AvroSchema, reader: AvroSchema, seen: set[tuple[int, int]]) -> bool:
        """Whether two unions match branch by branch; namespaces do not matter then, as they do in ``_branch``."""
        if len(seen) > _DEPTH_MAX:
            return False
        if isinstance(writer, AvroUnion) and isinstance(reader, AvroUnion):
            return len(writer.branches) == len(reader.branches) and all(
                self._equivalent(one, other, seen) for one, other in zip(writer.branches, reader.branches, strict=True)
            )
        if isinstance(writer, AvroArray) and isinstance(reader, AvroArray):
            return self._equivalent(writer.items, reader.items, seen)
        if isinstance(writer, AvroMap) and isinstance(reader, AvroMap):
            return self._equivalent(writer.values, reader.values, seen)
        if (
            isinstance(writer, AvroEnum | AvroFixed | AvroRecord)
            and isinstance(reader, AvroEnum | AvroFixed | AvroRecord)
            and (writer.kind != reader.kind or short_name(self._name(writer)) != short_name(reader.name))
        ):
            return False
        if isinstance(writer, AvroEnum) and isinstance(reader, AvroEnum):
            return writer.symbols == reader.symbols
        if isinstance(writer, AvroFixed) and isinstance(reader, AvroFixed):
            return writer.size == reader.size
        if isinstance(writer, AvroRecord) and isinstance(reader, AvroRecord):
            key = (id(writer), id(reader))
            if key in seen:
                return True
            seen.add(key)
            return len(writer.fields) == len(reader.fields) and all(
                self._equivalent(one.type, other.type, seen)
                for one, other in zip(writer.fields, reader.fields, strict=True)
            )
        return writer.kind == reader.kind

    def _same_name(
        self, writer: AvroEnum | AvroFixed, reader: AvroEnum | AvroFixed, path: str
    ) -> Incompatibility | None:
        # namespaces may change, as in Avro's own resolution
        if short_name(self._name(writer)) == short_name(reader.name):
            return None
        return Incompatibility(
            path, ResolutionRule.NAME, f"{describe(writer)} was written, the reader has {describe(reader)}"
        )

    def _name(self, writer: AvroEnum | AvroFixed | AvroRecord) -> str:
        return self._types.get(writer.name, writer.name)

    def _record(self, writer: AvroRecord, reader: AvroRecord, path: str, depth: int) -> Incompatibility | None:
        key = (id(writer), id(reader))
        if key in self._answers:
            return self._answers[key]
        self._answers[key] = None
        found = self._answers[key] = self._fields_problem(writer, reader, path, depth)
        return found

    def _fields_problem(self, writer: AvroRecord, reader: AvroRecord, path: str, depth: int) -> Incompatibility | None:
        renamed = self._fields.get(self._name(writer), {})
        written = {renamed.get(field.name, field.name): field for field in writer.fields}
        if len(written) < len(writer.fields):
            return Incompatibility(
                path, ResolutionRule.ALIAS, f"fields of {describe(reader)} stand for two fields of {describe(writer)}"
            )
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

    def _names_of(self, union: AvroUnion) -> dict[tuple[str, str], AvroSchema]:
        """Its named branches."""
        found = self._names.get(id(union))
        if found is None:
            found = self._names[id(union)] = {
                (branch.kind, branch.name): branch
                for branch in union.branches
                if isinstance(branch, AvroRecord | AvroEnum | AvroFixed)
            }
        return found

    def _branch(self, writer: AvroSchema, reader: AvroUnion, path: str, depth: int) -> AvroSchema | None:
        """Find the first branch of the same type and name, else a record that matches by fields, else a promotion."""
        if isinstance(writer, AvroRecord | AvroEnum | AvroFixed):
            named = self._names_of(reader).get((writer.kind, self._name(writer)))
            if named is not None:
                return named
        by_structure: AvroSchema | None = None
        for branch in reader.branches:
            self._work += 1
            if self._work > _WORK_MAX:
                return None
            if branch.kind != writer.kind:
                continue
            if not isinstance(writer, AvroRecord | AvroEnum | AvroFixed) or not isinstance(
                branch, AvroRecord | AvroEnum | AvroFixed
            ):
                return branch
            if isinstance(writer, AvroRecord) and isinstance(branch, AvroRecord):
                same = short_name(self._name(writer)) == short_name(branch.name)
                if (by_structure is None or same) and self._record(writer, branch, path, depth + 1) is None:
                    by_structure = branch
        if by_structure is not None:
            return by_structure
        promoted = _PROMOTIONS.get(writer.kind, frozenset())
        return next((branch for branch in reader.branches if branch.kind in promoted), None)


def _too_much(path: str) -> Incompatibility:
    return Incompatibility(path, ResolutionRule.WORK, "there is too much to compare")


def _without(field: AvroField, place: str) -> Incompatibility | None:
    if not field.has_default:
        return Incompatibility(
            place, ResolutionRule.MISSING_DEFAULT, "was not written and the reader has no default for it"
        )
    wrong = misfit(field.default, field.type)
    return None if wrong is None else Incompatibility(place, ResolutionRule.BAD_DEFAULT, wrong)
