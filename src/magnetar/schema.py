"""Schemas: how values become bytes and what the registry keeps, with the names of the official Python client.

``Schema`` is the root of them; docs/client-schemas.md shows how they are used.
"""

from __future__ import annotations

from magnetar.client.errors import SchemaError, ValueTypeError
from magnetar.client.values.auto_schemas import AutoConsumeSchema, AutoProduceBytesSchema, GenericRecord
from magnetar.client.values.avro_schema import AvroSchema
from magnetar.client.values.json_schema import JsonSchema
from magnetar.client.values.key_value_schema import KeyValue, KeyValueEncodingType, KeyValueSchema
from magnetar.client.values.primitives import (
    BooleanSchema,
    BytesSchema,
    DateSchema,
    DoubleSchema,
    FloatSchema,
    InstantSchema,
    Int8Schema,
    Int16Schema,
    Int32Schema,
    Int64Schema,
    LocalDateSchema,
    LocalDateTimeSchema,
    LocalTimeSchema,
    StringSchema,
    TimeSchema,
    TimestampSchema,
)
from magnetar.client.values.protobuf_schemas import ProtobufNativeSchema, ProtobufSchema
from magnetar.client.values.records.class_definition import DecimalOf, Float32, Int32
from magnetar.client.values.records.declared_record import DeclaredRecord as Record
from magnetar.client.values.records.record_fields import (
    Array,
    Boolean,
    Bytes,
    CustomEnum,
    Double,
    Field,
    Float,
    Integer,
    Long,
    Map,
    Null,
    String,
)
from magnetar.client.values.schema_info import ClientSchemaInfo as SchemaInfo
from magnetar.client.values.value_schema import ValueSchema as Schema
from magnetar.model.schemas import SchemaType

__all__ = [
    "Array",
    "AutoConsumeSchema",
    "AutoProduceBytesSchema",
    "AvroSchema",
    "Boolean",
    "BooleanSchema",
    "Bytes",
    "BytesSchema",
    "CustomEnum",
    "DateSchema",
    "DecimalOf",
    "Double",
    "DoubleSchema",
    "Field",
    "Float",
    "Float32",
    "FloatSchema",
    "GenericRecord",
    "InstantSchema",
    "Int8Schema",
    "Int16Schema",
    "Int32",
    "Int32Schema",
    "Int64Schema",
    "Integer",
    "JsonSchema",
    "KeyValue",
    "KeyValueEncodingType",
    "KeyValueSchema",
    "LocalDateSchema",
    "LocalDateTimeSchema",
    "LocalTimeSchema",
    "Long",
    "Map",
    "Null",
    "ProtobufNativeSchema",
    "ProtobufSchema",
    "Record",
    "Schema",
    "SchemaError",
    "SchemaInfo",
    "SchemaType",
    "String",
    "StringSchema",
    "TimeSchema",
    "TimestampSchema",
    "ValueTypeError",
]
