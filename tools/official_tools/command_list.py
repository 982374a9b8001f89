"""The list of commands: what each line runs, and what it takes from an answer for the lines after it.

A line of `commands.tsv` is ``tool <TAB> arguments <TAB> capture``. Arguments are separated by single spaces, without a
shell's quoting; ``{http}``, ``{broker}``, ``{host}``, ``{http_port}``, ``{home}`` and ``{dir}`` are filled in. A
capture ``name=expression`` keeps the expression's first group as ``{name}``.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).with_name("commands.tsv")
SHUTDOWN = "brokers shutdown"
"""Ends the broker that it is sent to, so it is asked of a broker of its own when all else is done."""
NOT_APPLICABLE = {
    "admin functions": (19, "functions are not served"),
    "admin functions-worker": (7, "functions are not served"),
    "admin packages": (8, "packages belong to functions"),
    "admin sinks": (13, "connectors are not served"),
    "admin sources": (13, "connectors are not served"),
    "client generate_documentation": (1, "asks no broker"),
    "perf gen-doc": (1, "asks no broker"),
    "perf managed-ledger": (1, "writes to BookKeeper, past the broker"),
    "perf monitor-brokers": (1, "watches ZooKeeper"),
    "perf simulation-client": (1, "serves a controller of several machines"),
    "perf simulation-controller": (1, "asks its own clients"),
}
"""Commands left out, how many they are, and why."""


class Line(NamedTuple):
    """One line of the list."""

    number: int
    tool: str
    arguments: str
    capture: str

    @property
    def command(self) -> str:
        """The tool and the command without its arguments: ``admin topics create``."""
        return " ".join([self.tool, *self.arguments.split()[: 2 if self.tool == "admin" else 1]])

    def filled(self, values: Mapping[str, str]) -> list[str]:
        """The arguments with everything in braces filled in; a brace that names nothing stays as it is."""
        pattern = re.compile(r"\{(\w+)\}")
        return [pattern.sub(lambda m: values.get(m[1], m[0]), part) for part in self.arguments.split()]

    def captured(self, output: str) -> dict[str, str]:
        """What this line keeps of ``output``."""
        name, _, expression = self.capture.partition("=")
        found = re.search(expression, output) if expression else None
        return {name: found[1]} if found else {}


def read(file: Path = FILE) -> list[Line]:
    """Every line of the list, in order."""
    with file.open(newline="") as opened:
        rows = list(csv.reader(opened, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [Line(number, *row) for number, row in enumerate(rows[1:], start=2)]
