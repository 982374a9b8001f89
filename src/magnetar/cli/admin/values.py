"""Kinds of values that flags take, with the texts that ``pulsar-admin`` accepts for each."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from magnetar.model.errors import InvalidValueError

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,20}")
_DOUBLE: Final = re.compile(r"[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,3})?")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400, "y": 365 * 86_400}
_BYTES: Final = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}

Value = str | int | float | bool | list[str] | dict[str, str] | None


def seconds(text: str) -> int:
    """Return the seconds of ``3h``, ``1d``, ``90`` or ``-1``."""
    number, unit = _with_unit(text, _SECONDS, "a duration: write 90, 100m, 3h, 2d, 5w or -1")
    return number * (unit or 1)


def millis(text: str) -> int:
    """Return the milliseconds of ``10s``, ``3h``, or ``90``, which is seconds too."""
    return seconds(text) * 1000


def size(text: str) -> int:
    """Return the bytes of ``4096``, ``10M``, ``16G`` or ``-1``."""
    number, unit = _with_unit(text, _BYTES, "a size: write 4096, 100K, 10M, 16G, 2T or -1")
    return number * (unit or 1)


def _with_unit(text: str, units: dict[str, int], wanted: str) -> tuple[int, int]:
    unit = units.get(text[-1:].lower(), 0)
    digits = text[:-1] if unit else text
    if not _NUMBER.fullmatch(digits):
        raise InvalidValueError(f"{text[:80]!r} is not {wanted}")
    number = int(digits)
    if abs(number) * max(unit, 1) > LONG_MAX:
        raise InvalidValueError(f"{text[:80]!r} is too large")
    return number, unit


def _whole(largest: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not _NUMBER.fullmatch(text) or not -largest - 1 <= int(text) <= largest:
            raise InvalidValueError(f"{text[:80]!r} is no whole number up to {largest}")
        return int(text)

    return parse


def _double(text: str) -> float:
    if not _DOUBLE.fullmatch(text):
        raise InvalidValueError(f"{text[:80]!r} is no number")
    return float(text)


def _bounded_size(text: str) -> int:
    found = size(text)
    if abs(found) > INT_MAX:
        raise InvalidValueError(f"{text[:80]!r} is more than {INT_MAX} bytes")
    return found


def _bounded_seconds(text: str) -> int:
    found = seconds(text)
    if abs(found) > INT_MAX:
        raise InvalidValueError(f"{text[:80]!r} is more than {INT_MAX} seconds")
    return found


def truth(text: str) -> bool:
    """Return whether a text says true."""
    if text.lower() not in ("true", "false"):
        raise InvalidValueError(f"{text[:80]!r} is neither true nor false")
    return text.lower() == "true"


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise InvalidValueError(f"{text[:80]!r} is no pair: write KEY=VALUE")
    return key, value


_SCALARS: Final[dict[str, Callable[[str], Value]]] = {
    "text": str,
    "int": _whole(INT_MAX),
    "long": _whole(LONG_MAX),
    "double": _double,
    "seconds": seconds,
    "int-seconds": _bounded_seconds,
    "millis": millis,
    "size": size,
    "int-size": _bounded_size,
    "truth": truth,
}
REPEATED: Final = {"list", "repeated", "pair", "pairs"}
"""Kinds that may be given more than once."""
METAVARS: Final = {
    "text": "TEXT",
    "int": "N",
    "long": "N",
    "double": "NUMBER",
    "seconds": "TIME",
    "int-seconds": "TIME",
    "millis": "TIME",
    "size": "SIZE",
    "int-size": "SIZE",
    "truth": "true|false",
    "list": "A,B",
    "repeated": "TEXT",
    "pair": "KEY=VALUE",
    "pairs": "KEY=VALUE,...",
}
"""How help shows a value of each kind."""


def convert(kind: str, text: str, before: Value) -> Value:
    """Return the value of a text; lists and pairs join what was given ``before``. Raises InvalidValueError."""
    if kind.startswith("one of "):
        names = kind.removeprefix("one of ").split("|")
        if text not in names:
            raise InvalidValueError(f"{text[:80]!r} is none of {', '.join(names)}")
        return text
    if kind in ("list", "repeated"):
        parts = text.split(",") if kind == "list" else [text]
        return [*before, *parts] if isinstance(before, list) else parts
    if kind in ("pair", "pairs"):
        parts = text.split(",") if kind == "pairs" else [text]
        return {**(before if isinstance(before, dict) else {}), **dict(_pair(part) for part in parts)}
    return _SCALARS[kind](text)
