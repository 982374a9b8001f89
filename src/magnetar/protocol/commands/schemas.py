"""Schemas as they travel, and the two commands of the registry (SEMANTICS 10)."""

from __future__ import annotations

from dataclasses import dataclass

from magnetar.model.errors import ServerError
from magnetar.model.schemas import SchemaType
from magnetar.protocol.commands.ids import Pairs

__all__ = [
    "GetOrCreateSchema",
    "GetOrCreateSchemaResponse",
    "GetSchema",
    "GetSchemaResponse",
    "Schema",
    "SchemaType",
]


@dataclass(frozen=True, slots=True)
class Schema:
    name: str
    schema_data: bytes
    type: SchemaType
    properties: Pairs = ()


@dataclass(frozen=True, slots=True)
class GetSchema:
    """``schema_version`` None asks for the latest; empty bytes are an error (SEMANTICS 10.9)."""

    request_id: int
    topic: str
    schema_version: bytes | None = None


@dataclass(frozen=True, slots=True)
class GetSchemaResponse:
    request_id: int
    error: ServerError | None = None
    message: str | None = None
    schema: Schema | None = None
    schema_version: bytes | None = None


@dataclass(frozen=True, slots=True)
class GetOrCreateSchema:
    request_id: int
    topic: str
    schema: Schema


@dataclass(frozen=True, slots=True)
class GetOrCreateSchemaResponse:
    request_id: int
    error: ServerError | None = None
    message: str | None = None
    schema_version: bytes | None = None
