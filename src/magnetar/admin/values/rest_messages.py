"""The body of a REST produce request: its schema, and its messages as they will be sent."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass

from magnetar.admin.values import coercion
from magnetar.admin.values.json_document import read_document
from magnetar.admin.values.payloads import encoder
from magnetar.config.setting_field import LONG_MAX
from magnetar.model.errors import InvalidSchemaDataError, InvalidValueError, MagnetarError
from magnetar.model.policies import Json, JsonObject
from magnetar.model.schemas import SchemaDefinition, SchemaType
from magnetar.schema_definitions import key_value

_REFUSED = "Fail to add or retrieve schema."


@dataclass(frozen=True, slots=True)
class RestMessage:
    """One message, encoded by its schema."""

    payload: bytes
    key: str | bytes | None
    properties: Mapping[str, str]
    event_time: int | None
    sequence_id: int | None
    deliver_at: int | None
    deliver_after_ms: int | None
    replication_clusters: tuple[str, ...]
    disable_replication: bool


def schema_of(body: JsonObject) -> SchemaDefinition:
    """The schema that a body gives, STRING if it gives none. Raises InvalidSchemaDataError."""
    value = _schema(body.get("valueSchema")) or SchemaDefinition(SchemaType.STRING)
    key = _schema(body.get("keySchema"))
    if key is None:
        return value
    properties = {
        "key.schema.name": "", "key.schema.type": key.type.name, "key.schema.properties": "{}",
        "value.schema.name": "", "value.schema.type": value.type.name, "value.schema.properties": "{}",
        "kv.encoding.type": "SEPARATED",
    }  # fmt: skip
    return SchemaDefinition(SchemaType.KEY_VALUE, key_value.join(key.data, value.data), properties)


def _schema(given: Json) -> SchemaDefinition | None:
    """A schema, which stands in the body as a text of JSON."""
    if given is None or given == "":
        return None
    try:
        found = read_document(coercion.text(given).encode()) if not isinstance(given, dict) else given
        if not isinstance(found, dict):
            raise InvalidSchemaDataError(_REFUSED)
        kind = SchemaType[str(found.get("type"))]
        data = base64.b64decode(str(found.get("schema") or ""), validate=True)
        return SchemaDefinition(kind, data, coercion.texts(found.get("properties")))
    except (KeyError, binascii.Error, InvalidValueError) as error:
        raise InvalidSchemaDataError(f"{_REFUSED} {error}") from None


def messages_of(body: JsonObject, schema: SchemaDefinition) -> list[RestMessage]:
    """All messages of a body, or none: raises InvalidValueError about the first that is wrong."""
    given = body.get("messages")
    if not isinstance(given, list):
        raise InvalidValueError('expected "messages" as a list')
    key: SchemaDefinition | None = None
    if schema.type is SchemaType.KEY_VALUE:
        key, schema = key_value.split(schema)
    encode, encode_key = encoder(schema), None if key is None else encoder(key)
    found = []
    for number, one in enumerate(given):
        try:
            if not isinstance(one, dict):
                raise InvalidValueError("expected a JSON object")
            payload, text = one.get("payload"), one.get("key")
            if payload is None:
                raise InvalidValueError('expected "payload" as a text')
            name = None if text is None else coercion.text(text, "a text as key")
            found.append(
                RestMessage(
                    encode(coercion.text(payload, "a text as payload")),
                    encode_key(name) if encode_key is not None and name is not None else name,
                    coercion.texts(one.get("properties"), "properties as a JSON object of texts"),
                    _time(one.get("eventTime"), "eventTime"),
                    _time(one.get("sequenceId"), "sequenceId") or None,
                    _time(one.get("deliverAt"), "deliverAt") or None,
                    _time(one.get("deliverAfterMs"), "deliverAfterMs", coercion.DELAY_MS_MAX) or None,
                    _names(one.get("replicationClusters")),
                    coercion.flag(one.get("disableReplication") or False),
                )
            )
        except MagnetarError as error:
            raise InvalidValueError(f"message {number}, and so none of them: {error}") from None
    return found


def _time(given: Json, what: str, most: int = LONG_MAX) -> int | None:
    if given is None or given == "":
        return None
    return coercion.number(given, f"a whole number as {what}", least=0, most=most)


def _names(given: Json) -> tuple[str, ...]:
    if given is None:
        return ()
    if not isinstance(given, list):
        raise InvalidValueError("expected replicationClusters as a list of texts")
    return tuple(coercion.text(one) for one in given)
