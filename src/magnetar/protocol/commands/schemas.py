"""Schemas as they travel, and the two commands of the registry (rules of group 10)."""

from __future__ import annotations

from dataclasses import dataclass

from magnetar.model.errors import ServerError
from magnetar.model.schemas import SchemaType
from magnetar.protocol.commands.ids import KeyValues

__all__ = [
    "CommandGetOrCreateSchema",
    "CommandGetOrCreateSchemaResponse",
    "CommandGetSchema",
    "CommandGetSchemaResponse",
    "Schema",
    "SchemaType",
]


@dataclass(frozen=True, slots=True)
class Schema:
    name: str
    schema_data: bytes
    type: SchemaType
    properties: KeyValues = ()


@dataclass(frozen=True, slots=True)
class CommandGetSchema:
    """``schema_version`` None asks for the latest; empty bytes are an error (rule 10.9)."""

    request_id: int
    topic: str
    schema_version: bytes | None = None


@dataclass(frozen=True, slots=True)
class CommandGetSchemaResponse:
    request_id: int
    error: ServerError | None = None
    message: str | None = None
    schema: Schema | None = None
    schema_version: bytes | None = None


@dataclass(frozen=True, slots=True)
class CommandGetOrCreateSchema:
    request_id: int
    topic: str
    schema: Schema


@dataclass(frozen=True, slots=True)
class CommandGetOrCreateSchemaResponse:
    request_id: int
    error: ServerError | None = None
    message: str | None = None
    schema_version: bytes | None = None
