"""What a client says about its schema when it opens a producer or consumer (rules 10.1, 10.3)."""

from __future__ import annotations

from dataclasses import dataclass, field

from magnetar.model.schemas import SchemaDefinition, SchemaType
from magnetar.protocol.commands import Schema

_NOT_SENT = frozenset({SchemaType.BYTES, SchemaType.NONE, SchemaType.AUTO_CONSUME, SchemaType.AUTO_PUBLISH})
"""Types that exist in clients alone; AUTO_CONSUME is said to the broker, by `ClientSchemaInfo.subscribed` only."""


@dataclass(frozen=True, slots=True)
class ClientSchemaInfo:
    """A schema's type, name, definition and properties; `magnetar.schema.SchemaInfo` is its public name."""

    type: SchemaType
    label: str
    data: bytes = b""
    properties: dict[str, str] = field(default_factory=dict)

    def schema_type(self) -> SchemaType:
        """Return the type."""
        return self.type

    def name(self) -> str:
        """Return the name that the registry keeps beside the definition."""
        return self.label

    def schema(self) -> str:
        """Return the definition as text; one that is no text has its bytes as Latin-1."""
        try:
            return self.data.decode()
        except UnicodeDecodeError:
            return self.data.decode("latin-1")

    @property
    def definition(self) -> SchemaDefinition:
        """The schema as the rules about definitions take it."""
        return SchemaDefinition(self.type, self.data, self.properties)

    def registered(self) -> Schema | None:
        """Return what a producer registers; None for bytes, which are no schema to a broker (rule 10.1)."""
        if self.type in _NOT_SENT:
            return None
        return Schema(self.label, self.data, self.type, tuple(self.properties.items()))

    def subscribed(self) -> Schema | None:
        """Return what a consumer subscribes with: the broker checks no consumer that says AUTO_CONSUME (rule 10.8)."""
        if self.type is SchemaType.AUTO_CONSUME:
            return Schema(self.label, b"", SchemaType.AUTO_CONSUME)
        return self.registered()
