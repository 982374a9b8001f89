"""A key and a value, each with a schema of its own (rule 10.13).

INLINE, both are the payload: ``[i32 length][key][i32 length][value]``, length -1 for None. SEPARATED, the payload is
the value, and the key is the message's key, in base64, by which partitions, Key_Shared and compaction go.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeVar

from magnetar.client.errors import SchemaError
from magnetar.client.values.schema_info import ClientSchemaInfo
from magnetar.client.values.value_schema import ReceivedContent, ValueSchema, require_type
from magnetar.model.errors import InvalidSchemaDataError
from magnetar.model.schemas import SchemaDefinition, SchemaType
from magnetar.schema_definitions import key_value

K = TypeVar("K")
V = TypeVar("V")


class KeyValue(NamedTuple, Generic[K, V]):
    """A key and a value; either may be None."""

    key: K
    value: V


class KeyValueEncodingType(Enum):
    """The place of the key: in the payload, or in the message's metadata."""

    INLINE = "INLINE"
    SEPARATED = "SEPARATED"


class KeyValueSchema(ValueSchema[KeyValue[K, V]], Generic[K, V]):
    """The schema of a key with a value; ``KeyValueSchema(StringSchema(), AvroSchema(Order), SEPARATED)``."""

    def __init__(
        self,
        key: ValueSchema[K],
        value: ValueSchema[V],
        encoding: KeyValueEncodingType = KeyValueEncodingType.INLINE,
    ) -> None:
        """Raises ValueTypeError for what is no schema, SchemaError for a pair within a pair."""
        for what, part in (("key", key), ("value", value)):
            require_type(part, ValueSchema, f"the schema of the {what}")
            if isinstance(part, KeyValueSchema):
                raise SchemaError(f"the schema of the {what} is one of key and value: Pulsar has no pair within a pair")
        require_type(encoding, KeyValueEncodingType, "the encoding")
        self.key_schema = key
        self.value_schema = value
        self.encoding = encoding

    @property
    def needs_versions(self) -> bool:
        """Whether one of both does."""
        return self.key_schema.needs_versions or self.value_schema.needs_versions

    @property
    def separates_key(self) -> bool:
        """Whether the key is the message's key."""
        return self.encoding is KeyValueEncodingType.SEPARATED

    def encode(self, obj: KeyValue[K, V]) -> bytes:
        key, value = _pair(obj)
        encoded = None if value is None else self.value_schema.encode(value)
        if self.separates_key:
            return b"" if encoded is None else encoded
        return join_inline(None if key is None else self.key_schema.encode(key), encoded)

    def key_of(self, obj: KeyValue[K, V]) -> bytes | None:
        """Return the key's bytes. Raises SchemaError for None, which no message's key is."""
        if not self.separates_key:
            return None
        key, _ = _pair(obj)
        if key is None:
            raise SchemaError("a key that is SEPARATED may not be None; use INLINE")
        return self.key_schema.encode(key)

    def decode(self, data: bytes) -> KeyValue[K, V]:
        """Return the pair of an INLINE payload. Raises SchemaError."""
        return self.decoder(None)(data)

    def decoder(self, writer: SchemaDefinition | None) -> Callable[[bytes], KeyValue[K, V]]:
        """Return what reads INLINE payloads of a version."""
        if self.separates_key:
            raise SchemaError("the key is not in the payload; use message.value()")
        key, value = self._parts(writer)
        return lambda data: _decoded(*split_inline(data), key, value)

    def content_decoder(self, writer: SchemaDefinition | None) -> Callable[[ReceivedContent], KeyValue[K, V]]:
        """Return what reads messages of a version, by the encoding that the writer said."""
        key, value = self._parts(writer)
        said = None if writer is None else writer.properties.get("kv.encoding.type")
        if (self.encoding.value if said is None else said) == "SEPARATED":
            return SeparatedPairs(key, value)  # type: ignore[return-value]  # None is no pair, as for any schema
        return lambda content: _decoded(*split_inline(content.data()), key, value)

    def _parts(self, writer: SchemaDefinition | None) -> tuple[Callable[[bytes], K], Callable[[bytes], V]]:
        if writer is None:
            return self.key_schema.decoder(None), self.value_schema.decoder(None)
        if writer.type is not SchemaType.KEY_VALUE:
            raise SchemaError(f"it was written as {writer.type.name}, and is read as KEY_VALUE")
        try:
            parts = key_value.split(writer)
        except InvalidSchemaDataError as error:
            raise SchemaError(f"the registry's definition: {error}") from None
        return self.key_schema.decoder(parts.key), self.value_schema.decoder(parts.value)

    def schema_info(self) -> ClientSchemaInfo:
        parts = {"key": self.key_schema.schema_info(), "value": self.value_schema.schema_info()}
        properties = {}
        for side, part in parts.items():
            properties[f"{side}.schema.name"] = part.label
            properties[f"{side}.schema.type"] = part.type.name
            properties[f"{side}.schema.properties"] = json.dumps(part.properties, separators=(",", ":"))
        properties["kv.encoding.type"] = self.encoding.value
        data = key_value.join(_said(parts["key"]), _said(parts["value"]))
        return ClientSchemaInfo(SchemaType.KEY_VALUE, "KeyValue", data, properties)

    def __str__(self) -> str:
        return f"KeyValueSchema({self.key_schema}, {self.value_schema}, {self.encoding.value})"


