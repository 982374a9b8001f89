"""The OpenAPI description of the REST interface (version 3.1), made from the table of operations.

``document`` builds it; that takes a third of a second, so a broker does it once, in a thread, when it is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from magnetar.admin_api.operation import MetricsText, Operation, Parameter, PlainText, RawMessage
from magnetar.admin_api.operations.catalogue import GROUPS, OPERATIONS
from magnetar.admin_api.path_parameters import PATH_PARAMETERS

Document = dict[str, Any]

_SCHEMAS: Final = "#/components/schemas/"
_REASON: Final = "Reason"
_JSON: Final = "application/json"
_TEXTS: Final[Mapping[object, str]] = {
    PlainText: "text/plain", MetricsText: "text/plain; version=0.0.4; charset=utf-8",
    RawMessage: "application/octet-stream",
}  # fmt: skip
_ABOUT: Final = """\
The REST interface of magnetar, which is that of Apache Pulsar with a few operations more (marked as magnetar's own).

Bodies are JSON in UTF-8, of 1 MiB at most. Every refusal is an object with `reason`. A change is answered when it is on
the disk. Names in paths are percent-encoded. A 307 names the broker that serves the topic; standalone answers none.
"""
_MESSAGE_HEADERS: Final = {
    "X-Pulsar-Message-ID": "Ledger and entry.",
    "X-Pulsar-publish-time": "When it was published.",
    "X-Pulsar-producer-name": "By whom.",
    "X-Pulsar-PROPERTY": "Its properties, as a JSON object.",
    "X-Pulsar-Broker-Entry-METADATA-index": "The message index of its last message, where the broker keeps it.",
    "X-Pulsar-num-batch-message": "The number of messages, if it is a batch.",
}
_OTHER: Final = {400: "The request is not understood", 404: "There is no such object", 412: "A name is not valid",
                 413: "The body is longer than 1 MiB", 415: "The body is not JSON",
                 401: "Not authenticated, or not permitted", 403: "Not permitted"}  # fmt: skip


def document(version: str, *, authentication: bool = False, servers: Iterable[str] = ()) -> Document:
    """Return the whole description; ``authentication``: whether clients have to say who they are."""
    types = _Types()
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation, types, authentication)
    components: Document = {
        "schemas": {**types.definitions(), _REASON: _reason()},
        "responses": {_shared(status): _refusal(reason) for status, reason in _OTHER.items()},
        "parameters": {f"path_{name}": _parameter(one, "path", types) for name, one in PATH_PARAMETERS.items()},
    }
    found: Document = {
        "openapi": "3.1.0",
        "info": {
            "title": "magnetar", "version": version, "summary": "Apache Pulsar's admin interface, in Python.",
            "description": _ABOUT, "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": url} for url in servers] or [{"url": "/"}],
        "tags": [{"name": name, "description": text} for name, text in GROUPS.items()],
        "paths": paths,
        "components": components,
    }  # fmt: skip
    if authentication:
        components["securitySchemes"] = _security()
        found["security"] = [{name: []} for name in components["securitySchemes"]]
    return found


class _Schemas(GenerateJsonSchema):
    """JSON schemas without the titles of members, which repeat their names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


class _Types:
    """The schemas of types, and the definitions of the models that they name."""

    def __init__(self) -> None:
        self._definitions: dict[str, JsonSchemaValue] = {}
        self._sent: set[str] = set()

    def of(self, kind: Any, *, sent: bool = False) -> JsonSchemaValue:
        """The schema of a type; ``sent``: in the body of a request."""
        if kind is PlainText:
            return {"type": "string"}
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
        schema = adapter.json_schema(ref_template=_SCHEMAS + "{model}", schema_generator=_Schemas)
        found: dict[str, JsonSchemaValue] = schema.pop("$defs", {})
        if "title" in schema and "properties" in schema:
            found[schema["title"]] = schema
            schema = {"$ref": _SCHEMAS + schema["title"]}
        self._definitions |= found
        if sent:
            self._sent |= found.keys()
        return schema

    def definitions(self) -> dict[str, JsonSchemaValue]:
        """All of them; of models that are in answers only, what is always there is required."""
        for name, schema in self._definitions.items():
            if name not in self._sent:
                always = [member for member, about in schema["properties"].items() if about.get("default") is not None]
                schema["required"] = sorted({*schema.get("required", ()), *always})
            schema.pop("additionalProperties", None)
        return dict(sorted(self._definitions.items()))


def _described(operation: Operation, types: _Types, authentication: bool) -> Document:
    own = "magnetar's own. " if operation.own else ""
    found: Document = {
        "operationId": operation.name.replace(".", "_"),
        "tags": [operation.group],
        "summary": operation.summary,
        "parameters": [
            *({"$ref": f"#/components/parameters/path_{name}"} for name in operation.path_parameters),
            *(_parameter(one, "query", types) for one in operation.query),
        ],
        "responses": _responses(operation, types, authentication),
    }
    if own or operation.description:
        found["description"] = own + operation.description
    if operation.body is not None:
        content = {"schema": types.of(operation.body, sent=True), "example": operation.example}
        found["requestBody"] = {"required": operation.body_required, "content": {_JSON: content}}
    return found


def _parameter(parameter: Parameter, place: str, types: _Types) -> Document:
    schema = types.of(parameter.type)
    if place == "path" and parameter.type is str:
        schema["minLength"] = 1
    if parameter.default is not None:
        schema["default"] = parameter.default
    found = {
        "name": parameter.name, "in": place, "required": place == "path" or parameter.required,
        "description": parameter.description, "schema": schema,
    }  # fmt: skip
    if parameter.example is not None:
        found["example"] = parameter.example
    return found


def _responses(operation: Operation, types: _Types, authentication: bool) -> Document:
    success: Document = {"description": "Done" if operation.answer is None else "The answer"}
    if operation.answer in _TEXTS:
        binary = operation.answer is RawMessage
        schema: Document = {} if binary else {"type": "string"}
        success["content"] = {_TEXTS[operation.answer]: {"schema": schema}}
        if binary:
            success["headers"] = {
                name: {"description": text, "schema": {"type": "string"}} for name, text in _MESSAGE_HEADERS.items()
            }
    elif operation.answer is not None:
        success["content"] = {_JSON: {"schema": types.of(operation.answer)}}
    found: Document = {str(operation.status): success}
    if operation.unset not in (0, operation.status):
        found[str(operation.unset)] = {"description": "It is not set"}
    for status, reason in sorted(_errors(operation, authentication).items()):
        shared = {"$ref": f"#/components/responses/{_shared(status)}"}
        found[str(status)] = shared if reason == _OTHER.get(status) else _refusal(reason)
    return found


def _shared(status: int) -> str:
    return f"Refused{status}"


def _refusal(reason: str) -> Document:
    return {"description": reason, "content": {_JSON: {"schema": {"$ref": _SCHEMAS + _REASON}}}}


def _errors(operation: Operation, authentication: bool) -> dict[int, str]:
    """What can be refused: by the parameters, by the body, by the rights, and what the row says."""
    statuses = {400} if operation.query or operation.path_parameters else set()
    if "namespace" in operation.path_parameters:
        statuses |= {404, 412}
    if operation.body is not None:
        statuses |= {400, 413, 415}
    if authentication:
        statuses |= {401, 403}
    return {**{status: _OTHER[status] for status in statuses}, **operation.errors}


def _reason() -> Document:
    return {
        "type": "object", "title": _REASON, "required": ["reason"], "description": "Why a request was refused.",
        "properties": {"reason": {"type": "string", "description": "For people; what is wrong, and the next step."}},
    }  # fmt: skip


def _security() -> Document:
    return {
        "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT",
                   "description": "A token, or an access token of OpenID Connect."},
        "basic": {"type": "http", "scheme": "basic", "description": "A user of the broker's .htpasswd file."},
        "mutualTLS": {"type": "mutualTLS", "description": "A client certificate, on the port with TLS."},
    }  # fmt: skip
