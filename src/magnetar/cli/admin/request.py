"""Makes one request of the row of a command and the values of its flags.

``{name}`` stands for an argument and ``{--flag}`` for a flag. ``{--flag?}`` leaves the parameter or the member of the
body out where the flag is not given, and ``{--flag|minutes}`` converts its value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, quote_plus

from magnetar.cli.admin.arguments import UsageError, empty_value
from magnetar.cli.admin.table import Command
from magnetar.cli.admin.values import Value
from magnetar.model.errors import MagnetarError
from magnetar.model.names import NamespaceName, TopicName

_PLACE: Final = re.compile(r"\{(?:--)?([^{}?|]+)(\?)?(?:\|(\w+))?\}")
_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class CommandRequest:
    """One request of the REST interface."""

    method: str
    path: str
    query: str = ""
    body: bytes | None = None

    @property
    def target(self) -> str:
        """Path and query, as they are sent."""
        return f"{self.path}?{self.query}" if self.query else self.path


def request_of(command: Command, values: Mapping[str, Value]) -> CommandRequest:
    """Return the request of a command that is one. Raises UsageError for a name that is none."""
    path = _PLACE.sub(lambda place: _path_part(place, values[place[1]], command), command.path)
    body = None if not command.body else json.dumps(_filled(json.loads(command.body), values)).encode()
    return CommandRequest(command.method, path, _query(command.query, values), body)


def topic_name(text: Value) -> TopicName:
    """Return the topic of a short or full name. Raises UsageError."""
    try:
        return TopicName.parse(str(text))
    except MagnetarError as error:
        raise UsageError(f"topic {str(text)[:200]!r}: {error}") from None


def namespace_path(text: Value) -> str:
    """Return a namespace as a path has it. Raises UsageError, also for one with a cluster, which no route takes."""
    try:
        found = NamespaceName.parse(str(text))
    except MagnetarError as error:
        raise UsageError(f"namespace {str(text)[:200]!r}: {error}") from None
    if found.cluster is not None:
        raise UsageError(f"namespace {str(text)[:200]!r}: a namespace is TENANT/NAMESPACE")
    return quote(found.text)


def topic_path(text: Value, marks: frozenset[str] = frozenset()) -> str:
    """Return a topic as a path has it; marks say in which domain it must be. Raises UsageError."""
    topic = topic_name(text)
    for domain in ("persistent", "non-persistent"):
        if f"only-{domain}" in marks and topic.domain != domain:
            raise UsageError(f"{topic} is no {domain} topic, which this command needs")
    return topic.rest_path


def quoted(text: Value) -> str:
    """Return a text as one part of a path. Raises UsageError for an empty one, which would make it the path of another
    route."""
    if text == "":
        raise empty_value("a name")
    return quote(str(text), safe="")


def query_of(parameters: Mapping[str, Value]) -> str:
    """Return a query string; None is left out."""
    return "&".join(
        f"{name}={quote_plus(shown(value), safe='')}" for name, value in parameters.items() if value is not None
    )


def shown(value: Value) -> str:
    """Return a value as a query has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _path_part(place: re.Match[str], value: Value, command: Command) -> str:
    kind = place[3] or next((argument.kind for argument in command.arguments if argument.name == place[1]), "text")
    if kind == "topic":
        return topic_path(value, command.marks)
    if kind == "tail":
        return topic_path(value).partition("/")[2]
    if kind == "namespace":
        return namespace_path(value)
    if value == "":
        raise empty_value(command.word(place[1]))
    return quoted(value)


def _query(template: str, values: Mapping[str, Value]) -> str:
    found: dict[str, Value] = {}
    for part in filter(None, template.split("&")):
        name, _, said = part.partition("=")
        place = _PLACE.fullmatch(said)
        if place is None:
            found[name] = said
            continue
        value = values[place[1]]
        if place[2] and (value is None or value is False):
            continue
        found[name] = _converted(value, place[3])
    return query_of(found)


def _filled(template: Any, values: Mapping[str, Value]) -> Any:
    if isinstance(template, dict):
        return {key: _filled(one, values) for key, one in template.items() if not _absent(one, values)}
    if not isinstance(template, str):
        return template
    place = _PLACE.fullmatch(template)
    return template if place is None else _converted(values[place[1]], place[3])


def _absent(template: Any, values: Mapping[str, Value]) -> bool:
    place = _PLACE.fullmatch(template) if isinstance(template, str) else None
    return place is not None and place[2] is not None and values[place[1]] in (None, False)


def _minutes(value: Any) -> int:
    return int(value) // 60 if value >= 0 else int(value)


def _megabytes(value: Any) -> int:
    return int(value) // _MIB if value >= 0 else int(value)


def _pairs(value: Any) -> dict[str, str]:
    """``a=1,b=2``, given once or as several words."""
    if value is None or isinstance(value, dict):
        return value or {}
    text = ",".join(value) if isinstance(value, list) else str(value)
    pairs = [part.partition("=") for part in text.split(",") if part]
    if any(not equals for _, equals, _ in pairs):
        raise UsageError(f"{text[:80]!r} is no list of pairs: write KEY=VALUE,KEY=VALUE")
    return {key: kept for key, _, kept in pairs}


_CONVERSIONS: Final[dict[str, Callable[[Any], Any]]] = {
    "minutes": _minutes,
    "mb": _megabytes,
    "split": lambda value: str(value).split(","),
    "sorted": lambda value: sorted(set(value)),
    "set": lambda value: sorted(set(str(value).split(","))),
    "pairs": _pairs,
    "text": shown,
    "millis": lambda value: value * 1000,
    "not": lambda value: not value,
    "list": lambda value: value or [],
    "upper": lambda value: str(value).upper(),
    "title": lambda value: str(value)[:1].upper() + str(value)[1:].lower(),
}


def _converted(value: Value, conversion: str | None) -> Any:
    if conversion is None or (value is None and conversion not in ("list", "pairs")):
        return value
    return _CONVERSIONS[conversion](value)