class SeparatedPairs(Generic[K, V]):
    """Reads messages whose key is the key of a pair; a message without a value is a pair if it has a key."""

    def __init__(self, key: Callable[[bytes], K], value: Callable[[bytes], V]) -> None:
        self._key, self._value = key, value

    def __call__(self, content: ReceivedContent) -> KeyValue[K, V] | None:
        """Return the pair of a message, None for one that has neither part. Raises SchemaError."""
        data = None if content.has_null_value() and not content.data() else content.data()
        if data is None and not content.has_key():
            return None
        return _decoded(content.key_bytes() if content.has_key() else None, data, self._key, self._value)


def _said(part: ClientSchemaInfo) -> bytes:
    """Return a part's definition as Java's client writes it: the registry compares pairs byte by byte (rule 10.4)."""
    return b"" if part.type is SchemaType.STRING else part.data


def _pair(obj: object) -> tuple[Any, Any]:
    if not isinstance(obj, tuple) or len(obj) != 2:
        require_type(obj, KeyValue, "a value of KeyValueSchema")
    pair: Any = obj
    return pair[0], pair[1]


def join_inline(key: bytes | None, value: bytes | None) -> bytes:
    """Return the payload of an INLINE pair."""
    return b"".join(
        struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part for part in (key, value)
    )


def split_inline(data: bytes) -> tuple[bytes | None, bytes | None]:
    """Return key and value of an INLINE payload. Raises SchemaError."""
    parts: list[bytes | None] = []
    at = 0
    for what in ("key", "value"):
        if len(data) < at + 4:
            raise SchemaError(f"the payload of {len(data)} bytes ends before the length of the {what}")
        (size,) = struct.unpack_from(">i", data, at)
        at += 4
        if size < -1 or at + size > len(data):
            raise SchemaError(f"the {what} should have {size} bytes where {len(data) - at} are left")
        parts.append(None if size < 0 else data[at : at + size])
        at += max(size, 0)
    if at != len(data):
        raise SchemaError(f"{len(data) - at} bytes follow the value")
    return parts[0], parts[1]


def _decoded(
    key: bytes | None, value: bytes | None, decode_key: Callable[[bytes], K], decode_value: Callable[[bytes], V]
) -> KeyValue[K, V]:
    # None where there is none: what the types say is what the schemas make of bytes
    return KeyValue(
        None if key is None else decode_key(key),  # type: ignore[arg-type]  # as said above
        None if value is None else decode_value(value),  # type: ignore[arg-type]  # likewise
    )
