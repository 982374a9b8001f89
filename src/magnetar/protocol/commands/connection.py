"""Handshake, keep-alive and the two plain answers (rules of 1.2 and group 12)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from magnetar.model.errors import ServerError
from magnetar.protocol.commands.schemas import Schema


class AuthMethod(IntEnum):
    """The method that only very old clients send; later ones send its name."""

    AuthMethodNone = 0
    AuthMethodYcaV1 = 1
    AuthMethodAthens = 2


@dataclass(frozen=True, slots=True)
class FeatureFlags:
    """What a side can do (rule 1.2.5); None is absent, which readers take as no."""

    supports_auth_refresh: bool | None = None
    supports_broker_entry_metadata: bool | None = None
    supports_partial_producer: bool | None = None
    supports_topic_watchers: bool | None = None
    supports_get_partitioned_metadata_without_auto_creation: bool | None = None
    supports_repl_dedup_by_lid_and_eid: bool | None = None


@dataclass(frozen=True, slots=True)
class AuthData:
    auth_method_name: str | None = None
    auth_data: bytes | None = None


@dataclass(frozen=True, slots=True)
class CommandConnect:
    client_version: str
    protocol_version: int = 0
    auth_method_name: str | None = None
    auth_data: bytes | None = None
    auth_method: AuthMethod | None = None
    proxy_to_broker_url: str | None = None
    original_principal: str | None = None
    original_auth_data: str | None = None
    original_auth_method: str | None = None
    feature_flags: FeatureFlags | None = None
    proxy_version: str | None = None


@dataclass(frozen=True, slots=True)
class CommandConnected:
    server_version: str
    protocol_version: int
    max_message_size: int | None = None
    feature_flags: FeatureFlags | None = None


@dataclass(frozen=True, slots=True)
class CommandAuthChallenge:
    server_version: str | None = None
    challenge: AuthData | None = None
    protocol_version: int = 0


@dataclass(frozen=True, slots=True)
class CommandAuthResponse:
    client_version: str | None = None
    response: AuthData | None = None
    protocol_version: int = 0


@dataclass(frozen=True, slots=True)
class CommandPing:
    pass


@dataclass(frozen=True, slots=True)
class CommandPong:
    pass


@dataclass(frozen=True, slots=True)
class CommandSuccess:
    request_id: int
    schema: Schema | None = None


@dataclass(frozen=True, slots=True)
class CommandError:
    """A request failed; ``request_id`` -1 for the handshake itself (rule 1.2.3)."""

    request_id: int
    error: ServerError
    message: str
