"""What every schema is: bytes from a value, a value from bytes, and a definition that the registry keeps.

A schema says nothing about a connection and keeps nothing of one, so that one may be shared by any number of producers,
consumers and threads. What depends on a topic, which versions its messages were written with, is `SchemaReading`'s.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Generic, Protocol

from typing_extensions import TypeVar

from magnetar.client.errors import SchemaError, ValueTypeError
from magnetar.client.values.schema_info import ClientSchemaInfo
from magnetar.model.schemas import SchemaDefinition

T = TypeVar("T", default=Any)


class ReceivedContent(Protocol):
    """What a decoder needs of a message."""

    def data(self) -> bytes: ...
    def has_null_value(self) -> bool: ...
    def has_key(self) -> bool: ...
    def key_bytes(self) -> bytes: ...


class ValueSchema(ABC, Generic[T]):
    """The root of all schemas; `magnetar.schema.Schema` is its public name."""

    by_version: ClassVar[bool] = False
    """Whether what was written can be read only by one who knows the schema it was written with."""

    @abstractmethod
    def encode(self, obj: T) -> bytes:
        """Return the payload of a value. Raises `SchemaError` with the place in it."""

    @abstractmethod
    def decode(self, data: bytes) -> T:
        """Return the value of a payload that was written with this very schema. Raises `SchemaError`."""

    @abstractmethod
    def schema_info(self) -> ClientSchemaInfo:
        """Return what is registered."""

    @property
    def needs_versions(self) -> bool:
        """Whether a consumer has to ask for the definition of each version that it meets."""
        return self.by_version

    def decoder(self, writer: SchemaDefinition | None) -> Callable[[bytes], T]:
        """Return what reads payloads that were written with ``writer``, None if that is not known.

        Raises `SchemaError` if this schema cannot read what that one wrote.
        """
        return self.decode

    def content_decoder(self, writer: SchemaDefinition | None) -> Callable[[ReceivedContent], T]:
        """Do the same for messages, of which a key may be a part of the value."""
        decode = self.decoder(writer)
        return lambda content: decode(content.data())

    def key_of(self, obj: T) -> bytes | None:
        """Return the part of a value that is sent as the message's key; None: the value has no such part."""
        return None

    @property
    def separates_key(self) -> bool:
        """Whether `key_of` gives the message's key."""
        return False

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    __str__ = __repr__


def require_type(value: object, expected: type | tuple[type, ...], what: str) -> None:
    """Raise ValueTypeError unless ``value`` is of a type; True is no number."""
    types = expected if isinstance(expected, tuple) else (expected,)
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        names = " or ".join(one.__name__ for one in types)
        raise ValueTypeError(f"{what}: {names} is expected, not {type(value).__name__} {shown(value)}")


def shown(value: object) -> str:
    """Return a value as an error shows it, in 60 characters at most."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def undecodable(what: str, error: Exception) -> SchemaError:
    """Return the error about a payload that is not what its schema says."""
    return error if isinstance(error, SchemaError) else SchemaError(f"{what}: {str(error) or type(error).__name__}")
