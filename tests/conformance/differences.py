"""Finds where two answers differ, and knows which differences are on purpose.

`docs/differences.md` lists the latter under any heading, a line each: `- `probe-id`: reason` for all of an answer, or
`- `probe-id` at `/path/*`: reason` for the places that the pattern matches. Nothing else of a listed probe may differ,
and a line that matches no difference any more must be taken off, so that the list stays true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from tests.conformance.answers import Json

FILE = Path(__file__).resolve().parents[2] / "docs" / "differences.md"
LINE = re.compile(r"^- `([a-z0-9-]+)`(?: at `(/[^`]*)`)?: (\S.*)$", re.MULTILINE)
ABSENT = "<absent>"


class Listed(NamedTuple):
    """One line of the list."""

    places: str
    reason: str


class Difference(NamedTuple):
    """One place where two answers differ."""

    path: str
    theirs: Json
    ours: Json

    def __str__(self) -> str:
        return f"{self.path}\n      theirs {self.theirs!r}\n      ours   {self.ours!r}"


class Verdict(NamedTuple):
    """What is left of the differences of one probe when those on purpose are taken out."""

    to_mend: list[Difference]
    on_purpose: list[Listed]
    gone: list[Listed]
    """Listed, but there is no such difference."""


def on_purpose(file: Path = FILE) -> dict[str, list[Listed]]:
    """The list, by probe id."""
    found: dict[str, list[Listed]] = {}
    for line in LINE.finditer(file.read_text()) if file.exists() else ():
        found.setdefault(line[1], []).append(Listed(line[2] or "*", line[3]))
    return found


def judge(theirs: Json, ours: Json, listed: Sequence[Listed]) -> Verdict:
    """Which differences between two answers are not listed, and which lines of the list are not differences."""
    found = list(between(theirs, ours))
    used = [each for each in listed if any(fnmatchcase(one.path, each.places) for one in found)]
    to_mend = [one for one in found if not any(fnmatchcase(one.path, each.places) for each in listed)]
    return Verdict(to_mend, used, [each for each in listed if each not in used])


def between(theirs: Json, ours: Json, path: str = "") -> Iterator[Difference]:
    """Every place where the answers differ."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in sorted({*theirs, *ours}):
            yield from between(theirs.get(key, ABSENT), ours.get(key, ABSENT), f"{path}/{key}")
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for index, (one, other) in enumerate(zip(theirs, ours, strict=True)):
            yield from between(one, other, f"{path}/{index}")
    elif theirs != ours:
        yield Difference(path or "/", theirs, ours)
