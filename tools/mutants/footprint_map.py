"""The map of which tests pass which lines, kept under ``build/mutants`` and renewed for files of tests that changed.

Where the product has changed since, lines are followed from the new text to the old one. The map only chooses who
judges: a test it does not name costs a fault that is not noticed, never one that is wrongly held for noticed.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tools.mutants import probes
from tools.mutants.tree import ROOT, Tree

KEPT: Final = ROOT / "build" / "mutants"
_NOT: Final = "not noticed"
"""Tests of wrong builds expect a failure: they cannot judge one."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """What one test passed, and what it took."""

    table: str
    marks: int
    processor: float
    clock: float


class FootprintMap:
    """Reads and renews what is kept in a folder."""

    def __init__(self, folder: Path = KEPT / "footprints") -> None:
        self._folder = folder
        self._tables: dict[str, dict[str, Any]] = {}
        self._followed: dict[tuple[str, str], dict[int, int]] = {}
        self.tests: dict[str, Footprint] = {}
        self.imported: dict[str, int] = {}
        """By table, what runs when modules are imported: whoever passes such a module judges it."""

    def renew(self, areas: Sequence[str], judges: Sequence[str], at_once: int, passes: Callable[[str], bool]) -> None:
        """Run the files of tests that have changed, each part in a tree of its own.

        ``passes`` is asked of those that fail with probes: tests that count steps have nothing against a plain tree.
        """
        files = [
            str(path.relative_to(ROOT))
            for judge in judges
            for path in ([ROOT / judge] if judge.endswith(".py") else sorted((ROOT / judge).rglob("test_*.py")))
        ]
        stale = [name for name in files if not self._is_fresh(name)]
        if stale:
            print(
                f"{len(stale)} of {len(files)} files of tests have changed: which lines they pass is found", flush=True
            )
            with tempfile.TemporaryDirectory(prefix="mutants-map-") as folder:
                running = [
                    self._start(Path(folder).resolve() / str(part), areas, stale[part::at_once])
                    for part in range(min(at_once, len(stale)))
                ]
                for process in running:
                    process.wait()
        for name in stale:
            self._ask_again(name, passes)
        self._read(files)

    def _ask_again(self, name: str, passes: Callable[[str], bool]) -> None:
        kept = self._kept(name)
        if not kept.exists():
            return
        found = json.loads(kept.read_text())
        failed = [test for test, seen in found["tests"].items() if not seen["passed"] and not seen["skipped"]]
        for test in failed:
            found["tests"][test]["passed"] = passes(test)
            if not found["tests"][test]["passed"]:
                print(f"fails without any fault and judges none: {test}", flush=True)
        if failed:
            kept.write_text(json.dumps(found))

    def passing(self, path: str, lines: range) -> set[str]:
        """Tests that pass one of these lines of the product as it is now."""
        wanted: dict[str, int] = {}
        for table in {found.table for found in self.tests.values()}:
            entry = self._table(table).get(path)
            if entry is None:
                continue
            old = {line for now in lines if (line := self._follow(path, entry["text"], now))}
            for at, (first, last) in enumerate(entry["stretches"], entry["first"]):
                if any(first <= line <= last for line in old):
                    wanted[table] = wanted.get(table, 0) | 1 << at
        found = {test for test, seen in self.tests.items() if seen.marks & wanted.get(seen.table, 0)}
        if any(self.imported.get(table, 0) & marks for table, marks in wanted.items()):
            found |= self.below(path)
        return found

    def unpassed(self, area: str) -> Iterator[tuple[str, int, int]]:
        """Stretches of an area that no test passes: any fault may hide there."""
        together: dict[str, int] = {}
        for found in self.tests.values():
            together[found.table] = together.get(found.table, 0) | found.marks
        for source in sorted((ROOT / area).rglob("*.py")):
            path = str(source.relative_to(ROOT))
            known = {table: self._table(table)[path] for table in together if path in self._table(table)}
            if not known:
                continue
            for first, last in probes.planted(source.read_bytes(), 0)[1]:
                if not any(self._marked(path, entry, first, together[table]) for table, entry in known.items()):
                    yield path, first, last

    def _marked(self, path: str, entry: dict[str, Any], line: int, marks: int) -> bool:
        """Whether a line of now was passed when the map was made; the product may have changed since."""
        old = self._follow(path, entry["text"], line)
        return old is not None and any(
            first <= old <= last and marks >> at & 1
            for at, (first, last) in enumerate(entry["stretches"], entry["first"])
        )

    def below(self, prefix: str) -> set[str]:
        """Tests that pass any line of a module or of a folder."""
        wanted: dict[str, int] = {}
        for table in {found.table for found in self.tests.values()}:
            for path, entry in self._table(table).items():
                if path == prefix or path.startswith(prefix + "/"):
                    wanted[table] = wanted.get(table, 0) | ((1 << len(entry["stretches"])) - 1) << entry["first"]
        return {test for test, found in self.tests.items() if found.marks & wanted.get(found.table, 0)}

    def _start(self, place: Path, areas: Sequence[str], files: Sequence[str]) -> subprocess.Popen[bytes]:
        tree = Tree(place)
        table: dict[str, Any] = {}
        count = 0
        for area in areas:
            for path, source in tree.sources(area).items():
                text, stretches = probes.planted(source, count)
                (place / path).write_text(text)
                digest = hashlib.sha256(source).hexdigest()
                table[path] = {"text": digest, "first": count, "stretches": stretches}
                count += len(stretches)
                kept = self._folder / "sources" / digest
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.write_bytes(source)
        marks = place / "marks"
        marks.write_bytes(bytes(count))
        (place / "src" / f"{probes.MODULE}.py").write_text(probes.module(marks, count))
        text = json.dumps(table)
        name = hashlib.sha256(text.encode()).hexdigest()[:16]
        (self._folder / f"table-{name}").write_text(text)
        environment = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
            "PYTHONPATH": os.pathsep.join((str(place / "src"), str(place))),
            "FOOTPRINTS_MARKS": str(marks),
            "FOOTPRINTS_TO": str(self._folder),
            "FOOTPRINTS_TABLE": name,
            "MAGNETAR_SEEDS": "0.3",  # the first seeds pass nearly all that the others pass
        }
        command = [sys.executable, "-m", "pytest", "-p", "tools.mutants.footprints", "-p", "no:cacheprovider", "-q"]
        selection = ["-k", _NOT, "-m", "not slow", "--timeout", "300", "--tb", "line", "--rootdir", str(place)]
        output = (self._folder / f"output-{place.name}").open("wb")
        with output:
            return subprocess.Popen([*command, *selection, *files], cwd=place, env=environment, stdout=output)

    def _is_fresh(self, name: str) -> bool:
        kept = self._kept(name)
        if not kept.exists():
            return False
        return bool(json.loads(kept.read_text())["digest"] == hashlib.sha256((ROOT / name).read_bytes()).hexdigest())

    def _read(self, files: Sequence[str]) -> None:
        for name in files:
            if not self._is_fresh(name):
                print(f"says nothing: {name}", flush=True)
                continue
            found = json.loads(self._kept(name).read_text())
            table = found["table"]
            self.imported[table] = self.imported.get(table, 0) | int(found.get("imported", "0"), 16)
            for test, seen in found["tests"].items():
                if seen["passed"]:
                    marks = int(seen["marks"], 16)
                    self.tests[test] = Footprint(table, marks, seen["processor"], seen["clock"])

    def _kept(self, name: str) -> Path:
        return self._folder / (name.replace("/", ".") + ".json")

    def _table(self, name: str) -> dict[str, Any]:
        if name not in self._tables:
            self._tables[name] = json.loads((self._folder / f"table-{name}").read_text())
        return self._tables[name]

    def _follow(self, path: str, digest: str, line: int) -> int | None:
        """Where a line of now stood when the map was made."""
        key = path, digest
        if key not in self._followed:
            old = (self._folder / "sources" / digest).read_text().splitlines()
            new = (ROOT / path).read_text().splitlines()
            matcher = difflib.SequenceMatcher(None, new, old, autojunk=False)
            self._followed[key] = {
                a + step + 1: b + step + 1 for a, b, size in matcher.get_matching_blocks() for step in range(size)
            }
        return self._followed[key].get(line)
