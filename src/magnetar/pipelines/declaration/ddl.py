"""Column lists and intervals of Spark, checked without Spark: ``origin STRING, delay BIGINT`` and ``1 hour``.

This covers the part of Spark's grammar that people write; an unknown word is reported with the nearest known one.
Spark itself decides when the pipeline runs.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from magnetar.pipelines.declaration.document import nearest

_TOKEN: Final = re.compile(r"\s*(?:(`(?:[^`]|``)+`)|('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|(\w+)|(.))", re.DOTALL)
_PLAIN: Final = frozenset(
    {
        *("boolean", "tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long", "float", "real"),
        *("double", "date", "timestamp", "timestamp_ntz", "timestamp_ltz", "string", "binary", "void", "variant"),
    }
)
_SIZED: Final = frozenset({"decimal", "dec", "numeric", "char", "character", "varchar", "time"})
_NESTED: Final = frozenset({"array", "map", "struct"})
_REST: Final = frozenset({"interval", "geometry", "geography"})
"""What follows these is left to Spark."""
TIMES: Final = ("timestamp", "timestamp_ntz", "timestamp_ltz")
_DAYS: Final = {
    "microsecond": 1 / 86_400_000_000,
    "millisecond": 1 / 86_400_000,
    "second": 1 / 86_400,
    "minute": 1 / 1_440,
    "hour": 1 / 24,
    "day": 1,
    "week": 7,
    "month": 31,
    "year": 366,
}
_UNITS: Final = tuple(_DAYS)
_DAYS_MAX: Final = 366 * 10_000
"""Spark counts microseconds in 64 bits, which is some 290,000 years; a longer interval is a mistake."""
_SIZES: Final = {
    **dict.fromkeys(("decimal", "dec", "numeric"), (1, 38)),
    **dict.fromkeys(("char", "character", "varchar"), (1, 2**31 - 1)),
    "time": (0, 6),
}
"""The least and the greatest first number of a sized type."""
_DEPTH: Final = 50


class DdlError(ValueError):
    """A column list is wrong; the text says what."""


class DdlColumn(NamedTuple):
    """A column of a column list."""

    name: str
    kind: str
    """The outermost word of its type, in lower case."""


def columns_of(text: str) -> list[DdlColumn]:
    """Parse a column list. Raises DdlError."""
    words = _Words(text)
    found = words.columns("")
    seen: dict[str, str] = {}
    for one in found:
        if (before := seen.setdefault(one.name.lower(), one.name)) is not one.name or found.count(one) > 1:
            raise DdlError(f"the column {before!r} stands there twice; Spark makes no difference between cases")
    return found


def problem_of_interval(text: str) -> str | None:
    """Return what is wrong with an interval such as ``10 minutes`` or ``1 hour 30 minutes``; None if nothing is."""
    words = text.lower().removeprefix("interval ").split()
    hint = "write for instance 10 seconds, 1 hour or 1 day"
    if len(words) < 2 or len(words) % 2:
        return f"{text!r} is no time; {hint}"
    for number, unit in zip(words[::2], words[1::2], strict=True):
        if not re.fullmatch(r"\d+(\.\d+)?", number, re.ASCII):
            return f"{number!r} in {text!r} is no number from 0 on; {hint}"
        if unit.removesuffix("s") not in _UNITS:
            return f"{unit!r} in {text!r} is no unit of time; {nearest(unit.removesuffix('s'), _UNITS)}"
        if float(number) * _DAYS[unit.removesuffix("s")] > _DAYS_MAX:
            return f"{text!r} is longer than {_DAYS_MAX // 366:,} years; {hint}"
    return None


class _Words:
    """A text, read word by word."""

    def __init__(self, text: str) -> None:
        self._all = [match.group().strip() for match in _TOKEN.finditer(text) if match.group().strip()]
        self._at = 0

    def _peek(self) -> str:
        return self._all[self._at] if self._at < len(self._all) else ""

    def _next(self) -> str:
        word = self._peek()
        self._at += 1
        return word

    def _take(self, word: str) -> bool:
        if self._peek().lower() != word:
            return False
        self._at += 1
        return True

    def columns(self, end: str, depth: int = 0) -> list[DdlColumn]:
        """Parse columns up to ``end``, which is consumed."""
        found: list[DdlColumn] = []
        while True:
            name = self._next()
            if not re.fullmatch(r"\w+|`.*`", name, re.DOTALL):
                raise DdlError(f"there is {name!r} where the name of a column should be" if name else _short(found))
            name = name[1:-1].replace("``", "`") if name[0] == "`" else name
            if any(before.name == name for before in found):
                raise DdlError(f"the column {name!r} stands twice, and a query that asks for it could mean both")
            self._take(":")
            found.append(DdlColumn(name, self._type(name, depth)))
            if self._take("not") and not self._take("null"):
                raise DdlError(f"NOT follows the type of {name!r} without NULL")
            if self._take("comment"):
                while self._peek()[:1] in ("'", '"'):
                    self._next()
            if self._take(","):
                continue
            if self._peek() == end:
                self._next()
                return found
            what = self._peek()
            raise DdlError(f"there is {what!r} after the column {name!r}; a comma separates columns" if what else
                           f"it ends within the columns of a STRUCT<...>, after {name!r}")  # fmt: skip

    def _type(self, column: str, depth: int) -> str:
        if depth > _DEPTH:
            raise DdlError("types are nested too deeply")
        word = self._next()
        kind = word.lower()
        if kind in _PLAIN:
            if kind == "string" and self._take("collate"):
                self._next()
        elif kind in _SIZED:
            self._sizes(kind, column)
        elif kind in _REST:
            while self._peek() not in ("", ",", ">"):
                self._next()
        elif kind in _NESTED:
            self._inner(kind, column, depth)
        else:
            known = (*_PLAIN, *_SIZED, *_NESTED, "interval")
            raise DdlError(
                f"{word!r} is no type for the column {column!r}; {nearest(kind, known)}"
                if word and re.fullmatch(r"\w+", word)
                else f"the column {column!r} has no type; write for instance {column} STRING"
            )
        return kind

    def _sizes(self, kind: str, column: str) -> None:
        if not self._take("("):
            return
        numbers: list[int] = []
        while (word := self._next()) != ")":
            if not ((word.isascii() and word.isdecimal() and len(word) < 12) or word == ","):
                raise DdlError(f"the type of the column {column!r} has {word!r} where a number should be")
            numbers += [] if word == "," else [int(word)]
        least, most = _SIZES[kind]
        if not numbers or not least <= numbers[0] <= most:
            raise DdlError(f"the type of the column {column!r} is {kind.upper()} of a size from {least} to {most}")
        if len(numbers) > (2 if most == 38 else 1) or numbers[-1] > numbers[0]:
            raise DdlError(
                f"the type of the column {column!r} has {numbers}; write for instance DECIMAL(10,2): digits in all, "
                "and those after the point"
            )

    def _inner(self, kind: str, column: str, depth: int) -> None:
        if not self._take("<"):
            raise DdlError(f"the type of the column {column!r} is {kind.upper()} of what? Write {kind.upper()}<...>")
        if kind == "struct":
            if not self._take(">"):
                self.columns(">", depth + 1)
            return
        self._type(column, depth + 1)
        if kind == "map":
            if not self._take(","):
                raise DdlError(f"the type of the column {column!r} is a MAP<key, value>, and there is one type in it")
            self._type(column, depth + 1)
        if not self._take(">"):
            raise DdlError(f"the type of the column {column!r} lacks a '>'")


def _short(found: list[DdlColumn]) -> str:
    return "it ends with a comma" if found else "there is no column"
