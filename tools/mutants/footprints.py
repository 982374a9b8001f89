"""Which test passes which stretch of the product: a plugin for pytest, in a tree where probes are planted.

``pytest -p tools.mutants.footprints`` with FOOTPRINTS_MARKS (the file all processes mark), FOOTPRINTS_TO (a folder) and
FOOTPRINTS_TABLE (which probe is what) set. A file of tests that is through is written down at once: whoever is cut off
goes on from there.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import pytest

_BATCH: Final = 1 << 12


class Footprints:
    """Marks are wiped before each test; what its module's fixtures did in its first test is that test's."""

    def __init__(self, marks: Path, to: Path) -> None:
        with marks.open("r+b") as file:
            self._marks = mmap.mmap(file.fileno(), 0)
        self._none = bytes(len(self._marks))
        self._imported = "0"
        """What ran before the first test: tables that modules make of themselves."""
        self._to = to
        self._failed: set[str] = set()
        self._skipped: set[str] = set()
        self._tests: dict[str, dict[str, Any]] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """All that files of tests import is there."""
        self._imported = self._taken()

    def _taken(self) -> str:
        return f"{int(self._marks[::-1].translate(_DIGITS), 2):x}"

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        """Note what one test passes, with its fixtures."""
        self._marks[:] = self._none
        clock, processor = time.monotonic(), _processor()
        try:
            return (yield)
        finally:
            self._tests[item.nodeid] = {
                "passed": item.nodeid not in self._failed | self._skipped,
                "skipped": item.nodeid in self._skipped,
                "clock": round(time.monotonic() - clock, 3),
                "processor": round(_processor() - processor, 3),
                "marks": self._taken(),
            }
            name = item.nodeid.partition("::")[0]
            if nextitem is None or nextitem.nodeid.partition("::")[0] != name:
                self._write(name)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Which ones fail as it is, or have nothing to say."""
        if not report.passed:
            (self._skipped if report.skipped else self._failed).add(report.nodeid)

    def _write(self, name: str) -> None:
        path = self._to / (name.replace("/", ".") + ".json")
        path.parent.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(Path(name).read_bytes()).hexdigest()
        table = os.environ["FOOTPRINTS_TABLE"]
        found = {"digest": digest, "table": table, "imported": self._imported, "tests": self._tests}
        path.with_suffix(".new").write_text(json.dumps(found))
        path.with_suffix(".new").rename(path)
        self._tests = {}


_DIGITS: Final = bytes(48 + (value > 0) for value in range(256))


def _processor() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def pytest_configure(config: pytest.Config) -> None:
    """Look on, where there is something to see."""
    if "FOOTPRINTS_TO" in os.environ:
        seen = Footprints(Path(os.environ["FOOTPRINTS_MARKS"]), Path(os.environ["FOOTPRINTS_TO"]))
        config.pluginmanager.register(seen, "magnetar-footprints")
