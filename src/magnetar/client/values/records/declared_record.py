"""Records as the official Python client declares them: a class whose attributes are fields.

    class User(Record):
        _avro_namespace = "shop"
        name = String(required=True)
        age = Integer()

The definition is that client's, byte for byte. What it lacks: fields of a base class are fields of the derived one, and
lists, maps and enums stand inside each other.
"""

from __future__ import annotations

import copy
from enum import Enum, EnumMeta
from typing import Any, ClassVar, Final, cast

from magnetar.client.errors import ValueTypeError
from magnetar.client.values.records.record_fields import CustomEnum, Field
from magnetar.client.values.value_schema import shown

_OPTIONS: Final = ("default", "required_default", "required")
"""What a record as a field of another one is made with, in this order."""
_OWN: Final = frozenset({"_default", "_required", "_required_default"})
_TAKEN: Final = _OWN | {"_avro_namespace", "_sorted_fields", "_fields", "schema", "schema_info", "validate_type"}
"""What no field can be called, since a record is asked for its definition by these names."""


class RecordMeta(type):
    """Collects the fields of a record's class."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> RecordMeta:
        fields: dict[str, Any] = {}
        for base in reversed(bases):
            fields.update(getattr(base, "_fields", {}))
        for attribute, value in list(namespace.items()):
            if isinstance(value, EnumMeta) and not attribute.startswith("_"):
                value = CustomEnum(cast(type[Enum], value))
            elif isinstance(value, RecordMeta):
                value = value()
            if isinstance(value, Field | DeclaredRecord if bases else Field):
                if attribute in _TAKEN:
                    raise ValueTypeError(f"{name}: no field of a Record can be called {attribute}; take a dataclass")
                fields[attribute] = value
        namespace["_fields"] = fields
        return super().__new__(mcs, name, bases, namespace)


class DeclaredRecord(metaclass=RecordMeta):
    """The root of declared records; `magnetar.schema.Record` is its public name."""

    _avro_namespace: ClassVar[str | None] = None
    _sorted_fields: ClassVar[bool] = False
    """Whether the definition has the fields in alphabetical order, as some Java classes have."""
    _fields: ClassVar[dict[str, Any]]
    _default: Any
    _required: bool
    _required_default: bool

    def __init__(self, *given: Any, **values: Any) -> None:
        """Make a record of ``values``; as the attribute of another record's class, a field of that, for which it takes
        ``default``, ``required_default`` and ``required`` unless these are fields of its own.

        Raises ValueTypeError for a value that its field does not take, or of a field that is not there.
        """
        options = {"default": None, "required_default": False, "required": False}
        options |= zip(_OPTIONS, given, strict=False)
        options |= {name: values.pop(name) for name in _OPTIONS if name in values and name not in self._fields}
        set_plainly = super().__setattr__
        for name in _OPTIONS:
            set_plainly(f"_{name}", options[name])
        unknown = values.keys() - self._fields.keys()
        if unknown:
            raise ValueTypeError(f"{type(self).__name__} has no field {', '.join(sorted(unknown))}")
        for name, field in self._fields.items():
            if name in values:
                setattr(self, name, _nested(field, values[name]))
            elif isinstance(field, DeclaredRecord):
                set_plainly(name, copy.deepcopy(field))
            else:
                set_plainly(name, copy.deepcopy(field.default()))

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the definition."""
        found: dict[str, Any] = cls.schema_info(set())
        return found

    @classmethod
    def schema_info(cls, defined_names: set[str]) -> Any:
        """Return the definition, or the name where it is among ``defined_names`` already."""
        namespace = cls._avro_namespace
        full = cls.__name__ if namespace is None else f"{namespace}.{cls.__name__}"
        if full in defined_names:
            return full
        defined_names.add(full)
        found: dict[str, Any] = {"type": "record", "name": cls.__name__}
        if namespace is not None:
            found["namespace"] = namespace
        names = sorted(cls._fields) if cls._sorted_fields else list(cls._fields)
        found["fields"] = [_field_definition(name, cls._fields[name], defined_names) for name in names]
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _OWN:
            field = self._fields.get(name)
            if field is None:
                raise AttributeError(f"{type(self).__name__} has no field {name}")
            value = field.validate_type(name, value)
        super().__setattr__(name, value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeclaredRecord) or self._fields.keys() != other._fields.keys():
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._fields)

    __hash__ = None  # type: ignore[assignment]  # records change

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self._fields)})"

    def __str__(self) -> str:
        return str({name: getattr(self, name) for name in self._fields})

    def type(self) -> str:
        """Return the name of the record."""
        return type(self).__name__

    def python_type(self) -> Any:
        """Return the class."""
        return type(self)

    def default(self) -> Any:
        """Return the default of this record as a field."""
        return self._default

    def required_default(self) -> bool:
        """Whether the definition says the default."""
        return self._required_default

    def validate_type(self, name: str, val: Any) -> Any:
        """Return the record that this one as a field takes for ``val``. Raises ValueTypeError."""
        if val is None and not self._required:
            return copy.deepcopy(self._default)
        if not isinstance(val, type(self)):
            raise ValueTypeError(
                f"field {name!r}: {type(self).__name__} is expected, not {type(val).__name__} {shown(val)}"
            )
        return val


def _field_definition(name: str, field: Any, defined: set[str]) -> dict[str, Any]:
    plain = field.schema_info(defined)
    kind = plain if field._required or plain == "null" else ["null", plain]
    if not field._required_default:
        return {"name": name, "type": kind}
    # A record's own method may be hidden by a field of that name.
    default = field._default if isinstance(field, DeclaredRecord) else field.default()
    return {"name": name, "default": _said(default), "type": kind}


def _said(default: Any) -> Any:
    """Return a default as the definition says it."""
    if isinstance(default, DeclaredRecord):
        return {name: _said(getattr(default, name)) for name in default._fields}
    if isinstance(default, list):
        return [_said(one) for one in default]
    if isinstance(default, dict):
        return {key: _said(one) for key, one in default.items()}
    if isinstance(default, bytes):
        return default.decode("latin-1")
    return getattr(default, "name", default)


def _nested(field: Any, value: Any) -> Any:
    """Return a value in which the dicts that stand for records are records."""
    if isinstance(field, DeclaredRecord):
        return type(field)(**value) if isinstance(value, dict) else value
    item = getattr(field, "item", None)
    if item is None:
        return value
    if isinstance(value, list):
        return [_nested(item, one) for one in value]
    if isinstance(value, dict):
        return {key: _nested(item, one) for key, one in value.items()}
    return value
