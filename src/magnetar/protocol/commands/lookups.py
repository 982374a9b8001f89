"""Who serves a topic, how many partitions it has, which topics a namespace has (rules of group 2)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from magnetar.model.errors import ServerError
from magnetar.protocol.commands.ids import KeyValues


class LookupType(IntEnum):
    Redirect = 0
    Connect = 1
    Failed = 2


class MetadataType(IntEnum):
    Success = 0
    Failed = 1


class NamespaceMode(IntEnum):
    PERSISTENT = 0
    NON_PERSISTENT = 1
    ALL = 2


@dataclass(frozen=True, slots=True)
class CommandPartitionedTopicMetadata:
    """``metadata_auto_creation_enabled`` None, of a client that does not know it, is true (rule 2.8)."""

    topic: str
    request_id: int
    original_principal: str | None = None
    original_auth_data: str | None = None
    original_auth_method: str | None = None
    metadata_auto_creation_enabled: bool | None = None


@dataclass(frozen=True, slots=True)
class CommandPartitionedTopicMetadataResponse:
    request_id: int
    response: MetadataType | None = None
    partitions: int | None = None
    error: ServerError | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class CommandLookupTopic:
    topic: str
    request_id: int
    authoritative: bool = False
    original_principal: str | None = None
    original_auth_data: str | None = None
    original_auth_method: str | None = None
    advertised_listener_name: str | None = None
    properties: KeyValues = ()


@dataclass(frozen=True, slots=True)
class CommandLookupTopicResponse:
    request_id: int
    response: LookupType | None = None
    broker_service_url: str | None = None
    broker_service_url_tls: str | None = None
    authoritative: bool = False
    error: ServerError | None = None
    message: str | None = None
    proxy_through_service_url: bool = False


@dataclass(frozen=True, slots=True)
class CommandGetTopicsOfNamespace:
    request_id: int
    namespace: str
    mode: NamespaceMode = NamespaceMode.PERSISTENT
    topics_pattern: str | None = None
    topics_hash: str | None = None


@dataclass(frozen=True, slots=True)
class CommandGetTopicsOfNamespaceResponse:
    """``filtered`` and ``changed`` are always on the wire (rules 2.16 to 2.18)."""

    request_id: int
    topics: tuple[str, ...]
    filtered: bool
    topics_hash: str | None
    changed: bool
