"""Values in Avro's binary form, by the schema that each message was written with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, overload

from typing_extensions import TypeVar

from magnetar.client.errors import SchemaError
from magnetar.client.values.avro.decoder import AvroDecoder
from magnetar.client.values.avro.encoder import AvroEncoder
from magnetar.client.values.records.record_source import RecordSource
from magnetar.client.values.schema_info import ClientSchemaInfo
from magnetar.client.values.value_schema import ValueSchema
from magnetar.model.schemas import SchemaDefinition, SchemaType
from magnetar.schema_definitions.avro import AvroSchemaError
from magnetar.schema_definitions.avro_types import AvroUnion
from magnetar.schema_definitions.validation import parsed

R = TypeVar("R", default=dict[str, Any])


class AvroSchema(ValueSchema[R], Generic[R]):
    """Avro of a declared record, a dataclass, a pydantic model, a typed dict, or a definition."""

    by_version = True

    @overload
    def __init__(self, record_cls: type[R], schema_definition: None = None) -> None: ...
    @overload
    def __init__(self: AvroSchema[dict[str, Any]], record_cls: None, schema_definition: Any) -> None: ...
    def __init__(self, record_cls: type[R] | None, schema_definition: Any = None) -> None:
        """``schema_definition``: a dict or JSON text in place of a class; values are dicts then. Raises SchemaError."""
        self._source = RecordSource(record_cls, schema_definition)
        if isinstance(self._source.tree, AvroUnion):
            raise SchemaError("a union is no schema to the registry; put it into a field of a record")
        self._encoder = AvroEncoder(self._source.tree)
        self._own = AvroDecoder(self._source.tree, self._source.tree, self._source.made)

    def encode(self, obj: R) -> bytes:
        self._source.require(obj)
        return self._encoder.encode(obj)

    def decode(self, data: bytes) -> R:
        found: R = self._own.decode(data)
        return found

    def schema_info(self) -> ClientSchemaInfo:
        return ClientSchemaInfo(SchemaType.AVRO, "AVRO", self._source.text.encode())

    def decoder(self, writer: SchemaDefinition | None) -> Callable[[bytes], R]:
        """Return what reads payloads of a version. Raises SchemaError if this schema can read nothing of it."""
        if writer is None or writer.data == self._source.text.encode():
            return self.decode
        if writer.type is not SchemaType.AVRO:
            raise SchemaError(f"it was written as {writer.type.name}, and is read as AVRO")
        try:
            return AvroDecoder(parsed(writer.data), self._source.tree, self._source.made).decode
        except AvroSchemaError as error:
            raise SchemaError(f"the registry's definition is no Avro: {error}") from None

    def __str__(self) -> str:
        return f"AvroSchema({self._source.name})"
