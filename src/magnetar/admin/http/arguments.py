"""What a route's function is called with, read from the request by the function's signature.

A parameter that the path names comes from the path, a `Request` is the request, any other comes from the query, unless
a :class:`RequestParameter` in its annotation says otherwise. Its annotation says how the text is read: ``str``,
``int``, ``bool``, a ``Literal`` of words, each also with ``| None``, or ``list[str]``. The signature is read once for
each function in the source, however many applications there are.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_args, get_origin

from starlette.requests import Request

from magnetar.admin.values.json_document import excerpt
from magnetar.model.errors import MagnetarError

Reading = Callable[[str], Any]
"""Makes a value of a text, or raises ValueError saying what is expected."""

_WHOLE: Final = re.compile(r"\s*[-+]?[0-9]{1,100}(?:\.0+)?\s*", re.ASCII)
_TRUE: Final = frozenset(("true", "1", "yes", "on", "y", "t"))
_FALSE: Final = frozenset(("false", "0", "no", "off", "n", "f"))


class WrongParameterError(MagnetarError):
    """A part of the path, the query or the head that is missing or has the wrong type."""

    status = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestParameter:
    """Says more of a parameter than its type, within ``Annotated``."""

    name: str | None = None
    """In the request, where it differs from the function's."""
    header: bool = False
    """Whether it comes from the head."""
    read: Reading | None = None
    """Takes the place of what the type says."""
    at_least: int | None = None
    at_most: int | None = None


@dataclass(frozen=True, slots=True)
class Together:
    """Parameters of a function of their own, within ``Annotated``; what it returns is the argument."""

    make: Callable[..., Any]


class _One(NamedTuple):
    """One argument."""

    argument: str
    where: Literal["path", "query", "header"]
    name: str
    read: Reading
    default: Any
    many: bool

    def found(self, request: Request) -> Any:
        """Return its value. Raises WrongParameterError."""
        given: str | list[str] | None
        if self.where == "path":
            given = request.path_params.get(self.name)
        elif self.where == "header":
            given = request.headers.get(self.name)
        elif self.many:
            given = request.query_params.getlist(self.name) or None
        else:
            given = request.query_params.get(self.name)
        if given is None:
            if self.default is inspect.Parameter.empty:
                raise WrongParameterError(f"{self.where} parameter {self.name} is missing")
            return self.default
        if isinstance(given, list):
            return given
        try:
            return self.read(given)
        except ValueError as error:
            raise WrongParameterError(
                f"{self.where} parameter {self.name}: {excerpt(given)} is not accepted: expected {error}"
            ) from None


class Arguments:
    """How the arguments of one function are found."""

    def __init__(self, function: Callable[..., Any], in_path: Iterable[str]) -> None:
        """Raises TypeError about an annotation that says nothing about a request."""
        self._ones: list[_One] = []
        self._groups: list[tuple[str, Callable[..., Any], Arguments]] = []
        self._request: str | None = None
        path = frozenset(in_path)
        evaluated = _annotations(function)
        for parameter in inspect.signature(function).parameters.values():
            self._add(parameter, evaluated[parameter.name], path)
        # what is wrong with the path is said first
        self._ones.sort(key=lambda one: one.where != "path")

    def _add(self, parameter: inspect.Parameter, annotation: Any, path: frozenset[str]) -> None:
        if annotation is Request:
            self._request = parameter.name
            return
        kind, said = annotation, RequestParameter()
        if get_origin(annotation) is Annotated:
            kind, said = get_args(annotation)[:2]
            if isinstance(said, Together):
                self._groups.append((parameter.name, said.make, Arguments(said.make, ())))
                return
        name = said.name or parameter.name
        where: Literal["path", "query", "header"] = "header" if said.header else "path" if name in path else "query"
        many = list[str] in (kind, *get_args(kind))
        read = said.read or (str if many else _bounded(_reading(kind, parameter.name), said))
        self._ones.append(_One(parameter.name, where, name, read, parameter.default, many))

    def of(self, request: Request) -> dict[str, Any]:
        """Return the arguments. Raises WrongParameterError for the first that is missing or wrong."""
        found = {one.argument: one.found(request) for one in self._ones}
        for name, make, arguments in self._groups:
            found[name] = make(**arguments.of(request))
        if self._request is not None:
            found[self._request] = request
        return found


_known: dict[tuple[types.CodeType, str], Arguments] = {}


def arguments_of(function: Callable[..., Any], path: str, in_path: Iterable[str]) -> Arguments:
    """Return how the arguments of the function that serves ``path`` are found."""
    key = function.__code__, path
    found = _known.get(key)
    if found is None:
        found = _known[key] = Arguments(function, in_path)
    return found


_evaluated: dict[tuple[int, str], Any] = {}


def _annotations(function: Callable[..., Any]) -> Mapping[str, Any]:
    """Return the annotations as types; texts are evaluated once for each module."""
    known: dict[str, Any] = {}
    for name, annotation in function.__annotations__.items():
        if isinstance(annotation, str):
            key = id(function.__globals__), annotation
            if key not in _evaluated:
                _evaluated[key] = eval(annotation, function.__globals__)
            known[name] = _evaluated[key]
        else:
            known[name] = annotation
    return known


def _reading(kind: Any, name: str) -> Reading:
    """Return what reads a text as that type. Raises TypeError."""
    if get_origin(kind) in (Union, types.UnionType):
        kinds = [one for one in get_args(kind) if one is not type(None)]
        if len(kinds) == 1:
            kind = kinds[0]
    if get_origin(kind) is Literal:
        return _word(get_args(kind))
    found = _READINGS.get(kind)
    if found is None:
        raise TypeError(f"parameter {name}: no text of a request is read as {kind!r}")
    return found


def whole(text: str) -> int:
    """Read a whole number of 64 bits, as those of bodies are: a longer one is a slip, and would skip or move by all
    there is. Raises ValueError."""
    if _WHOLE.fullmatch(text) is None:
        raise ValueError("a whole number")
    found = int(text.strip().partition(".")[0])
    if not -(1 << 63) <= found < 1 << 63:
        raise ValueError("a whole number within 64 bits")
    return found


def truth(text: str) -> bool:
    """Read true or false. Raises ValueError."""
    word = text.lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError("true or false")


def _word(words: tuple[str, ...]) -> Reading:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(" or ".join(words))
        return text

    return read


def _bounded(read: Reading, said: RequestParameter) -> Reading:
    low, high = said.at_least, said.at_most
    if low is None and high is None:
        return read

    def bounded(text: str) -> Any:
        value = read(text)
        if (low is not None and value < low) or (high is not None and value > high):
            raise ValueError(f"a number from {low} to {high}")
        return value

    return bounded


_READINGS: Final[Mapping[Any, Reading]] = {str: str, int: whole, bool: truth}
