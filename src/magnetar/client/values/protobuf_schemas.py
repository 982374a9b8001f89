"""Protobuf messages, registered by their descriptors (PROTOBUF_NATIVE) or by an Avro view of them (PROTOBUF)."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, EncodeError, Message

from magnetar.client.errors import SchemaError, ValueTypeError
from magnetar.client.values.schema_info import ClientSchemaInfo
from magnetar.client.values.value_schema import ValueSchema, require_type, shown
from magnetar.model.schemas import SchemaDefinition, SchemaType

M = TypeVar("M", bound=Message)


class _OfMessages(ValueSchema[M], Generic[M]):
    """What both kinds have in common: the payload is the message itself."""

    _kind: SchemaType

    def __init__(self, record_cls: type[M]) -> None:
        """``record_cls`` is a class that protoc made. Raises ValueTypeError for another one."""
        given: Any = record_cls
        if not (isinstance(given, type) and issubclass(given, Message)):
            raise ValueTypeError(f"{type(self).__name__} takes a class that protoc made, not {shown(record_cls)}")
        self._record_cls = record_cls

    def encode(self, obj: M) -> bytes:
        require_type(obj, self._record_cls, f"a value of {self}")
        try:
            return obj.SerializeToString()
        except (EncodeError, ValueError) as error:
            raise SchemaError(f"a value of {self}: {error}") from None

    def decode(self, data: bytes) -> M:
        try:
            found: M = self._record_cls.FromString(data)
        except DecodeError as error:
            raise SchemaError(f"the payload is no {self._record_cls.DESCRIPTOR.full_name}: {error}") from None
        return found

    def decoder(self, writer: SchemaDefinition | None) -> Callable[[bytes], M]:
        """Return what reads payloads: protobuf's own rules of evolution are those of its decoder."""
        if writer is not None and writer.type is not self._kind:
            raise SchemaError(f"it was written as {writer.type.name}, and is read as {self._kind.name}")
        return self.decode

    def __str__(self) -> str:
        return f"{type(self).__name__}({self._record_cls.__name__})"


class ProtobufNativeSchema(_OfMessages[M], Generic[M]):
    """Messages whose descriptors are registered, as the official client registers them (rule 10.14)."""

    _kind = SchemaType.PROTOBUF_NATIVE

    def schema_info(self) -> ClientSchemaInfo:
        from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

        root = self._record_cls.DESCRIPTOR
        files = FileDescriptorSet()
        seen: set[str] = set()

        def collect(file: Any) -> None:
            if file.name not in seen:
                for needed in file.dependencies:
                    collect(needed)
                seen.add(file.name)
                proto = FileDescriptorProto()
                file.CopyToProto(proto)
                files.file.append(proto)

        collect(root.file)
        document = {
            "fileDescriptorSet": base64.b64encode(files.SerializeToString()).decode(),
            "rootMessageTypeName": root.full_name,
            "rootFileDescriptorName": root.file.name,
        }
        return ClientSchemaInfo(SchemaType.PROTOBUF_NATIVE, "PROTOBUF_NATIVE", json.dumps(document, indent=1).encode())


class ProtobufSchema(_OfMessages[M], Generic[M]):
    """Messages that are registered as Java's older kind does it: by an Avro view of their fields.

    The view serves the registry's comparisons alone. Optional fields have their defaults, so that adding and removing
    fields stays compatible.
    """

    _kind = SchemaType.PROTOBUF

    def schema_info(self) -> ClientSchemaInfo:
        view = _AvroView().record(cast(Descriptor, self._record_cls.DESCRIPTOR))
        return ClientSchemaInfo(SchemaType.PROTOBUF, "PROTOBUF", json.dumps(view, separators=(",", ":")).encode())


_AVRO: Final = {
    FieldDescriptor.CPPTYPE_INT32: ("int", 0),
    FieldDescriptor.CPPTYPE_INT64: ("long", 0),
    FieldDescriptor.CPPTYPE_UINT32: ("int", 0),
    FieldDescriptor.CPPTYPE_UINT64: ("long", 0),
    FieldDescriptor.CPPTYPE_DOUBLE: ("double", 0),
    FieldDescriptor.CPPTYPE_FLOAT: ("float", 0),
    FieldDescriptor.CPPTYPE_BOOL: ("boolean", False),
    FieldDescriptor.CPPTYPE_STRING: ("string", ""),
}


class _AvroView:
    def __init__(self) -> None:
        self._seen: set[str] = set()

    def record(self, message: Descriptor) -> Any:
        """Return the record of a message, or its name where it was met before."""
        full = message.full_name
        if full in self._seen:
            return full
        self._seen.add(full)
        return {
            "type": "record",
            "name": message.name,
            "namespace": full.rpartition(".")[0],
            "fields": [self._field(field) for field in message.fields],
        }

    def _field(self, field: FieldDescriptor) -> dict[str, Any]:
        kind, default = self._type(field)
        if field.is_repeated:
            return {"name": field.name, "type": {"type": "array", "items": kind}, "default": []}
        return {"name": field.name, "type": kind, "default": default}

    def _type(self, field: FieldDescriptor) -> tuple[Any, Any]:
        if field.message_type is not None:
            return ["null", self.record(field.message_type)], None
        if field.enum_type is not None:
            kind = field.enum_type
            symbols = [value.name for value in kind.values]
            if kind.full_name in self._seen:
                return kind.full_name, symbols[0]
            self._seen.add(kind.full_name)
            space = kind.full_name.rpartition(".")[0]
            return {"type": "enum", "name": kind.name, "namespace": space, "symbols": symbols}, symbols[0]
        if field.type == FieldDescriptor.TYPE_BYTES:
            return "bytes", ""
        return _AVRO[field.cpp_type]
