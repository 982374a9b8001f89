"""Which tests judge which fault: those that pass its line, near and quick ones first, one case of each function.

Of the module's own tests, and of narrow ones beside them, all short cases do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from tools.mutants.faults import Fault, faults_of
from tools.mutants.footprint_map import FootprintMap
from tools.mutants.tree import ROOT, Tree

AREAS: Final = {
    "storage": ("src/magnetar/storage", "src/magnetar/metadata"),
    "delivery": ("src/magnetar/broker/delivery", "src/magnetar/transactions"),
    "topic": ("src/magnetar/broker/topic",),
    "connection": ("src/magnetar/broker/connection",),
    "protocol": ("src/magnetar/protocol",),
}
QUICK: Final = (
    "tests/unit/protocol", "tests/unit/storage", "tests/unit/metadata", "tests/unit/delivery", "tests/unit/topic",
    "tests/unit/transactions", "tests/unit/connection", "tests/unit/broker", "tests/unit/testing",
    "tests/unit/runtime", "tests/unit/client", "tests/unit/authorization", "tests/unit/security", "tests/unit/offload",
    "tests/unit/jobs", "tests/admin", "tests/sim",
)  # fmt: skip
REAL: Final = (
    "tests/wire", "tests/app", "tests/conformance", "tests/hostile", "tests/crash", "tests/damage",
    "tests/compatibility", "tests/coverage", "tests/interop",
)  # fmt: skip
"""What else `make test` runs against a broker: processes and real sockets, too slow to judge each fault."""
_TESTS_MAX: Final = 300
_SECONDS_MAX: Final = 10.0
_BESIDE_MAX: Final = 5.0
"""Seconds for tests near a line that runs with the import."""
_CASE_MAX: Final = 0.1
"""Seconds of a case that is run besides the quickest one of its function."""
_WORD: Final = re.compile(r"\w+")
_OTHER_SECONDS_MAX: Final = 120.0
_REAL_SECONDS_MAX: Final = 150.0


@dataclass(frozen=True, slots=True)
class Chosen:
    """Tests, and what they took when nothing was wrong."""

    tests: list[str]
    seconds: float
    passing: int
    """How many pass the line; more than are chosen if there are too many."""
    others: list[str]
    """Those that judge whom ``tests`` have let through."""
    real: list[str]
    """And those of processes and real sockets."""


class Choice:
    """By the map of who passes what."""

    def __init__(self, found: FootprintMap) -> None:
        self._map = found
        self._words_of: dict[str, frozenset[str]] = {}

    def for_fault(self, fault: Fault) -> Chosen:
        """Tests to run, in that order.

        A line of a module or class is run by the tests that import it, of which the map knows the first alone: so quick
        ones that name what it defines, and those that stand near, judge it as well, whatever they pass.
        """
        first, last = fault.lines
        passing = self._map.passing(fault.path, range(first, last + 1))
        below = fault.path
        while below and not passing and not fault.in_function:
            passing = self._map.below(below)
            below = os.path.dirname(below)
        real = {test for test in passing if test.startswith(REAL)}
        firsts = self._firsts(passing)
        firsts |= {test for test in passing if self._is_case(test, fault)}
        ordered = sorted(passing - real, key=lambda test: (test not in firsts, self._order(test, fault)))
        tests, seconds = self._first(ordered, _SECONDS_MAX)
        if not fault.in_function:
            beside = {test for test in self._map.tests if test not in tests and self._order(test, fault)[0] < 2}
            for some in (self._naming(fault) - set(tests), beside):
                chosen = sorted(some, key=lambda test: self._map.tests[test].processor)
                quick, more = self._first([test for test in chosen if test not in tests], _BESIDE_MAX)
                tests, seconds = tests + quick, seconds + more
        rest = [test for test in ordered if test not in set(tests)]
        return Chosen(
            tests,
            seconds,
            len(passing),
            self._first(rest, _OTHER_SECONDS_MAX)[0],
            self._first(sorted(real, key=lambda test: self._order(test, fault)), _REAL_SECONDS_MAX)[0],
        )

    def _naming(self, fault: Fault) -> set[str]:
        """Tests whose file names what a line of a module or class defines: a bound is often tested where it is met."""
        name = fault.where.rpartition(".")[2] or fault.before.partition(":")[0].partition("=")[0].strip()
        if not name.isidentifier():
            return set()
        found = {test for test in self._map.tests if name in self._words(test.partition("::")[0])}
        return {test for test in found if not test.startswith(REAL)}

    def _words(self, file: str) -> frozenset[str]:
        if file not in self._words_of:
            text = (ROOT / file).read_text() if (ROOT / file).exists() else ""
            self._words_of[file] = frozenset(_WORD.findall(text))
        return self._words_of[file]

    def some(self) -> list[str]:
        """A few quick ones, of every folder."""
        folders: dict[str, str] = {}
        for test in sorted(self._map.tests, key=lambda test: self._map.tests[test].processor):
            if not test.startswith(REAL):
                folders.setdefault(os.path.dirname(test), test)
        return list(folders.values())

    def _first(self, ordered: list[str], seconds_max: float) -> tuple[list[str], float]:
        """As many as there is time for: of the processor, or of the clock for those that wait."""
        chosen: list[str] = []
        seconds = 0.0
        for test in ordered[:_TESTS_MAX]:
            found = self._map.tests[test]
            one = found.clock if test.startswith(REAL) else found.processor
            if chosen and seconds + one > seconds_max:
                continue
            chosen.append(test)
            seconds += one
        return chosen, seconds

    def _order(self, test: str, fault: Fault) -> tuple[int, int, float, str]:
        name = test.partition("::")[0]
        path, stem = PurePath(name), PurePath(fault.path).stem
        near = 4
        if path.stem == f"test_{stem}":
            near = 0
        elif name.startswith("tests/unit"):
            near = 2 - bool(set(path.parts[2:-1]) & set(PurePath(fault.path).parts[2:-1]))
        elif name.startswith("tests/sim"):
            near = 3
        found = self._map.tests[test]
        return near, found.marks.bit_count() // 200, found.processor, test

    def _is_case(self, test: str, fault: Fault) -> bool:
        """Whether it is short and of the module's own tests, or of those beside them that pass little else."""
        near, broad, seconds, _ = self._order(test, fault)
        return seconds <= _CASE_MAX and (near == 0 or (near == 1 and broad == 0))

    def _firsts(self, passing: set[str]) -> set[str]:
        """Of each function the quickest case that passes the line, which stands for the others."""
        found: dict[str, str] = {}
        for test in sorted(passing, key=lambda test: (self._map.tests[test].processor, test)):
            found.setdefault(test.partition("[")[0], test)
        return set(found.values())


def all_faults(tree: Tree, area: str) -> Iterator[Fault]:
    """Every fault that an area can have."""
    for prefix in AREAS[area]:
        for path, source in tree.sources(prefix).items():
            yield from faults_of(path, source)
