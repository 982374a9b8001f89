"""Definitions of Python's own classes: dataclasses, pydantic models and typed dicts.

| annotation | Avro |
| --- | --- |
| bool, int, float, str, bytes | boolean, long, double, string, bytes |
| `Int32`, `Float32` | int, float |
| datetime, date, time | timestamp-millis, date, time-micros |
| Decimal | bytes with decimal(38, 18), or as `DecimalOf(precision, scale)` says |
| UUID | string with uuid |
| an Enum class | an enum of the members' names |
| list, set, Sequence; dict, Mapping with text as keys | array; map |
| Optional, Union | a union; with None first, unless the default is a value |
| another such class | a record, defined where it is met first |

The text is what Java's client writes: no spaces, and a default wherever the class has one that a definition can say.
``_avro_namespace: ClassVar[str]`` is the namespace, and with ``_sorted_fields: ClassVar[bool] = True`` the fields stand
in the order of their names, as in what Java's client makes of a class.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import math
import types
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Final, NamedTuple, NotRequired, Required, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from pydantic import BaseModel
from typing_extensions import ReadOnly, is_typeddict

from magnetar.client.errors import ValueTypeError
from magnetar.client.values.value_schema import shown

_DEPTH_MAX: Final = 100
_NO_DEFAULT: Final = object()


class AvroTypeName(NamedTuple):
    """Says in an annotation which primitive type a Python type is: ``Annotated[int, AvroTypeName("int")]``."""

    name: str


class DecimalOf(NamedTuple):
    """Says in an annotation how exact a Decimal is: ``Annotated[Decimal, DecimalOf(9, 2)]``."""

    precision: int
    scale: int = 0


Int32 = Annotated[int, AvroTypeName("int")]
Float32 = Annotated[float, AvroTypeName("float")]

_TYPES: Final[dict[Any, Any]] = {
    bool: "boolean",
    int: "long",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null",
    None: "null",
    dt.datetime: {"type": "long", "logicalType": "timestamp-millis"},
    dt.date: {"type": "int", "logicalType": "date"},
    dt.time: {"type": "long", "logicalType": "time-micros"},
    UUID: {"type": "string", "logicalType": "uuid"},
    Decimal: {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 18},
}
_ARRAYS: Final = (list, set, frozenset, Sequence, MutableSequence)
_MAPS: Final = (dict, Mapping, MutableMapping)


class _ClassField(NamedTuple):
    name: str
    annotation: Any
    default: Any


class ClassDefinition:
    """The definition of a class, and how its values are made of decoded ones."""

    def __init__(self, cls: type) -> None:
        """Raises ValueTypeError for an annotation that no Avro type is for."""
        self.made: dict[str, Callable[[Any], Any]] = {}
        self._classes: dict[str, type] = {}
        self.document: Any = self._named_class(cls, cls.__name__, "", 0)

    @property
    def text(self) -> str:
        """The definition as it is registered."""
        return json.dumps(self.document, separators=(",", ":"), ensure_ascii=False)

    def _type(self, annotation: Any, path: str, namespace: str, depth: int) -> Any:
        if depth > _DEPTH_MAX:
            raise ValueTypeError(f"{path}: more than {_DEPTH_MAX} types inside each other")
        try:
            known = _TYPES.get(annotation)
        except TypeError:
            known = None
        if known is not None:
            return known
        origin, arguments = get_origin(annotation), get_args(annotation)
        if origin is Annotated:
            return self._annotated(arguments, path, namespace, depth)
        if origin in (Required, NotRequired, ReadOnly):
            return self._type(arguments[0], path, namespace, depth + 1)
        if origin in (Union, types.UnionType):
            return self._union(arguments, path, namespace, depth, null_first=True)
        if origin in _ARRAYS and len(arguments) == 1:
            return {"type": "array", "items": self._type(arguments[0], f"{path}[]", namespace, depth + 1)}
        if origin in _MAPS and len(arguments) == 2:
            if arguments[0] is not str:
                raise ValueTypeError(f"{path}: keys of an Avro map are str, not {_name(arguments[0])}")
            return {"type": "map", "values": self._type(arguments[1], f"{path}{{}}", namespace, depth + 1)}
        if isinstance(annotation, type) and (issubclass(annotation, Enum) or _is_record(annotation)):
            return self._named_class(annotation, path, namespace, depth)
        raise ValueTypeError(
            f"{path}: no Avro type for {_name(annotation)}; take one of {', '.join(_name(one) for one in _TYPES)}, an "
            "Enum, list[…], dict[str, …], Optional, Union, a dataclass, a pydantic model or a TypedDict"
        )

    def _annotated(self, arguments: tuple[Any, ...], path: str, namespace: str, depth: int) -> Any:
        for extra in arguments[1:]:
            if isinstance(extra, AvroTypeName):
                return extra.name
            if isinstance(extra, DecimalOf):
                if not 0 <= extra.scale <= extra.precision or not extra.precision:
                    raise ValueTypeError(f"{path}: decimal({extra.precision}, {extra.scale}) has no digits")
                return {
                    "type": "bytes", "logicalType": "decimal", "precision": extra.precision, "scale": extra.scale
                }  # fmt: skip
        return self._type(arguments[0], path, namespace, depth + 1)

    def _union(self, arguments: Any, path: str, namespace: str, depth: int, *, null_first: bool) -> list[Any]:
        nulls = [one for one in arguments if one is type(None)]
        others = [one for one in arguments if one is not type(None)]
        ordered = nulls + others if null_first else others + nulls
        return [self._type(one, path, namespace, depth + 1) for one in ordered]

    def _named_class(self, cls: type, path: str, namespace: str, depth: int) -> Any:
        given = getattr(cls, "_avro_namespace", None)
        own = given if isinstance(given, str) else namespace
        full = f"{own}.{cls.__name__}" if own else cls.__name__
        known = self._classes.get(full)
        if known is cls:
            return full
        if known is not None:
            raise ValueTypeError(f"{path}: two classes are {full} in Avro: {known!r} and {cls!r}; give one a namespace")
        self._classes[full] = cls
        document: dict[str, Any] = {"type": "record", "name": cls.__name__}
        if isinstance(given, str) and given:
            document["namespace"] = given
        if issubclass(cls, Enum):
            members = cls.__members__
            self.made[full] = members.__getitem__
            return document | {"type": "enum", "symbols": [member.name for member in cls]}
        try:
            fields = _fields_of(cls)
        except (NameError, TypeError) as error:
            raise ValueTypeError(f"{path}: an annotation cannot be resolved: {error}") from None
        if fields is None:
            raise ValueTypeError(f"{path}: {_name(cls)} is no dataclass, pydantic model, TypedDict or Record")
        if dataclasses.is_dataclass(cls):
            self.made[full] = _maker(cls, fields)
        elif issubclass(cls, BaseModel):
            self.made[full] = lambda record: cls.model_validate(record, by_name=True, by_alias=False)
        if getattr(cls, "_sorted_fields", False) is True:
            fields = sorted(fields, key=lambda one: one.name)
        document["fields"] = [self._field(one, f"{path}.{one.name}", own, depth) for one in fields]
        return document

    def _field(self, field: _ClassField, path: str, namespace: str, depth: int) -> dict[str, Any]:
        origin = get_origin(field.annotation)
        if origin in (Union, types.UnionType):
            first = field.default is _NO_DEFAULT or field.default is None
            arguments = _default_first(get_args(field.annotation), field.default)
            kind: Any = self._union(arguments, path, namespace, depth, null_first=first)
        else:
            kind = self._type(field.annotation, path, namespace, depth + 1)
        found = {"name": field.name, "type": kind}
        said = _NO_DEFAULT if field.default is _NO_DEFAULT else _said(field.default)
        if said is not _NO_DEFAULT:
            found["default"] = said
        return found


def _is_record(cls: type) -> bool:
    return dataclasses.is_dataclass(cls) or issubclass(cls, BaseModel) or is_typeddict(cls)


def _fields_of(cls: type) -> list[_ClassField] | None:
    """Return the fields of a class in order, None if it is of no kind that is known."""
    if dataclasses.is_dataclass(cls):
        hints = get_type_hints(cls, include_extras=True)
        return [
            _ClassField(one.name, hints[one.name], _default_of(one.default, one.default_factory, dataclasses.MISSING))
            for one in dataclasses.fields(cls)
            if one.init
        ]
    if issubclass(cls, BaseModel):
        hints = get_type_hints(cls, include_extras=True)
        return [
            _ClassField(
                name,
                hints[name],
                _NO_DEFAULT if one.is_required() else _default_of(one.default, one.default_factory, None),
            )
            for name, one in cls.model_fields.items()
        ]
    if is_typeddict(cls):
        optional: frozenset[str] = getattr(cls, "__optional_keys__", frozenset())
        found = []
        for name, hint in get_type_hints(cls, include_extras=True).items():
            if get_origin(hint) is NotRequired or (name in optional and get_origin(hint) is not Required):
                plain = get_args(hint)[0] if get_origin(hint) is NotRequired else hint
                found.append(_ClassField(name, Union[plain, None], None))  # noqa: UP007  # of any annotation
            else:
                found.append(_ClassField(name, hint, _NO_DEFAULT))
        return found
    return None


def _maker(cls: type, fields: Sequence[_ClassField]) -> Callable[[Any], Any]:
    """Return what makes an object of a record, whose lists become the sets that the class says."""
    shaped = {one.name: shape for one in fields if (shape := _shape(one.annotation)) is not None}
    if not shaped:
        return lambda record: cls(**record)

    def make(record: dict[str, Any]) -> Any:
        for name, shape in shaped.items():
            record[name] = shape(record[name])
        return cls(**record)

    return make


def _shape(annotation: Any) -> Callable[[Any], Any] | None:
    """Return what makes sets of lists in a value; None where there are none."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _shape(arguments[0])
    if origin in (Union, types.UnionType):
        others = [one for one in arguments if one is not type(None)]
        shape = _shape(others[0]) if len(others) == 1 else None
        return None if shape is None else lambda value: None if value is None else shape(value)
    if origin in _MAPS and len(arguments) == 2:
        inner = _shape(arguments[1])
        return None if inner is None else lambda value: {key: inner(one) for key, one in value.items()}
    if origin not in _ARRAYS or len(arguments) != 1:
        return None
    item = _shape(arguments[0])
    if origin in (set, frozenset):
        whole: Callable[[Any], Any] = origin
        return whole if item is None else lambda value: whole(map(item, value))
    return None if item is None else lambda value: [item(one) for one in value]


