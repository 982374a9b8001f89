"""/admin/v2/schemas: versions of a topic's schema, and compatibility of a new one (rule 10.16).

A schema belongs to a topic with all its partitions; it can be registered before the topic exists.
"""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from magnetar.admin.http.authorization import Permissions
from magnetar.admin.http.bodies import answer, done, object_body
from magnetar.admin.http.parameters import Flag, NameText, PathText, topic_name
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.ports import SchemasPort, TopicsPort
from magnetar.authorization.access import TopicAccess
from magnetar.authorization.operations import TopicOperation
from magnetar.metadata.resources import Resources
from magnetar.model.errors import (
    InvalidSchemaDataError,
    InvalidValueError,
    NotFoundError,
    PreconditionFailedError,
)
from magnetar.model.names import TopicName, is_valid_entity
from magnetar.model.policies import Json, JsonObject
from magnetar.model.schemas import NO_VERSION, SchemaDefinition, SchemaType, SchemaVersion
from magnetar.schema_definitions import key_value

PATH: Final = "/admin/v2/schemas/{tenant}/{namespace}/{topic}"
_NO_LEDGER: Final = -1
"""Shown as ledger id: versions are kept in the metadata store, not in a ledger."""


def routes(topics: TopicsPort, schemas: SchemasPort, resources: Resources, permissions: Permissions) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup()
    _read_routes(router, schemas)
    _query_routes(router, schemas, resources)
    _change_routes(router, topics, schemas, resources, permissions)
    return router


def _read_routes(router: RouteGroup, schemas: SchemasPort) -> None:
    registry = schemas

    @router.get(PATH + "/schema")
    async def get_schema(tenant: PathText, namespace: PathText, topic: NameText) -> Response:
        return answer(_shown(registry.latest(_topic(tenant, namespace, topic))))

    @router.get(PATH + "/schema/{version}")
    async def get_version(tenant: PathText, namespace: PathText, topic: NameText, version: PathText) -> Response:
        name = _topic(tenant, namespace, topic)
        try:
            number = int(version)
        except ValueError:
            raise InvalidValueError(f"version {version[:40]!r} is not a number") from None
        return answer(_shown(registry.get(name, number)))

    @router.get(PATH + "/schemas")
    async def get_all(tenant: PathText, namespace: PathText, topic: NameText) -> Response:
        versions = registry.versions(_topic(tenant, namespace, topic))
        return answer({"getSchemaResponses": [_shown(version) for version in versions]})

    @router.get(PATH + "/metadata")
    async def get_metadata(tenant: PathText, namespace: PathText, topic: NameText) -> Response:
        places = [_place(version) for version in registry.history(_topic(tenant, namespace, topic))]
        return answer({"info": places[-1], "index": places}) if places else done(200)


def _query_routes(router: RouteGroup, schemas: SchemasPort, resources: Resources) -> None:
    registry = schemas

    @router.post(PATH + "/compatibility")
    async def test_compatibility(tenant: PathText, namespace: PathText, topic: NameText, request: Request) -> Response:
        definition = await _definition(request)
        name = _topic(tenant, namespace, topic)
        _require_tenant(resources, name)
        _require_namespace(resources, name)
        await registry.require_compatible(name, definition)
        return answer({"schemaCompatibilityStrategy": registry.strategy(name), "compatibility": True}, 202)

    @router.post(PATH + "/version")
    async def find_version(tenant: PathText, namespace: PathText, topic: NameText, request: Request) -> Response:
        definition = await _definition(request)
        found = registry.find(_topic(tenant, namespace, topic), definition)
        return answer({"version": NO_VERSION if found is None else found.version})


def _change_routes(
    router: RouteGroup, topics: TopicsPort, schemas: SchemasPort, resources: Resources, permissions: Permissions
) -> None:
    registry = schemas

    @router.post(PATH + "/schema")
    async def post_schema(tenant: PathText, namespace: PathText, topic: NameText, request: Request) -> Response:
        definition = await _definition(request)
        name = _topic(tenant, namespace, topic)
        _require_namespace(resources, name)
        other = name.namesake
        # what is new becomes the schema of both (rule 10.2)
        there = topics.topic_exists(other) or resources.partitioned.count(other)
        if there and registry.find(name, definition) is None:
            permissions.require(request, TopicAccess(other, TopicOperation.PRODUCE), recorded=True)
        return answer({"version": {"version": await registry.add(name, definition, by_client=False)}})

    @router.delete(PATH + "/schema")
    async def delete_schema(tenant: PathText, namespace: PathText, topic: NameText, force: Flag = False) -> Response:
        name = _topic(tenant, namespace, topic)
        _require_tenant(resources, name)
        if force:
            await registry.purge(name)
            return answer({"version": NO_VERSION})
        return answer({"version": await registry.delete(name)})


def _topic(tenant: str, namespace: str, topic: str) -> TopicName:
    if not is_valid_entity(tenant) or not is_valid_entity(namespace):
        raise PreconditionFailedError("Topic name is not valid")
    return topic_name("persistent", tenant, namespace, topic)


def _require_tenant(resources: Resources, topic: TopicName) -> None:
    if not resources.tenants.exists(topic.tenant):
        raise NotFoundError("Tenant does not exist")


def _require_namespace(resources: Resources, topic: TopicName) -> None:
    if not resources.namespaces.takes_topics(topic.namespace):
        raise NotFoundError("Namespace does not exist")


async def _definition(request: Request) -> SchemaDefinition:
    """Parse the body ``{"type", "schema", "properties"}``."""
    body = await object_body(request)
    if body is None:
        raise InvalidValueError('expected {"type": ..., "schema": ..., "properties": {...}} as the body')
    kind, text = _type(body.get("type")), body.get("schema")
    if not isinstance(text, str):
        raise InvalidValueError('expected "schema" as a text; it is "" for types that need none')
    try:
        data = key_value.from_text(text) if kind is SchemaType.KEY_VALUE else text.encode()
        properties = _properties(body.get("properties"))
    except UnicodeEncodeError as error:
        raise InvalidValueError(f"the schema is not UTF-8: {error}") from None
    return SchemaDefinition(kind, data, properties)


def _type(name: Json) -> SchemaType:
    try:
        return SchemaType[str(name)]
    except KeyError:
        known = ", ".join(SchemaType.__members__)
        raise InvalidSchemaDataError(f"type {str(name)[:60]!r} is no schema type; known are {known}") from None


def _properties(given: Json) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, dict) or any(isinstance(value, dict | list) for value in given.values()):
        raise InvalidValueError('expected "properties" as a JSON object whose values are texts')
    found = {name: _text(value) for name, value in given.items() if value is not None}
    "".join((*found, *found.values())).encode()
    return found


def _text(value: Json) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _shown(version: SchemaVersion | None) -> JsonObject:
    if version is None:
        raise NotFoundError("Schema not found")
    given = version.definition
    pair = given.type is SchemaType.KEY_VALUE
    return {
        "version": version.version,
        "type": given.type.name,
        "timestamp": version.timestamp_ms,
        "data": key_value.to_text(given) if pair else given.data.decode(errors="replace"),
        "properties": dict(given.properties),
    }


def _place(version: SchemaVersion) -> JsonObject:
    return {"ledgerId": _NO_LEDGER, "entryId": _NO_LEDGER, "version": version.version}
