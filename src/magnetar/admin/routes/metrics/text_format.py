"""Lines of the Prometheus text format."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from magnetar.admin.routes.metrics.family import Family

LINES_PER_PIECE: Final = 500


def quoted(text: str) -> str:
    """The escaped value of a label."""
    if "\\" in text or '"' in text or "\n" in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'


def labelled(pairs: Iterable[tuple[str, str]]) -> str:
    """Labels as they stand between the braces."""
    return ",".join([f"{name}={quoted(value)}" for name, value in pairs])


def shown(value: float) -> str:
    """A number as Prometheus reads it."""
    return "NaN" if math.isnan(value) else f"{value}"


class Group:
    """Rows of numbers under the same labels: one number for each of some families."""

    def __init__(self, families: Sequence[Family]) -> None:
        self.families = families
        self.labels: list[str] = []
        self._rows: list[Sequence[Any]] = []

    def add(self, labels: str, numbers: Sequence[float]) -> None:
        """One more row; ``numbers`` are in the order of the families."""
        self.labels.append(labels)
        self._rows.append(numbers)

    def numbers(self) -> Iterator[tuple[Family, float]]:
        """Families with the numbers of the only row."""
        (row,) = self._rows
        return zip(self.families, row, strict=True)

    def samples(self, column: int) -> Iterator[str]:
        """The lines of one family, in pieces. Nothing is done per line in Python."""
        name = self.families[column].name
        # two values per line are all that is filled in, and both are in C
        line = (name.replace("%", "%%") + "{%s} %s\n").__mod__
        labels, rows = self.labels, self._rows
        for start in range(0, len(labels), LINES_PER_PIECE):
            stop = start + LINES_PER_PIECE
            yield "".join(map(line, zip(labels[start:stop], [row[column] for row in rows[start:stop]], strict=True)))


def lines(groups: Iterable[Group]) -> Iterator[str]:
    """All groups' lines in pieces; those of a family that several groups have stand together."""
    where: dict[str, list[tuple[Group, int]]] = {}
    for group in groups:
        if group.labels:
            for column, family in enumerate(group.families):
                where.setdefault(family.name, []).append((group, column))
    for places in where.values():
        group, column = places[0]
        yield group.families[column].head
        for group, column in places:
            yield from group.samples(column)
