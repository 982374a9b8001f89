"""Avro values to columns: each with its writer's schema, all into the reader's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.columnar.avro.defaults import default_of
from magnetar.columnar.avro.read import instructions as k
from magnetar.columnar.avro.read.arena import Arena
from magnetar.columnar.avro.read.machine import decode
from magnetar.columnar.avro.read.program import Program, columns_of, program_of
from magnetar.columnar.avro.shape import Shape
from magnetar.columnar.byte_columns import offsets_and_bytes
from magnetar.columnar.values import Decoded, Runs, UnreadableValue
from magnetar.columnar.versions import SchemaLookup, all_unreadable, by_version, version_text
from magnetar.model.errors import MagnetarError
from magnetar.model.schemas import SchemaType
from magnetar.schema_definitions.avro import AvroSchemaError, parse
from magnetar.schema_definitions.avro_types import AvroRecord, AvroSchema

if TYPE_CHECKING:
    from numpy.typing import NDArray

_REASONS: Final = {
    k.TRUNCATED: "the value ends too early",
    k.LONG_VARINT: "a number of more than 64 bits",
    k.LENGTH: "a negative length",
    k.BRANCH: "a union has no such branch",
    k.SYMBOL: "an enum has no such symbol",
    k.NO_TEXT: "a string is no UTF-8",
    k.LEFT_OVER: "bytes are left over after the value",
    k.RANGE: "a number is too large for its type",
    k.NO_BOOLEAN: "a boolean is neither 0 nor 1",
    k.BIG_DECIMAL: "a decimal is larger than 128 bits",
    k.MANY_DIGITS: "a decimal has more digits than its type",
    k.LOST_SYMBOL: "the reader's enum has lost the symbol and has no default",
}


class Avro:
    """Reads Avro values; implements `magnetar.columnar.values.Values`."""

    needs_keys = False

    def __init__(self, reader: AvroSchema, writers: SchemaLookup | None = None, label: str = "given") -> None:
        """``label`` names the reader's version in errors. Without ``writers`` all values were written by ``reader``.

        Raises InvalidValueError if the reader's schema has no columns."""
        self._reader = reader
        self._writers = writers
        self._label = label
        self.record = isinstance(reader, AvroRecord)
        self.schema: Any = pa.schema([pa.field(column.name, column.shape.arrow) for column in columns_of(reader)])
        self._programs: dict[bytes | None, Program | str] = {}

    def read(self, values: Any, runs: Runs, keys: Any = None) -> Decoded:
        """Decode ``values``; one that does not fit is null in every column."""
        if self._writers is None:
            return self._read(None, values)
        return by_version(values, runs, self.schema, self._read)

    def _read(self, version: bytes | None, values: Any) -> Decoded:
        program = self._programs.get(version)
        if program is None:
            program = self._programs[version] = self._program(version)
        if isinstance(program, str):
            return all_unreadable(values, self.schema, program, new_schema=True)
        columns, bad = run(program, values)
        unreadable = [
            UnreadableValue(row, f"{self._versions(version)}: {program.paths.get(at, 'the value')}: {_REASONS[reason]}")
            for row, reason, at in bad
        ]
        return Decoded(columns, unreadable)

    def _versions(self, version: bytes | None) -> str:
        if version is None or self._writers is None:
            return f"does not fit Avro schema {self._label}"
        return f"does not fit Avro schema version {version_text(version)} (read as {self._label})"

    def _program(self, version: bytes | None) -> Program | str:
        """Return the program of a version, or why there is none. An error of the broker is raised, not returned."""
        if version is None or self._writers is None:
            return program_of(self._reader, self._reader)
        before = f"schema version {version_text(version)} cannot be read as {self._label}"
        definition = self._writers(version)
        if definition.type is not SchemaType.AVRO:
            return f"{before}: it is {definition.type.name} (rule: the type must stay)"
        try:
            return program_of(parse(definition.data), self._reader)
        except (MagnetarError, AvroSchemaError) as error:
            return f"{before}: {error}"


def run(program: Program, values: Any) -> tuple[list[Any], list[tuple[int, int, int]]]:
    """Run a program over a pa.BinaryArray: columns, and for each value that does not fit (row, reason, instruction)."""
    rows = len(values)
    offsets, data = offsets_and_bytes(values)
    present = values.is_valid().to_numpy(zero_copy_only=False).view(np.uint8)
    arena = Arena(program.nodes, _parallel(program), rows, int(offsets[-1] - offsets[0]))
    bad = np.zeros((rows, 3), np.int64)
    nodes, code = arena.nodes, program.instructions()
    state = np.zeros(k.STATE_SIZE + 2 * k.DEPTH_MAX + 2 * len(nodes), np.int64)
    state[k.NODES] = len(nodes)
    # All of these live until the loop is over, which knows their addresses only.
    kept = (data, offsets, present, code, nodes, state, bad)
    first, ends, there, instructions, table, numbers, wrong = (array.ctypes.data for array in kept)
    at = 0
    while (at := decode(first, ends, there, rows, at, instructions, program.nulls, table, numbers, wrong)) < rows:
        arena.grow(int(state[k.NODE]))
    found = bad[: int(state[k.BAD])]
    wanted = present.astype(bool)
    wanted[found[:, 0]] = False
    columns = [_column(program, arena, column.shape, wanted) for column in program.columns]
    return columns, [(int(row), int(reason), int(ip)) for row, reason, ip in found]


def _parallel(program: Program) -> set[int]:
    """Return the nodes with one value per row: those outside of arrays and maps."""
    found: set[int] = set()

    def add(shape: Shape) -> None:
        found.add(shape.number)
        if shape.storage in ("struct", "union"):
            for child in shape.children:
                add(child)

    for _, shape in program.columns:
        add(shape)
    return found


def _column(program: Program, arena: Arena, shape: Shape, there: NDArray[np.bool_]) -> Any:
    """Return a node as a column; ``there`` says where a value is wanted, for what is a default everywhere."""
    missing = program.defaults.get(id(shape))
    if missing is not None:
        one = default_of(missing.default, missing.type, shape)
        return pa.array([one], shape.arrow).take(pa.array(np.zeros(len(there), np.int32), mask=~there))
    if shape.storage in ("struct", "union"):
        inside = np.ones(int(arena.nodes[shape.number, k.FILL]), bool)
    elif shape.children:
        inside = np.ones(int(arena.nodes[shape.children[0].number, k.FILL]), bool)
    else:
        inside = there
    return arena.array(shape, [_column(program, arena, child, inside) for child in shape.children])
