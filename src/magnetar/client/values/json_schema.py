"""Values as JSON, with a definition in Avro's form (rule 10.14)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Generic, overload

from typing_extensions import TypeVar

from magnetar.client.errors import SchemaError, ValueTypeError
from magnetar.client.values.json_values import JsonForm
from magnetar.client.values.records.record_source import RecordSource
from magnetar.client.values.schema_info import ClientSchemaInfo
from magnetar.client.values.value_schema import ValueSchema
from magnetar.model.schemas import SchemaDefinition, SchemaType

R = TypeVar("R", default=dict[str, Any])


class JsonSchema(ValueSchema[R], Generic[R]):
    """JSON of a declared record, a dataclass, a pydantic model, a typed dict, or a definition."""

    @overload
    def __init__(self, record_cls: type[R], schema_definition: None = None) -> None: ...
    @overload
    def __init__(self: JsonSchema[dict[str, Any]], record_cls: None, schema_definition: Any) -> None: ...
    def __init__(self, record_cls: type[R] | None, schema_definition: Any = None) -> None:
        """``schema_definition``: a dict or JSON text in place of a class; values are dicts then. Raises SchemaError."""
        self._source = RecordSource(record_cls, schema_definition)
        self._form = JsonForm(self._source.tree, self._source.made, bytes_as_text=self._source.declared)

    def encode(self, obj: R) -> bytes:
        self._source.require(obj)
        try:
            plain = self._form.write(obj)
            return json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        except (ValueError, TypeError, ArithmeticError, SchemaError, RecursionError) as error:
            raise ValueTypeError(f"{self._source.name}: {error}") from None

    def decode(self, data: bytes) -> R:
        try:
            found: R = self._form.read(json.loads(data))
        except (ValueError, TypeError, ArithmeticError, SchemaError, RecursionError) as error:
            raise SchemaError(f"the payload is no JSON of {self._source.name}: {error}") from None
        return found

    def schema_info(self) -> ClientSchemaInfo:
        return ClientSchemaInfo(SchemaType.JSON, "JSON", self._source.text.encode())

    def decoder(self, writer: SchemaDefinition | None) -> Callable[[bytes], R]:
        """Return what reads payloads: fields are found by name, so the writer's definition says nothing more."""
        if writer is not None and writer.type is not SchemaType.JSON:
            raise SchemaError(f"it was written as {writer.type.name}, and is read as JSON")
        return self.decode

    def __str__(self) -> str:
        return f"JsonSchema({self._source.name})"
