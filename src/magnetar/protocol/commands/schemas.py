"""Schemas as they travel, and the two commands of the registry (SEMANTICS 10)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from magnetar.model.errors import ServerError
from magnetar.protocol.commands.ids import Pairs


class SchemaType(IntEnum):
    """Pulsar calls number 0 `None`, which Python keeps for itself."""

    NONE = 0
    STRING = 1
    JSON = 2
    PROTOBUF = 3
    AVRO = 4
    BOOL = 5
    INT8 = 6
    INT16 = 7
    INT32 = 8
    INT64 = 9
    FLOAT = 10
    DOUBLE = 11
    DATE = 12
    TIME = 13
    TIMESTAMP = 14
    KEY_VALUE = 15
    INSTANT = 16
    LOCAL_DATE = 17
    LOCAL_TIME = 18
    LOCAL_DATE_TIME = 19
    PROTOBUF_NATIVE = 20
    AUTO_CONSUME = 21


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
