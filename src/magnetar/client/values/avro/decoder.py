"""Avro's binary form to values, of any writer's schema for any reader's, by the rules that the registry admits them by.

A pair of schemas is compiled once into functions, one for each type: ``read(data, at) -> (value, behind)``. What the
reader lacks is read over, what the writer lacked has its default, numbers are promoted. A value that a writer's union
or enum allows and the reader has no place for is an error of that value alone. Bytes after the value are an error,
too: they were written with another schema.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final, TypeAlias

from magnetar.client.errors import SchemaError
from magnetar.client.values.avro.defaults import Made, default_value
from magnetar.client.values.avro.logical_types import LogicalType, logical_type
from magnetar.schema_definitions.avro_defaults import misfit
from magnetar.schema_definitions.avro_resolution import Resolution
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

Read: TypeAlias = Callable[[bytes, int], tuple[Any, int]]
"""Raises SchemaError, IndexError or struct.error at the end of the data, ValueError."""

_FLOAT: Final = struct.Struct("<f").unpack_from
_DOUBLE: Final = struct.Struct("<d").unpack_from
_EMPTY_ITEMS_MAX: Final = 1 << 16
"""Values of no bytes (null, empty records) in the lists of a payload, beside one for each byte that it has: a few bytes
must not become gigabytes."""


class AvroDecoder:
    """Decodes what was written with one schema, as values of another one."""

    def __init__(self, writer: AvroSchema, reader: AvroSchema, made: Made | None = None) -> None:
        """``made`` makes the application's records and enums, by the reader's names. Raises SchemaError if the reader
        can read nothing of what the writer writes."""
        self._read = _Compiler(reader, made or {}).compile(writer, reader)

    def decode(self, data: bytes) -> Any:
        """Return the value. Raises SchemaError."""
        _empty_items.set(_NONE)
        try:
            value, end = self._read(data, 0)
        except (IndexError, struct.error):
            raise SchemaError(f"the payload of {len(data)} bytes ends within the value") from None
        except RecursionError:
            raise SchemaError("the payload has too many values inside each other") from None
        except (ValueError, TypeError, OverflowError) as error:
            raise error if isinstance(error, SchemaError) else SchemaError(str(error)) from error
        if end != len(data):
            raise SchemaError(
                f"{len(data) - end} of {len(data)} bytes follow the value: it was written with another schema"
            )
        return value


class _Compiler:
    """One pair of schemas; ids are safe as keys, the trees outlive this."""

    def __init__(self, reader: AvroSchema, made: Made) -> None:
        self._resolution = Resolution(reader)
        self._made = made
        self._known: dict[tuple[int, int], Read] = {}

    def compile(self, writer: AvroSchema, reader: AvroSchema) -> Read:
        """Return what reads ``writer``'s values as ``reader``'s."""
        if isinstance(writer, AvroUnion):
            targets = self._resolution.targets(writer, reader)
            return _union([self._branch(one, target) for one, target in zip(writer.branches, targets, strict=True)])
        if isinstance(reader, AvroUnion):
            branch = self._resolution.branch(writer, reader)
            if branch is None:
                raise SchemaError(f"{describe(writer)} was written, the reader has {describe(reader)}")
            return self.compile(writer, branch)
        if isinstance(writer, AvroRecord) and isinstance(reader, AvroRecord):
            return self._record(writer, reader)
        if isinstance(writer, AvroArray) and isinstance(reader, AvroArray):
            return _array(self.compile(writer.items, reader.items), empty=_is_empty(writer.items, set()))
        if isinstance(writer, AvroMap) and isinstance(reader, AvroMap):
            return _map(self.compile(writer.values, reader.values))
        problem = self._resolution.resolve(writer, reader, "the type", 0)
        if problem is not None:
            raise SchemaError(str(problem))
        if isinstance(writer, AvroEnum) and isinstance(reader, AvroEnum):
            return self._enum(writer, reader)
        if isinstance(writer, AvroFixed) and isinstance(reader, AvroFixed):
            return _with_logical(_fixed(writer.size), logical_type(reader))
        if isinstance(writer, AvroPrimitive) and isinstance(reader, AvroPrimitive):
            return _with_logical(_primitive(writer.kind, reader.kind), logical_type(reader))
        raise SchemaError(f"{describe(writer)} was written, the reader has {describe(reader)}")

    def _branch(self, writer: AvroSchema, reader: AvroSchema) -> Read:
        try:
            return self.compile(writer, reader)
        except SchemaError as error:
            return _refusal(str(error))

    def _record(self, writer: AvroRecord, reader: AvroRecord) -> Read:
        known = self._known.get((id(writer), id(reader)))
        if known is not None:
            return known
        steps: list[tuple[str | None, Read]] = []
        defaults: list[tuple[str, Callable[[], Any]]] = []
        make = self._made.get(reader.name)

        def read(data: bytes, at: int) -> tuple[Any, int]:
            record: dict[str, Any] = {}
            for name, step in steps:
                value, at = step(data, at)
                if name is not None:
                    record[name] = value
            for name, default in defaults:
                record[name] = default()
            return record, at

        def read_made(data: bytes, at: int) -> tuple[Any, int]:
            record, at = read(data, at)
            assert make is not None
            return make(record), at

        found = self._known[id(writer), id(reader)] = read if make is None else read_made
        try:
            steps += self._steps(writer, reader)
            written = {name for name, _ in steps}
            defaults += [(one.name, self._default(one)) for one in reader.fields if one.name not in written]
        except SchemaError as error:
            # a union may have it as one branch of several, and what refers to it is compiled already
            steps[:] = [(None, _refusal(str(error)))]
            raise
        return found

    def _steps(self, writer: AvroRecord, reader: AvroRecord) -> list[tuple[str | None, Read]]:
        steps: list[tuple[str | None, Read]] = []
        taken: set[str] = set()
        for field, target in self._resolution.written(writer, reader):
            if target is None:
                steps.append((None, _Compiler(field.type, {}).compile(field.type, field.type)))
                continue
            if target.name in taken:
                raise SchemaError(f"field {target.name} stands for two fields of {describe(writer)}")
            taken.add(target.name)
            try:
                steps.append((target.name, self.compile(field.type, target.type)))
            except SchemaError as error:
                raise SchemaError(f"field {target.name}: {error}") from None
        return steps

    def _default(self, field: AvroField) -> Callable[[], Any]:
        wrong = misfit(field.default, field.type) if field.has_default else "the reader has no default for it"
        if wrong is not None:
            raise SchemaError(f"field {field.name} was not written: {wrong}")
        return default_value(field.default, field.type, self._made)

    def _enum(self, writer: AvroEnum, reader: AvroEnum) -> Read:
        make = self._made.get(reader.name)
        symbols = list(writer.symbols)
        known = set(reader.symbols)
        made: list[Any] = []
        for symbol in symbols:
            target = symbol if symbol in known else reader.default
            made.append(None if target is None else target if make is None else make(target))

        def read(data: bytes, at: int) -> tuple[Any, int]:
            index, at = _long(data, at)
            if not 0 <= index < len(symbols):
                raise SchemaError(f"symbol {index} of {describe(writer)}, which has {len(symbols)}")
            if made[index] is None:
                raise SchemaError(
                    f"{symbols[index]} was written, which {describe(reader)} lacks and has no default for"
                )
            return made[index], at

        return read


def _refusal(reason: str) -> Read:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        raise SchemaError(reason)

    return read


def _union(branches: list[Read]) -> Read:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        index, at = _long(data, at)
        if not 0 <= index < len(branches):
            raise SchemaError(f"branch {index} of a union of {len(branches)}")
        return branches[index](data, at)

    return read


def _long(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    at += 1
    if byte < 128:
        return (byte >> 1) ^ -(byte & 1), at
    number, shift = byte & 127, 7
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
        if shift > 63:
            raise SchemaError("a number of more than ten bytes")
    return ((number >> 1) ^ -(number & 1)), at


def _text(data: bytes, at: int) -> tuple[str, int]:
    raw, at = _bytes(data, at)
    return raw.decode(), at


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _long(data, at)
    end = at + size
    if size < 0 or end > len(data):
        raise SchemaError(f"{size} bytes where {len(data) - at} are left")
    return data[at:end], end


def _fixed(size: int) -> Read:
    def read(data: bytes, at: int) -> tuple[bytes, int]:
        end = at + size
        if end > len(data):
            raise IndexError
        return data[at:end], end

    return read


def _boolean(data: bytes, at: int) -> tuple[bool, int]:
    if data[at] > 1:
        raise SchemaError(f"a boolean is 0 or 1, not {data[at]}")
    return data[at] == 1, at + 1


def _primitive(written: str, wanted: str) -> Read:
    read = _PRIMITIVE[wanted if {written, wanted} == {"bytes", "string"} else written]
    if written in ("int", "long") and wanted in ("float", "double"):
        return lambda data, at: (lambda found: (float(found[0]), found[1]))(read(data, at))
    return read


def _blocks(data: bytes, at: int) -> tuple[int, int]:
    """Return how many values come next, 0 at the end."""
    count, at = _long(data, at)
    if count < 0:
        _, at = _long(data, at)
        count = -count
    if count > len(data) - at and count > _EMPTY_ITEMS_MAX:
        raise SchemaError(f"a list of {count} values in {len(data) - at} bytes")
    return count, at


_NONE: Final = b"", 0
_empty_items: Final[ContextVar[tuple[bytes, int]]] = ContextVar("empty_items", default=_NONE)
"""A payload, and how many values of no bytes it has had; threads decode each for themselves."""


def _count_empty(data: bytes, count: int) -> None:
    """Raise SchemaError for more than one payload may have."""
    payload, known = _empty_items.get()
    count += known if payload is data else 0
    _empty_items.set((data, count))
    if count > len(data) + _EMPTY_ITEMS_MAX:
        raise SchemaError(f"lists of {count} values in {len(data)} bytes")


def _is_empty(schema: AvroSchema, met: set[int]) -> bool:
    """Whether values of a type have no bytes; a record that was met already says nothing else."""
    if not isinstance(schema, AvroRecord):
        return schema.kind == "null" or (isinstance(schema, AvroFixed) and not schema.size)
    if id(schema) in met:
        return True
    met.add(id(schema))
    return all(_is_empty(one.type, met) for one in schema.fields)


def _array(item: Read, *, empty: bool) -> Read:
    """``empty``: whether its values have no bytes, so that the payload's size is no bound of their number."""

    def read(data: bytes, at: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        count, at = _blocks(data, at)
        while count:
            if empty:
                _count_empty(data, count)
            elif count > len(data) - at:  # they have a byte each
                raise IndexError
            for _ in range(count):
                value, at = item(data, at)
                found.append(value)
            count, at = _blocks(data, at)
        return found, at

    return read


def _map(item: Read) -> Read:
    def read(data: bytes, at: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        count, at = _blocks(data, at)
        while count:
            for _ in range(count):
                key, at = _text(data, at)
                found[key], at = item(data, at)
            count, at = _blocks(data, at)
        return found, at

    return read


def _with_logical(read: Read, logical: LogicalType | None) -> Read:
    if logical is None:
        return read
    value = logical.value

    def read_logical(data: bytes, at: int) -> tuple[Any, int]:
        plain, at = read(data, at)
        return value(plain), at

    return read_logical


_PRIMITIVE: Final[dict[str, Read]] = {
    "null": lambda data, at: (None, at),
    "boolean": _boolean,
    "int": _long,
    "long": _long,
    "float": lambda data, at: (_FLOAT(data, at)[0], at + 4),
    "double": lambda data, at: (_DOUBLE(data, at)[0], at + 8),
    "string": _text,
    "bytes": _bytes,
}
