"""Which tests judge which fault: those that pass its line, quick ones first, one case of each before the others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tools.mutants.faults import Fault, faults_of
from tools.mutants.tree import Tree

AREAS: Final = {
    "storage": ("src/magnetar/storage", "src/magnetar/metadata"),
    "delivery": ("src/magnetar/broker/delivery", "src/magnetar/transactions"),
    "topic": ("src/magnetar/broker/topic",),
    "connection": ("src/magnetar/broker/connection",),
    "protocol": ("src/magnetar/protocol",),
}
JUDGES: Final = (
    "tests/unit/protocol", "tests/unit/storage", "tests/unit/metadata", "tests/unit/delivery", "tests/unit/topic",
    "tests/unit/transactions", "tests/unit/connection", "tests/unit/broker", "tests/unit/testing",
    "tests/admin", "tests/sim",
)  # fmt: skip
REST: Final = ("tests/wire", "tests/app", "tests/conformance", "tests/hostile")
"""What else `make test` runs against a broker: processes and real sockets, too slow to judge each fault."""
_NOT: Final = "not noticed"
"""Tests of wrong builds expect a failure: they cannot judge one."""
_TESTS_MAX: Final = 300
_SECONDS_MAX: Final = 30.0


@dataclass(frozen=True, slots=True)
class Chosen:
    """Tests, and what they took when nothing was wrong."""

    tests: list[str]
    seconds: float
    passing: int
    """How many pass the line; more than ``tests`` if there are too many."""
    others: list[str]
    """Those that pass the line and were not chosen."""


class Choice:
    """Reads what :mod:`tools.mutants.footprints` wrote."""

    def __init__(self, footprints: dict[str, Any], root: Path) -> None:
        self._by_line: dict[tuple[str, int], set[str]] = {}
        self._by_file: dict[str, set[str]] = {}
        self._by_folder: dict[str, set[str]] = {}
        self._seconds: dict[str, float] = {}
        self._rank: dict[str, int] = {}
        functions: dict[str, int] = {}
        for test, found in footprints.items():
            self._seconds[test] = found["seconds"]
            function = test.partition("[")[0]
            self._rank[test] = functions[function] = functions.get(function, -1) + 1
            for path, lines in found["lines"].items():
                name = os.path.relpath(path, root)
                self._by_file.setdefault(name, set()).add(test)
                folder = os.path.dirname(name)
                while folder:
                    self._by_folder.setdefault(folder, set()).add(test)
                    folder = os.path.dirname(folder)
                for line in lines:
                    self._by_line.setdefault((name, line), set()).add(test)

    def for_fault(self, fault: Fault) -> Chosen:
        """Tests to run, in that order. A line of a module or class is run by the tests that import it."""
        first, last = fault.lines
        passing: set[str] = set()
        for line in range(first, last + 1):
            passing |= self._by_line.get((fault.path, line), set())
        if not passing and not fault.in_function:
            passing = self._by_file.get(fault.path, set())
            folder = os.path.dirname(fault.path)
            while folder and not passing:
                passing = self._by_folder.get(folder, set())
                folder = os.path.dirname(folder)
        tests: list[str] = []
        seconds = 0.0
        ordered = sorted(passing, key=self._order)
        for test in ordered:
            if len(tests) == _TESTS_MAX or (tests and seconds + self._seconds[test] > _SECONDS_MAX):
                break
            tests.append(test)
            seconds += self._seconds[test]
        return Chosen(tests, seconds, len(passing), ordered[len(tests) :])

    def some(self) -> list[str]:
        """A few quick ones, of every folder."""
        folders: dict[str, str] = {}
        for test in sorted(self._seconds, key=self._order):
            folders.setdefault(os.path.dirname(test), test)
        return list(folders.values())

    def _order(self, test: str) -> tuple[bool, int, float, str]:
        return not test.startswith("tests/unit"), min(self._rank[test], 3), self._seconds[test], test


def footprints(tree: Tree, areas: Sequence[str], judges: Sequence[str], to: Path) -> dict[str, Any]:
    """Run every judging test once on the tree without a fault and note which lines it passes."""
    prefixes = [str(tree.path / prefix) for area in areas for prefix in AREAS[area]]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(tree.path / "src"), str(tree.path))),
        "FOOTPRINTS_OF": ":".join(prefixes),
        "FOOTPRINTS_TO": str(to),
        "MAGNETAR_SEEDS": "0.5",  # tracing makes simulations three times as slow
    }
    command = [sys.executable, "-m", "pytest", "-p", "tools.mutants.footprints", "-p", "no:cacheprovider", "-q"]
    selection = ["-k", _NOT, "-m", "not slow", "--rootdir", str(tree.path)]
    subprocess.run([*command, *selection, *judges], cwd=tree.path, env=environment, check=False)
    found: dict[str, Any] = json.loads(to.read_text())
    for test in [test for test, seen in found.items() if not seen["passed"]]:
        print(f"fails without any fault and judges none: {test}", flush=True)
        del found[test]
    return found


def all_faults(tree: Tree, area: str) -> Iterator[Fault]:
    """Every fault that an area can have."""
    for prefix in AREAS[area]:
        for path, source in tree.sources(prefix).items():
            yield from faults_of(path, source)
