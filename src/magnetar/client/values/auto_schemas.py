"""Schemas that take what the topic has: values of whatever was written, and bytes that are what is registered."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, Mapping
from typing import Any, Final

from magnetar.client.errors import SchemaError
from magnetar.client.values import primitives
from magnetar.client.values.avro_schema import AvroSchema
from magnetar.client.values.json_schema import JsonSchema
from magnetar.client.values.key_value_schema import KeyValueEncodingType, KeyValueSchema
from magnetar.client.values.schema_info import ClientSchemaInfo
from magnetar.client.values.value_schema import ReceivedContent, ValueSchema, require_type
from magnetar.model.errors import InvalidSchemaDataError
from magnetar.model.schemas import SchemaDefinition, SchemaType
from magnetar.schema_definitions import key_value, protobuf_native

_PRIMITIVES: Final[dict[SchemaType, type[ValueSchema[Any]]]] = {
    SchemaType.NONE: primitives.BytesSchema,
    SchemaType.BYTES: primitives.BytesSchema,
    SchemaType.STRING: primitives.StringSchema,
    SchemaType.BOOLEAN: primitives.BooleanSchema,
    SchemaType.INT8: primitives.Int8Schema,
    SchemaType.INT16: primitives.Int16Schema,
    SchemaType.INT32: primitives.Int32Schema,
    SchemaType.INT64: primitives.Int64Schema,
    SchemaType.FLOAT: primitives.FloatSchema,
    SchemaType.DOUBLE: primitives.DoubleSchema,
    SchemaType.DATE: primitives.DateSchema,
    SchemaType.TIME: primitives.TimeSchema,
    SchemaType.TIMESTAMP: primitives.TimestampSchema,
    SchemaType.INSTANT: primitives.InstantSchema,
    SchemaType.LOCAL_DATE: primitives.LocalDateSchema,
    SchemaType.LOCAL_TIME: primitives.LocalTimeSchema,
    SchemaType.LOCAL_DATE_TIME: primitives.LocalDateTimeSchema,
}


class GenericRecord(Mapping[str, Any]):
    """A record of whatever schema it was written with: a mapping of its fields, with the schema beside it."""

    __slots__ = ("_fields", "definition")

    def __init__(self, fields: Mapping[str, Any], definition: SchemaDefinition) -> None:
        self._fields = dict(fields)
        self.definition = definition
        """What the registry has of its version."""

    def __getitem__(self, name: str) -> Any:
        return self._fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def schema_type(self) -> SchemaType:
        """Return whether it was written as AVRO or JSON."""
        return self.definition.type

    def get_field(self, name: str) -> Any:
        """Return a field. Raises KeyError."""
        return self._fields[name]

    def get_fields(self) -> ItemsView[str, Any]:
        """Return names and values, in the order of the schema."""
        return self._fields.items()

    def __repr__(self) -> str:
        return f"GenericRecord({self._fields!r})"


class AutoConsumeSchema(ValueSchema[Any]):
    """Values of whatever each message was written with.

    Records of AVRO and JSON are `GenericRecord`, pairs `KeyValue` of such, protobuf messages are of a class made of
    their descriptors, the primitive types are Python's; messages without a schema are bytes.
    """

    by_version = True

    def encode(self, obj: Any) -> bytes:
        raise SchemaError("AutoConsumeSchema is for consumers and readers; produce with AutoProduceBytesSchema")

    def decode(self, data: bytes) -> bytes:
        return data

    def schema_info(self) -> ClientSchemaInfo:
        return ClientSchemaInfo(SchemaType.AUTO_CONSUME, "AutoConsume")

    def content_decoder(self, writer: SchemaDefinition | None) -> Callable[[ReceivedContent], Any]:
        if writer is None:
            return lambda content: content.data()
        schema = schema_of(writer)
        decode = schema.content_decoder(writer)
        if isinstance(schema, KeyValueSchema):
            return decode
        return _generic(decode, writer)


class AutoProduceBytesSchema(ValueSchema[bytes]):
    """Bytes that are a value of the topic's schema already; each is decoded once to be sure.

    On a topic without a schema all bytes pass, and nothing is registered.
    """

    def __init__(self, definition: SchemaDefinition | None = None) -> None:
        """``definition``: what the topic has, where the client has asked for it."""
        self._info: ClientSchemaInfo | None = None
        self._decode: Callable[[bytes], Any] | None = None
        if definition is not None and definition.type not in (SchemaType.NONE, SchemaType.BYTES):
            self._info = ClientSchemaInfo(
                definition.type, definition.type.name, definition.data, dict(definition.properties)
            )
            schema = schema_of(definition)
            if not schema.separates_key:
                self._decode = schema.decoder(definition)
            elif isinstance(schema, KeyValueSchema):  # the payload is the value alone
                self._decode = schema.value_schema.decode

    def bound_to(self, definition: SchemaDefinition | None) -> AutoProduceBytesSchema:
        """Return the schema for a topic that has ``definition``. Raises SchemaError for one it cannot check."""
        return AutoProduceBytesSchema(definition)

    def encode(self, obj: bytes) -> bytes:
        require_type(obj, bytes, "a value of AutoProduceBytesSchema")
        if self._decode is not None:
            try:
                self._decode(obj)
            except SchemaError as error:
                assert self._info is not None
                raise SchemaError(f"these bytes are no value of the topic's {self._info.type.name}: {error}") from None
        return obj

    def decode(self, data: bytes) -> bytes:
        return data

    def schema_info(self) -> ClientSchemaInfo:
        return self._info or ClientSchemaInfo(SchemaType.BYTES, "BYTES")


def schema_of(definition: SchemaDefinition) -> ValueSchema[Any]:
    """Return a schema for values of a definition of the registry. Raises SchemaError if there can be none."""
    kind = definition.type
    if kind is SchemaType.AVRO:
        return AvroSchema(None, definition.data)
    if kind is SchemaType.JSON:
        return JsonSchema(None, definition.data)
    if kind is SchemaType.PROTOBUF_NATIVE:
        return _native(definition)
    if kind is SchemaType.KEY_VALUE:
        try:
            parts = key_value.split(definition)
        except InvalidSchemaDataError as error:
            raise SchemaError(f"the registry's definition: {error}") from None
        separated = definition.properties.get("kv.encoding.type") == "SEPARATED"
        encoding = KeyValueEncodingType.SEPARATED if separated else KeyValueEncodingType.INLINE
        return KeyValueSchema(_Generic(parts.key), _Generic(parts.value), encoding)
    primitive = _PRIMITIVES.get(kind)
    if primitive is None:
        raise SchemaError(f"values of {kind.name} cannot be read without the class they were made of")
    return primitive()


class _Generic(ValueSchema[Any]):
    """One side of a pair of the registry's."""

    def __init__(self, definition: SchemaDefinition) -> None:
        self._definition = definition
        self._schema = schema_of(definition)

    def encode(self, obj: Any) -> bytes:
        return self._schema.encode(obj)

    def decode(self, data: bytes) -> Any:
        found = self._schema.decode(data)
        return GenericRecord(found, self._definition) if isinstance(found, dict) else found

    def schema_info(self) -> ClientSchemaInfo:
        return self._schema.schema_info()


def _generic(decode: Callable[[ReceivedContent], Any], writer: SchemaDefinition) -> Callable[[ReceivedContent], Any]:
    def read(content: ReceivedContent) -> Any:
        found = decode(content)
        return GenericRecord(found, writer) if isinstance(found, dict) else found

    return read


def _native(definition: SchemaDefinition) -> ValueSchema[Any]:
    from google.protobuf.message_factory import GetMessageClass

    from magnetar.client.values.protobuf_schemas import ProtobufNativeSchema

    try:
        return ProtobufNativeSchema(GetMessageClass(protobuf_native.descriptor(definition.data)))
    except InvalidSchemaDataError as error:
        raise SchemaError(f"the registry's definition: {error}") from None
