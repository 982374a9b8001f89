"""Schemas of key and value in one (rule 10.13)::

    schema data = [i32 length][key's schema][i32 length][value's schema]        length -1 = none

Their types stand in the properties ``key.schema.type`` and ``value.schema.type``, BYTES if absent. REST shows and takes
the pair as JSON, ``{"key": ..., "value": ...}``, where ``""`` stands for an empty schema.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

from magnetar.model.errors import InvalidSchemaDataError
from magnetar.model.schemas import SchemaDefinition, SchemaType


class SchemaPair(NamedTuple):
    key: SchemaDefinition
    value: SchemaDefinition


def split(pair: SchemaDefinition) -> SchemaPair:
    """Split the definition of a pair into two. Raises InvalidSchemaDataError."""
    key, rest = _cut(pair.data, "key")
    value, rest = _cut(rest, "value")
    if rest:
        raise _invalid(f"{len(rest)} bytes follow the value's schema")
    return SchemaPair(_part(pair.properties, "key", key), _part(pair.properties, "value", value))


def join(key: bytes, value: bytes) -> bytes:
    return b"".join((struct.pack(">i", len(key)), key, struct.pack(">i", len(value)), value))


def _cut(data: bytes, what: str) -> tuple[bytes, bytes]:
    if len(data) < 4:
        raise _invalid(f"{len(data)} bytes where the length of the {what}'s schema should be")
    (size,) = struct.unpack_from(">i", data)
    if size < 0:
        return b"", data[4:]
    if len(data) < 4 + size:
        raise _invalid(f"the {what}'s schema should have {size} bytes, {len(data) - 4} are there")
    return data[4 : 4 + size], data[4 + size :]


def _part(properties: Mapping[str, str], what: str, data: bytes) -> SchemaDefinition:
    name = properties.get(f"{what}.schema.type", "BYTES")
    try:
        kind = SchemaType[name]
    except KeyError:
        raise _invalid(f"property {what}.schema.type is {name[:60]!r}, which is no schema type") from None
    if kind is SchemaType.KEY_VALUE:
        raise _invalid(f"property {what}.schema.type is KEY_VALUE: a pair inside a pair is not supported")
    return SchemaDefinition(kind, data)


def _invalid(reason: str) -> InvalidSchemaDataError:
    return InvalidSchemaDataError(
        f"Invalid schema definition data for KEY_VALUE schema caused by {reason} (expected length, key's schema, "
        "length, value's schema)"
    )


def from_text(text: str) -> bytes:
    """Return schema data from REST's JSON. Raises InvalidSchemaDataError."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _invalid_text(f"not JSON: {error}") from None
    if not isinstance(document, dict) or "key" not in document or "value" not in document:
        raise _invalid_text("not a JSON object with key and value")
    return join(_bytes(document["key"]), _bytes(document["value"]))


def _bytes(part: Any) -> bytes:
    return b"" if part == "" else json.dumps(part, ensure_ascii=False, separators=(",", ":")).encode()


def _invalid_text(reason: str) -> InvalidSchemaDataError:
    return InvalidSchemaDataError(
        f"Invalid schema definition data for KEY_VALUE schema caused by {reason} (expected "
        '{"key": <schema or "">, "value": <schema or "">})'
    )


def to_text(pair: SchemaDefinition) -> str:
    """Return REST's JSON of a pair. Raises InvalidSchemaDataError."""
    parts = split(pair)
    return json.dumps(
        {"key": _shown(parts.key.data), "value": _shown(parts.value.data)}, ensure_ascii=False, separators=(",", ":")
    )


def _shown(data: bytes) -> Any:
    text = data.decode(errors="replace")
    try:
        return json.loads(text) if text else ""
    except (ValueError, RecursionError):
        return text
