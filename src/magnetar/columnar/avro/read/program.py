"""Instructions that read what one Avro schema wrote into the columns of another, made of the two schemas.

The writer decides what comes in which order, the reader where it goes: fields are matched by name and alias, numbers
are promoted, what the reader does not know is skipped, what the writer did not write is the reader's default. The rules
are those by which Pulsar lets schemas follow each other (`magnetar.schema_definitions.avro_resolution`); a pair that
they do not admit has no program. Top-level fields of a record are columns of their own, so the record itself is no
node.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from magnetar.columnar.avro.read import instructions as k
from magnetar.columnar.avro.shape import Shape, fields_of, members_of, shape_of
from magnetar.model.errors import InvalidValueError
from magnetar.model.ids import signed
from magnetar.schema_definitions.avro_resolution import Resolution, incompatibility
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

_LEAVES: Final[dict[tuple[str, str], int]] = {
    ("boolean", "boolean"): k.BOOLEAN,
    ("int", "int"): k.INT,
    ("int", "long"): k.LONG,
    ("long", "long"): k.LONG,
    ("int", "millis"): k.MILLIS,
    ("long", "millis"): k.MILLIS,
    ("int", "float"): k.LONG_FLOAT,
    ("long", "float"): k.LONG_FLOAT,
    ("int", "double"): k.LONG_DOUBLE,
    ("long", "double"): k.LONG_DOUBLE,
    ("float", "float"): k.FLOAT,
    ("float", "double"): k.FLOAT_DOUBLE,
    ("double", "double"): k.DOUBLE,
    **{(kind, "text"): k.TEXT for kind in ("string", "bytes")},
    **{(kind, "bytes"): k.BYTES for kind in ("string", "bytes")},
    **{(kind, "decimal"): k.DECIMAL for kind in ("string", "bytes")},
}
_SKIPS: Final[dict[str, tuple[int, int]]] = {
    "boolean": (k.SKIP_FIXED, 1),
    "int": (k.SKIP_VARINT, 0),
    "long": (k.SKIP_VARINT, 0),
    "float": (k.SKIP_FIXED, 4),
    "double": (k.SKIP_FIXED, 8),
    "bytes": (k.SKIP_BYTES, 0),
    "string": (k.SKIP_BYTES, 0),
}


class NamedShape(NamedTuple):
    name: str
    shape: Shape


@dataclass(slots=True)
class Program:
    """The instructions that the machine runs, and the columns that become of its nodes."""

    columns: list[NamedShape]
    nodes: list[Shape] = field(default_factory=list)
    code: list[int] = field(default_factory=list)
    nulls: int = 0
    paths: dict[int, str] = field(default_factory=dict)
    """Instruction to the place in the writer's schema."""
    defaults: dict[int, AvroField] = field(default_factory=dict)
    """The reader's fields that the writer did not write, by id of the shape."""

    def instructions(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Return the code as the machine takes it."""
        return np.array(self.code, np.int64)


def columns_of(reader: AvroSchema) -> list[NamedShape]:
    """Return the columns of a reader's schema. Raises InvalidValueError for what has no columns."""
    named = fields_of(reader)
    return [NamedShape(name, shape_of(one, f"field {name}" if len(named) > 1 else name)) for name, one in named]


def program_of(writer: AvroSchema, reader: AvroSchema) -> Program:
    """Compile a pair of schemas. Raises InvalidValueError with field and rule if the reader cannot read them."""
    found = incompatibility(writer, reader)
    if found is not None:
        raise InvalidValueError(str(found))
    return _Assembler(reader).assemble(writer)


class _Assembler:
    def __init__(self, reader: AvroSchema) -> None:
        self._reader = reader
        self._resolution = Resolution(reader)
        self._program = Program(columns_of(reader))
        self._code = self._program.code
        self._tables: list[tuple[int, list[int]]] = []
        self._lists = 0
        self._read: set[int] = set()
        for _, shape in self._program.columns:
            shape.walk(self._number)

    def _number(self, shape: Shape) -> None:
        shape.number = len(self._program.nodes)
        self._program.nodes.append(shape)

    def assemble(self, writer: AvroSchema) -> Program:
        program, reader = self._program, self._reader
        if isinstance(writer, AvroRecord) and isinstance(reader, AvroRecord):
            self._fields(writer, reader, [shape for _, shape in program.columns], "", ())
        else:
            self._value(writer, reader, program.columns[0].shape, "the value", ())
        self._add(k.END)
        program.nulls = len(self._code)
        for _, shape in program.columns:
            self._nulls(shape)
        self._add(k.END)
        for at, table in self._tables:
            self._code[at] = len(self._code)
            self._code.extend(table)
        return program

    def _add(self, op: int, node: int = 0, argument: int = 0, path: str = "") -> int:
        at = len(self._code)
        self._code.extend((op, node, argument))
        if path:
            self._program.paths[at] = path
        return at

    def _fields(
        self, writer: AvroRecord, reader: AvroRecord, shapes: list[Shape], path: str, around: tuple[int, ...]
    ) -> None:
        """Add the fields of a record in the writer's order."""
        self._check_recursion(writer, around, path)
        by_name = dict(zip((one.name for one in reader.fields), shapes, strict=True))
        missing = {one.name: one for one in reader.fields}
        for written, wanted in self._resolution.written(writer, reader):
            place = f"{path}.{written.name}" if path else f"field {written.name}"
            if wanted is None:
                self._skip(written.type, place, (*around, id(writer)))
            else:
                missing.pop(wanted.name)
                self._read.add(id(by_name[wanted.name]))
                self._value(written.type, wanted.type, by_name[wanted.name], place, (*around, id(writer)))
        for name, one in missing.items():
            self._program.defaults[id(by_name[name])] = one
        both = [name for name, shape in by_name.items() if id(shape) in self._read & self._program.defaults.keys()]
        if both:
            raise InvalidValueError(
                f"{path}.{both[0]}: one record of the writer's union has this field and another has not, and both are "
                "read as one; read it with value=binary"
            )

    def _value(self, writer: AvroSchema, reader: AvroSchema, shape: Shape, path: str, around: tuple[int, ...]) -> None:
        if isinstance(writer, AvroUnion):
            targets = self._resolution.targets(writer, reader)

            def branch(index: int) -> None:
                one, target = writer.branches[index], targets[index]
                if isinstance(reader, AvroUnion) and target is not reader:
                    self._into(one, target, shape, path, around)
                else:
                    self._value(one, reader, shape, path, around)

            self._union(writer, branch, path)
        elif isinstance(reader, AvroUnion):
            target = self._resolution.branch(writer, reader)
            assert target is not None, "problem() has seen to it"
            self._into(writer, target, shape, path, around)
        else:
            self._same(writer, reader, shape, path, around)

    def _union(self, writer: AvroUnion, branch: object, path: str) -> None:
        assert callable(branch), "a way to write each branch"
        count = len(writer.branches)
        at = len(self._code)
        self._program.paths[at] = path
        self._code.extend((k.UNION, count, *(0,) * count))
        ends = []
        for index in range(count):
            self._code[at + 2 + index] = len(self._code)
            branch(index)
            ends.append(self._add(k.JUMP))
        for end in ends:
            self._code[end + 1] = len(self._code)

    def _into(self, writer: AvroSchema, branch: AvroSchema, shape: Shape, path: str, around: tuple[int, ...]) -> None:
        """Add the value of one branch of the reader's union."""
        if branch.kind == "null":
            self._nulls(shape)
        elif shape.storage == "union" and isinstance(shape.schema, AvroUnion):
            self._add(k.STRUCT, shape.number, path=path)
            for member, child in zip(members_of(shape.schema), shape.children, strict=True):
                if member is branch:
                    self._value(writer, member, child, path, around)
                else:
                    self._nulls(child)
        else:
            self._same(writer, branch, shape, path, around)

    def _same(self, writer: AvroSchema, reader: AvroSchema, shape: Shape, path: str, around: tuple[int, ...]) -> None:
        """Add a value of which neither side is a union."""
        node = shape.number
        if isinstance(writer, AvroRecord) and isinstance(reader, AvroRecord):
            self._add(k.STRUCT, node, path=path)
            self._fields(writer, reader, shape.children, path, around)
        elif isinstance(writer, AvroArray) and isinstance(reader, AvroArray):
            self._list(writer.items, node, path, lambda: self._item(writer.items, reader.items, shape, path, around))
        elif isinstance(writer, AvroMap) and isinstance(reader, AvroMap):

            def entry() -> None:
                self._add(k.TEXT, shape.children[0].number, path=f"{path} (key)")
                self._value(writer.values, reader.values, shape.children[1], f"{path}{{}}", around)

            self._list(None, node, path, entry)
        elif isinstance(writer, AvroEnum) and isinstance(reader, AvroEnum):
            at = self._add(k.ENUM, node, path=path)
            self._tables.append((at + 2, _symbols(writer, reader)))
        elif isinstance(writer, AvroFixed):
            if shape.storage == "decimal":
                self._decimal(k.DECIMAL_FIXED, writer.size, shape, path)
            else:
                self._add(k.FIXED, node, writer.size, path)
        elif writer.kind == "null":
            self._add(k.NULL, node)
        elif shape.storage == "decimal":
            self._decimal(_LEAVES[writer.kind, shape.storage], 0, shape, path)
        else:
            self._add(_LEAVES[writer.kind, shape.storage], node, path=path)
        _check_scale(writer, reader, shape, path)

    def _decimal(self, op: int, size: int, shape: Shape, path: str) -> None:
        """Add a decimal, whose size, if it is fixed, and first number too large stand in a table."""
        high, low = divmod(10**shape.arrow.precision, 1 << 64)
        self._tables.append((self._add(op, shape.number, path=path) + 2, [size, signed(low), high]))

    def _item(self, writer: AvroSchema, reader: AvroSchema, shape: Shape, path: str, around: tuple[int, ...]) -> None:
        self._value(writer, reader, shape.children[0], f"{path}[]", around)

    def _list(self, items: AvroSchema | None, node: int, path: str, body: object) -> None:
        assert callable(body), "a way to write an item"
        if items is not None and _may_be_nothing(items, ()):
            raise InvalidValueError(f"{path}: an array of {describe(items)}, which takes no bytes, cannot be read")
        self._lists += 1
        if self._lists > k.DEPTH_MAX:
            raise InvalidValueError(f"{path}: more than {k.DEPTH_MAX} arrays and maps inside each other")
        at = self._add(k.LIST, node, path=path)
        body()
        self._code[at + 2] = self._add(k.NEXT, path=path)
        self._lists -= 1

    def _nulls(self, shape: Shape) -> None:
        if id(shape) not in self._program.defaults:
            self._add(k.NULL, shape.number, path=shape.path)
            if shape.storage in ("struct", "union"):
                for child in shape.children:
                    self._nulls(child)

    def _skip(self, writer: AvroSchema, path: str, around: tuple[int, ...]) -> None:
        if isinstance(writer, AvroRecord):
            self._check_recursion(writer, around, path)
            for one in writer.fields:
                self._skip(one.type, f"{path}.{one.name}", (*around, id(writer)))
        elif isinstance(writer, AvroUnion):
            branches = writer.branches
            self._union(writer, lambda index: self._skip(branches[index], path, around), path)
        elif isinstance(writer, AvroArray):
            self._list(writer.items, -1, path, lambda: self._skip(writer.items, f"{path}[]", around))
        elif isinstance(writer, AvroMap):

            def entry() -> None:
                self._add(k.SKIP_BYTES, path=f"{path} (key)")
                self._skip(writer.values, f"{path}{{}}", around)

            self._list(None, -1, path, entry)
        elif isinstance(writer, AvroFixed):
            self._add(k.SKIP_FIXED, 0, writer.size, path)
        elif isinstance(writer, AvroEnum):
            self._add(k.SKIP_VARINT, path=path)
        elif writer.kind != "null":
            op, size = _SKIPS[writer.kind]
            self._add(op, 0, size, path)

    def _check_recursion(self, writer: AvroRecord, around: tuple[int, ...], path: str) -> None:
        if id(writer) in around:
            raise InvalidValueError(f"{path}: {describe(writer)} contains itself, which has no columns")


def _symbols(writer: AvroEnum, reader: AvroEnum) -> list[int]:
    """Return the number of symbols, and for each of the writer's the reader's number, -1 if it has none."""
    default = -1 if reader.default is None else reader.symbols.index(reader.default)
    return [
        len(writer.symbols),
        *(reader.symbols.index(one) if one in reader.symbols else default for one in writer.symbols),
    ]


def _check_scale(writer: AvroSchema, reader: AvroSchema, shape: Shape, path: str) -> None:
    """Refuse a decimal whose scale changes: Pulsar admits it, but its digits would mean something else."""
    if shape.storage != "decimal" or not isinstance(writer, AvroPrimitive | AvroFixed):
        return
    assert isinstance(reader, AvroPrimitive | AvroFixed), "only these can be decimals"
    before, after = writer.props.get("scale", 0), reader.props.get("scale", 0)
    if writer.props.get("logicalType") == "decimal" and before != after:
        raise InvalidValueError(
            f"{path}: a decimal with scale {before} was written, the reader has {after} (rule: a decimal keeps its "
            "scale)"
        )


def _may_be_nothing(schema: AvroSchema, around: tuple[int, ...]) -> bool:
    """Whether a value may take no bytes at all."""
    if isinstance(schema, AvroRecord):
        inner = (*around, id(schema))
        return id(schema) in around or all(_may_be_nothing(one.type, inner) for one in schema.fields)
    return schema.kind == "null" or (isinstance(schema, AvroFixed) and schema.size == 0)
