"""Fields of records that are declared as the official Python client declares them: ``name = String(required=True)``.

A field that is not ``required`` may be None, which the definition says as a union with null. A default stands in the
definition only with ``required_default``; without, it is what a new record begins with.
"""

from __future__ import annotations

from enum import Enum, EnumMeta
from typing import Any, ClassVar, cast

from magnetar.client.errors import ValueTypeError
from magnetar.client.values.value_schema import shown


class Field:
    """One field of a record."""

    _kind: ClassVar[str] = ""
    _types: ClassVar[Any] = ()

    def __init__(self, default: Any = None, required: bool = False, required_default: bool = False) -> None:
        self._required = required
        self._required_default = required_default
        self._default = None
        if default is not None:
            self._default = self.validate_type("default", default)

    def type(self) -> str:
        """Return the name of the Avro type."""
        return self._kind

    def python_type(self) -> Any:
        """Return the type or types that values have."""
        return self._types if len(self._types) != 1 else self._types[0]

    def default(self) -> Any:
        """Return what a new record begins with."""
        return self._default

    def required_default(self) -> bool:
        """Whether the definition says the default."""
        return self._required_default

    def schema(self) -> Any:
        """Return the type as it stands in a definition."""
        return self.schema_info(set())

    def schema_info(self, defined_names: set[str]) -> Any:
        """Return the same where the types in ``defined_names`` are defined already."""
        return self.type()

    def validate_type(self, name: str, val: Any) -> Any:
        """Return the value that the field takes for ``val``. Raises ValueTypeError."""
        if val is None and not self._required:
            return self.default()
        if not isinstance(val, self._types) or (isinstance(val, bool) and bool not in self._types):
            raise ValueTypeError(
                f"field {name!r}: {' or '.join(one.__name__ for one in self._types)} is expected, "
                f"not {type(val).__name__} {shown(val)}"
            )
        return val


class Null(Field):
    """Always None."""

    _kind = "null"
    _types = (type(None),)


class Boolean(Field):
    """True or false; a new record begins with False."""

    _kind = "boolean"
    _types = (bool,)

    def default(self) -> Any:
        return False if self._default is None else self._default


class Integer(Field):
    """Whole numbers of 32 bits."""

    _kind = "int"
    _types = (int,)


class Long(Field):
    """Whole numbers of 64 bits."""

    _kind = "long"
    _types = (int,)


class Double(Field):
    """Numbers of 64 bits; whole ones are taken, too."""

    _kind = "double"
    _types = (float, int)

    def validate_type(self, name: str, val: Any) -> Any:
        found = super().validate_type(name, val)
        try:
            return float(found) if isinstance(found, int) else found
        except OverflowError:
            raise ValueTypeError(f"field {name!r}: {shown(val)} is too large for a {self._kind}") from None


class Float(Double):
    """Numbers of 32 bits; whole ones are taken, too."""

    _kind = "float"


class Bytes(Field):
    """Bytes; text is taken as UTF-8."""

    _kind = "bytes"
    _types = (bytes, str)

    def validate_type(self, name: str, val: Any) -> Any:
        found = super().validate_type(name, val)
        return found.encode() if isinstance(found, str) else found


class String(Field):
    """Text; bytes are taken as UTF-8."""

    _kind = "string"
    _types = (str, bytes)

    def validate_type(self, name: str, val: Any) -> Any:
        found = super().validate_type(name, val)
        return found.decode() if isinstance(found, bytes) else found


class CustomEnum(Field):
    """Members of an Enum; their names are the symbols."""

    _kind = "enum"

    def __init__(
        self, enum_type: type[Enum], default: Any = None, required: bool = False, required_default: bool = False
    ) -> None:
        given: Any = enum_type
        if not (isinstance(given, type) and issubclass(given, Enum)):
            raise ValueTypeError(f"CustomEnum takes an Enum class, not {shown(enum_type)}")
        self.enum_type = enum_type
        super().__init__(default, required, required_default)

    def python_type(self) -> Any:
        return self.enum_type

    def schema_info(self, defined_names: set[str]) -> Any:
        name = self.enum_type.__name__
        if name in defined_names:
            return name
        defined_names.add(name)
        return {"type": "enum", "name": name, "symbols": [member.name for member in self.enum_type]}

    def validate_type(self, name: str, val: Any) -> Any:
        """Return the member, of which the name or a number that is its value may be given."""
        if val is None or isinstance(val, self.enum_type):
            return val
        if isinstance(val, str) and val in self.enum_type.__members__:
            return self.enum_type[val]
        if isinstance(val, int) and not isinstance(val, bool):
            for member in self.enum_type:
                if member.value == val:
                    return member
        raise ValueTypeError(
            f"field {name!r}: {shown(val)} is no member of {self.enum_type.__name__} "
            f"({', '.join(self.enum_type.__members__)})"
        )


class _Container(Field):
    """A field of many values of one type."""

    def __init__(self, of: Any, default: Any = None, required: bool = False, required_default: bool = False) -> None:
        if isinstance(of, EnumMeta):
            of = CustomEnum(cast(type[Enum], of))
        elif isinstance(of, type) and hasattr(of, "_fields"):
            of = of()  # a record's class stands for a record
        if not hasattr(of, "validate_type"):
            raise ValueTypeError(f"{type(self).__name__} takes a field or a record, not {shown(of)}")
        self.item = of
        super().__init__(default, required, required_default)

    def _items(self, name: str, val: Any) -> Any:
        raise NotImplementedError

    def validate_type(self, name: str, val: Any) -> Any:
        return None if val is None else self._items(name, super().validate_type(name, val))


class Array(_Container):
    """A list of values of one type; ``Array(String())``."""

    _kind = "array"
    _types = (list,)

    @property
    def array_type(self) -> Any:
        """The type of the values."""
        return self.item

    def schema_info(self, defined_names: set[str]) -> Any:
        return {"type": "array", "items": self.item.schema_info(defined_names)}

    def _items(self, name: str, val: Any) -> Any:
        return [_item(self.item, f"{name}[{index}]", one) for index, one in enumerate(val)]


class Map(_Container):
    """A dict of text to values of one type; ``Map(Integer())``."""

    _kind = "map"
    _types = (dict,)

    @property
    def value_type(self) -> Any:
        """The type of the values."""
        return self.item

    def schema_info(self, defined_names: set[str]) -> Any:
        return {"type": "map", "values": self.item.schema_info(defined_names)}

    def _items(self, name: str, val: Any) -> Any:
        for key in val:
            if not isinstance(key, str):
                raise ValueTypeError(f"field {name!r}: keys are text, not {type(key).__name__} {shown(key)}")
        return {key: _item(self.item, f"{name}[{key!r}]", one) for key, one in val.items()}


def _item(field: Any, name: str, val: Any) -> Any:
    if val is None and not isinstance(field, Null):
        raise ValueTypeError(f"field {name!r}: a list or map holds no None")
    return field.validate_type(name, val)
