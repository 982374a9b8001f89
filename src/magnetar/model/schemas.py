"""A schema: its type, its definition, and a version of it as it is kept (rules 10.1, 10.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final
from urllib.parse import quote

from magnetar.model.names import TopicName


class SchemaType(IntEnum):
    """Schema types with their numbers on the wire and Pulsar's names; the negative ones are not on the wire."""

    AUTO_PUBLISH = -4
    AUTO = -2
    BYTES = -1
    NONE = 0
    STRING = 1
    JSON = 2
    PROTOBUF = 3
    AVRO = 4
    BOOLEAN = 5
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


NO_VERSION: Final = -1
"""What REST answers where there is none."""


@dataclass(frozen=True, slots=True)
class SchemaDefinition:
    """What a client or an administrator gives."""

    type: SchemaType
    data: bytes = b""
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """One version as it is kept; a deletion is a version, too (rule 10.11)."""

    version: int
    definition: SchemaDefinition
    timestamp_ms: int
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class SchemaId:
    """The topic that a schema belongs to, with all its partitions, persistent or not (rule 10.2)."""

    tenant: str
    namespace: str
    local_name: str
    """Percent-encoded, as Pulsar shows it."""

    @staticmethod
    def of(topic: TopicName) -> SchemaId:
        parent = topic.parent
        # a legacy name's cluster is part of its namespace
        namespace = parent.namespace.text.partition("/")[2]
        return SchemaId(parent.tenant, namespace, quote(parent.local_name, safe=""))

    def __str__(self) -> str:
        return f"{self.tenant}/{self.namespace}/{self.local_name}"


def version_bytes(version: int) -> bytes:
    """Return the version as on the wire: eight bytes, big-endian."""
    return version.to_bytes(8, "big", signed=True)
