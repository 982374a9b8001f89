"""Schemas and values of messages that are sent: bytes, string, ``json:DEFINITION``, ``avro:DEFINITION``, and a key with
a value (rules of group 10)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from magnetar.cli.messages.avro_value import avro_bytes, avro_schema
from magnetar.model.errors import InvalidValueError
from magnetar.protocol.commands import Schema, SchemaType

ENCODINGS: Final = ("separated", "inline")


@dataclass(frozen=True, slots=True)
class PayloadSchema:
    """What one side of a message is, and how text becomes its bytes."""

    kind: SchemaType
    definition: str

    @staticmethod
    def parse(text: str) -> PayloadSchema:
        """Parse what -vs and -ks say. Raises InvalidValueError."""
        word, separator, definition = text.partition(":")
        if text in ("bytes", "string"):
            return PayloadSchema(SchemaType.STRING if text == "string" else SchemaType.NONE, "")
        if separator and word in ("json", "avro"):
            if word == "avro":
                avro_schema(definition)
                return PayloadSchema(SchemaType.AVRO, definition)
            if (wrong := _no_json(definition)) is not None:
                raise InvalidValueError(f"json: the definition is no JSON: {wrong}")
            return PayloadSchema(SchemaType.JSON, definition)
        raise InvalidValueError(f"Invalid schema type: {text}; write bytes, string, json:DEFINITION or avro:DEFINITION")

    def encode(self, data: bytes) -> bytes:
        """Return the payload for what the user wrote. Raises InvalidValueError."""
        if self.kind is SchemaType.AVRO:
            return avro_bytes(self.definition, data.decode(errors="replace"))
        if self.kind is SchemaType.JSON and (wrong := _no_json(data)) is not None:
            raise InvalidValueError(f"{data[:60]!r} is no JSON: {wrong}")
        if self.kind is SchemaType.STRING:
            try:
                data.decode()
            except UnicodeDecodeError as error:
                raise InvalidValueError(f"a string is UTF-8: {error}") from None
        return data

    @property
    def registered(self) -> Schema | None:
        """What the broker registers; None for bytes."""
        if self.kind is SchemaType.NONE:
            return None
        return Schema("client", self.definition.encode(), self.kind)


def _no_json(text: str | bytes) -> str | None:
    """Return why a text is no JSON; None if it is."""
    try:
        json.loads(text)
    except RecursionError:
        return "too many levels inside each other"
    except ValueError as error:
        return str(error)
    return None


def key_value_schema(key: PayloadSchema, value: PayloadSchema, encoding: str) -> Schema:
    """Return the schema of a key with a value (rule 10.13)."""
    parts = [part.definition.encode() for part in (key, value)]
    data = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    properties = []
    for side, part in (("key", key), ("value", value)):
        properties += [
            (f"{side}.schema.name", "client" if part.definition else ""),
            (f"{side}.schema.type", _TYPE_NAMES[part.kind]),
            (f"{side}.schema.properties", "{}"),
        ]
    return Schema("KeyValue", data, SchemaType.KEY_VALUE, (*properties, ("kv.encoding.type", encoding.upper())))


_TYPE_NAMES: Final = {
    SchemaType.NONE: "BYTES",
    SchemaType.STRING: "STRING",
    SchemaType.JSON: "JSON",
    SchemaType.AVRO: "AVRO",
}


def inline_value(key: bytes | None, value: bytes) -> bytes:
    """Return the payload that holds both (rule 10.13)."""
    head = (0xFFFFFFFF).to_bytes(4, "big") if key is None else len(key).to_bytes(4, "big") + key
    return head + len(value).to_bytes(4, "big") + value
