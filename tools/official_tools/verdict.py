"""Compares two runs of the list, line by line, and counts commands.

A line of `accepted.tsv` is ``run <TAB> arguments <TAB> place <TAB> reason``; the first three are patterns with ``*``.
A place is ``exit``, ``err``, ``out`` or a member of printed JSON, ``out/subscriptions/audit/type``.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from tools.official_tools import normal
from tools.official_tools.command_list import Line
from tools.official_tools.normal import Json
from tools.official_tools.said import Said

FILE = Path(__file__).with_name("accepted.tsv")
ABSENT = "<absent>"


class Accepted(NamedTuple):
    """One line of the accepted differences."""

    run: str
    arguments: str
    place: str
    reason: str


class Difference(NamedTuple):
    """One place where two answers differ; ``reason`` is empty unless the difference is accepted."""

    line: Line
    place: str
    theirs: Json
    ours: Json
    reason: str

    def __str__(self) -> str:
        said = f"{self.line.number} {self.line.tool} {self.line.arguments}\n   {self.place}"
        return f"{said}\n      theirs {short(self.theirs)}\n      ours   {short(self.ours)}"


def short(said: Json) -> str:
    shown = repr(said)
    return shown if len(shown) <= 400 else f"{shown[:397]}..."


def accepted(file: Path = FILE) -> list[Accepted]:
    """Every accepted difference."""
    with file.open(newline="") as opened:
        rows = list(csv.reader(opened, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [Accepted(*row) for row in rows[1:]]


def places(theirs: Json, ours: Json, path: str) -> Iterator[tuple[str, Json, Json]]:
    """Where two values differ. Lists of texts are compared as they are, other lists member by member."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in [*theirs, *(key for key in ours if key not in theirs)]:
            yield from places(theirs.get(key, ABSENT), ours.get(key, ABSENT), f"{path}/{key}")
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for index, (their, our) in enumerate(zip(theirs, ours, strict=True)):
            yield from places(their, our, f"{path}/{index}")
    elif theirs != ours:
        yield path, theirs, ours


def reason_of(run: str, line: Line, place: str, known: Sequence[Accepted]) -> str:
    """Why a difference is accepted; empty if it is not."""
    return next(
        (
            each.reason
            for each in known
            if fnmatchcase(run, each.run)
            and fnmatchcase(f"{line.tool} {line.arguments}", each.arguments)
            and fnmatchcase(place, each.place)
        ),
        "",
    )


def compare(
    run: str, lines: Sequence[Line], theirs: Mapping[int, Said], ours: Mapping[int, Said], known: Sequence[Accepted]
) -> list[Difference]:
    """Every difference between two runs, accepted or not.

    Of our own command line, errors have words of their own around the broker's reason, and sets are in order.
    """
    own = run == "ours"
    found = []
    for line in lines:
        first, second = theirs[line.number], ours[line.number]
        differing: list[tuple[str, Json, Json]] = []
        if first.code != second.code:
            differing.append(("exit", first.code, second.code))
        their_out, our_out = normal.output(first.out), normal.output(second.out)
        their_error, our_error = normal.text(first.err), normal.text(second.err)
        if own:
            their_out, our_out = normal.unordered(their_out), normal.unordered(our_out)
            their_error, our_error = normal.reason(first.err), normal.reason(second.err)
        differing += places(their_out, our_out, "out")
        differing += places(their_error, our_error, "err")
        for place, their, our in differing:
            reason = reason_of(run, line, place, known)
            found.append(Difference(line, place, their, our, reason))
    return found


def counts(lines: Sequence[Line], differences: Sequence[Difference]) -> Counter[str]:
    """How many commands are the same in all their lines, differ as listed, or differ in some way that is not listed."""
    listed = {each.line.command for each in differences if each.reason}
    to_mend = {each.line.command for each in differences if not each.reason}
    tally = Counter({"same": 0, "differs as listed": 0, "to mend": 0})
    for command in {line.command for line in lines}:
        tally["to mend" if command in to_mend else "differs as listed" if command in listed else "same"] += 1
    return tally
