"""Schemas of topics and their versions."""

from __future__ import annotations

from magnetar.admin_api.models.policies import CompatibilityChoice
from magnetar.admin_api.models.record import ApiModel


class PostSchemaPayload(ApiModel):
    """A schema that is registered or compared."""

    type: str
    """AVRO, JSON, PROTOBUF, PROTOBUF_NATIVE, KEY_VALUE, STRING, BYTES, INT32, ..."""
    schema_text: str
    """The definition, as JSON for AVRO, JSON and PROTOBUF; empty for types that need none."""
    properties: dict[str, str] | None = None


class SchemaInfo(ApiModel):
    """One version of a topic's schema."""

    version: int = 0
    type: str = ""
    timestamp: int = 0
    """When it was registered, in milliseconds since 1970."""
    data: str = ""
    """The definition."""
    properties: dict[str, str] = {}


class AllSchemaVersions(ApiModel):
    """All versions of a topic's schema, oldest first."""

    get_schema_responses: list[SchemaInfo] = []


class VersionNumber(ApiModel):
    """A version of a schema; -1 for none."""

    version: int = -1


class PostSchemaResponse(ApiModel):
    """The version that was registered or found."""

    version: VersionNumber = VersionNumber()


class SchemaCompatibility(ApiModel):
    """Whether a schema could be registered."""

    schema_compatibility_strategy: CompatibilityChoice = "FULL"
    """The strategy that was applied."""
    compatibility: bool = True


class SchemaPlace(ApiModel):
    """Where a version is stored; magnetar answers -1 for ledger and entry."""

    ledger_id: int = -1
    entry_id: int = -1
    version: int = 0


class SchemaMetadata(ApiModel):
    """The places where the versions of a topic's schema are stored."""

    info: SchemaPlace = SchemaPlace()
    index: list[SchemaPlace] = []