def _default_first(arguments: tuple[Any, ...], default: Any) -> tuple[Any, ...]:
    """Return a union's types with that of the default first: Avro's defaults are of the first branch."""

    def of(one: Any) -> Any:
        plain = get_args(one)[0] if get_origin(one) is Annotated else one
        return get_origin(plain) or plain

    found = [one for one in arguments if of(one) is type(default)]
    return (*found[:1], *(one for one in arguments if one is not found[0])) if found else arguments


def _default_of(default: Any, factory: Any, missing: Any) -> Any:
    if factory is not None and factory is not dataclasses.MISSING:
        try:
            made = factory()
        except TypeError:  # pydantic's factories may want the fields before
            return _NO_DEFAULT
        return made if made in ([], {}) else _NO_DEFAULT  # others may give another value each time
    return _NO_DEFAULT if default is missing and missing is not None else default


def _said(default: Any) -> Any:
    """Return a default as a definition says it; `_NO_DEFAULT` for one that it cannot say."""
    if isinstance(default, Enum):
        return default.name
    if isinstance(default, float) and not math.isfinite(default):
        return _NO_DEFAULT
    if default is None or isinstance(default, bool | int | float | str):
        return default
    if isinstance(default, bytes):
        return default.decode("latin-1")
    if isinstance(default, list | tuple | set | frozenset) and not default:
        return []
    return {} if default == {} else _NO_DEFAULT


def _name(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else shown(annotation)
