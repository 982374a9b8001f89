"""Schemas; one belongs to a topic with all its partitions."""

from __future__ import annotations

from typing import Final

from magnetar.admin_api.models.schemas import (
    AllSchemaVersions,
    PostSchemaPayload,
    PostSchemaResponse,
    SchemaCompatibility,
    SchemaInfo,
    SchemaMetadata,
    VersionNumber,
)
from magnetar.admin_api.operation import Operation, Parameter

_OF: Final = "/admin/v2/schemas/{tenant}/{namespace}/{topic}"
_PAYLOAD: Final = {
    "type": "JSON", "properties": {},
    "schema": '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}',
}  # fmt: skip
_MISSING: Final = {404: "Schema not found"}
_INVALID: Final = {409: "Incompatible schema", 422: "Invalid schema definition data"}

SCHEMAS: Final = (
    Operation(
        "schemas.get", "GET", _OF + "/schema", "Show the newest schema of a topic", answer=SchemaInfo, errors=_MISSING
    ),
    Operation(
        "schemas.get_version", "GET", _OF + "/schema/{version}", "Show one version of a topic's schema",
        answer=SchemaInfo, errors=_MISSING,
    ),
    Operation(
        "schemas.get_all", "GET", _OF + "/schemas", "Show all versions of a topic's schema", answer=AllSchemaVersions
    ),
    Operation(
        "schemas.get_metadata", "GET", _OF + "/metadata", "Show where the versions are stored",
        answer=SchemaMetadata, unset=200,
    ),
    Operation(
        "schemas.create", "POST", _OF + "/schema", "Register a schema", body=PostSchemaPayload,
        answer=PostSchemaResponse, example=_PAYLOAD, errors=_INVALID,
    ),
    Operation(
        "schemas.delete", "DELETE", _OF + "/schema", "Delete the schema of a topic", answer=VersionNumber,
        query=(Parameter("force", bool, "Remove all versions for good.", False),),
    ),
    Operation(
        "schemas.test_compatibility", "POST", _OF + "/compatibility", "Say whether a schema could be registered",
        body=PostSchemaPayload, answer=SchemaCompatibility, success=202, example=_PAYLOAD, errors=_INVALID,
    ),
    Operation(
        "schemas.get_version_by_schema", "POST", _OF + "/version", "Find the version that has a schema",
        body=PostSchemaPayload, answer=VersionNumber, example=_PAYLOAD, errors={422: "Invalid schema definition data"},
    ),
)  # fmt: skip
"""The operations of this group."""
