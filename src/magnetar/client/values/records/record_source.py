"""What structured schemas are made from: a declared record, a dataclass, a pydantic model, a typed dict, a definition.

All become the same three things: the text that is registered, its tree, and how the application's values are made.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from magnetar.client.errors import SchemaError, ValueTypeError
from magnetar.client.values.records.class_definition import ClassDefinition
from magnetar.client.values.records.declared_record import DeclaredRecord
from magnetar.client.values.records.record_fields import CustomEnum
from magnetar.client.values.value_schema import shown
from magnetar.schema_definitions.avro import AvroSchemaError, parse
from magnetar.schema_definitions.avro_types import AvroSchema


class RecordSource:
    """One class or definition."""

    def __init__(self, record_cls: Any, schema_definition: Any = None) -> None:
        """``schema_definition`` is the dict, list or JSON text of a definition, for values that are dicts.

        Raises SchemaError for what is no Avro definition, ValueTypeError for a class of another kind.
        """
        if (record_cls is None) == (schema_definition is None):
            raise ValueTypeError("give a class or a definition, and not both")
        self.record_cls = record_cls
        self._classes: dict[str, type] = {}
        self.made: dict[str, Callable[[Any], Any]] = {}
        """By the full names of records and enums: what makes the application's value of a decoded one."""
        self.declared = isinstance(record_cls, type) and issubclass(record_cls, DeclaredRecord)
        """Whether it is a class of the official client's kind, whose JSON has bytes as text."""
        self.text = self._text(schema_definition)
        try:
            self.tree: AvroSchema = parse(self.text.encode())
        except AvroSchemaError as error:
            raise SchemaError(f"{self.name}: no Avro definition: {error}") from None

    @property
    def name(self) -> str:
        """The name of the class, for errors."""
        return "the definition" if self.record_cls is None else str(self.record_cls.__name__)

    def _text(self, definition: Any) -> str:
        cls = self.record_cls
        if cls is None:
            if isinstance(definition, bytes):
                return definition.decode(errors="replace")
            if isinstance(definition, str):
                return definition
            try:
                return json.dumps(definition, indent=1, allow_nan=False)
            except (TypeError, ValueError, RecursionError) as error:
                raise SchemaError(f"the definition is no JSON: {error}") from None
        if not isinstance(cls, type):
            raise ValueTypeError(f"a schema is made of a class, not of {shown(cls)}")
        if issubclass(cls, DeclaredRecord):
            self._gather(cls, cls._avro_namespace or "")
            try:
                return json.dumps(cls.schema(), indent=1, allow_nan=False)  # as the official client writes it
            except ValueError as error:
                raise SchemaError(f"{self.name}: a default that no definition can say: {error}") from None
        found = ClassDefinition(cls)
        self.made = found.made
        return found.text

    def _gather(self, cls: type[DeclaredRecord], namespace: str) -> None:
        full = f"{namespace}.{cls.__name__}" if namespace else cls.__name__
        if self._is_known(full, cls):
            return
        self.made[full] = lambda record: cls(**record)
        waiting = [(field, namespace) for field in cls._fields.values()]
        while waiting:
            field, inherited = waiting.pop()
            if isinstance(field, DeclaredRecord):
                self._gather(type(field), type(field)._avro_namespace or inherited)
            elif isinstance(field, CustomEnum):
                name = field.enum_type.__name__
                known = f"{inherited}.{name}" if inherited else name
                if not self._is_known(known, field.enum_type):
                    self.made[known] = _member_of(field.enum_type)
            elif (item := getattr(field, "item", None)) is not None:
                waiting.append((item, inherited))

    def _is_known(self, full: str, cls: type) -> bool:
        """Note the class of a name in Avro. Raises ValueTypeError if another one has it: its definition would count."""
        known = self._classes.setdefault(full, cls)
        if known is not cls:
            raise ValueTypeError(
                f"{self.name}: two classes are {full} in Avro: {known!r} and {cls!r}; rename one, or give it "
                "a namespace"
            )
        return full in self.made

    def require(self, value: object) -> None:
        """Raise ValueTypeError unless a value is of the class; without one, a mapping is what a record takes."""
        cls = self.record_cls
        if cls is None or (isinstance(value, Mapping) and issubclass(cls, Mapping)):
            return
        if not isinstance(value, cls):
            raise ValueTypeError(f"{self.name} is expected, not {type(value).__name__} {shown(value)}")


def _member_of(enum_type: type[Enum]) -> Callable[[Any], Any]:
    """Return what finds a member by its name or, as the official client writes JSON, by its value."""
    members = enum_type.__members__
    return lambda said: members[said] if isinstance(said, str) and said in members else enum_type(said)
