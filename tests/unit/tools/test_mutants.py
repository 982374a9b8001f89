"""The mutation programme: which faults it makes, that it notices some, and that it sees none where there is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tools.mutants.__main__ import EQUIVALENT, equivalents
from tools.mutants.choice import AREAS, Choice
from tools.mutants.faults import Fault, faults_of

ROOT = Path(__file__).resolve().parents[3]
SOURCE = b"""
import logging
log = logging.getLogger(__name__)
LIMIT = 10

class Box:
    def put(self, a: int | None = None) -> bool:
        # said to people
        log.info("put %d", 1 + 2)
        if a is None and self.open:
            return False
        self.items.log.append(a)
        for item in self.items:
            if item > LIMIT:
                continue
            self.sum += item
        if not self.items:
            raise ValueError(f"{a + 1} too many")
        return self.sum < 5

class Face(Protocol):
    def get(self) -> int:
        return 1 + 1
"""


def made(source: bytes = SOURCE) -> list[tuple[str, str]]:
    return [(fault.before, fault.after) for fault in faults_of("box.py", source)]


def test_faults_are_small_and_of_every_kind() -> None:
    found = made()
    assert len(found) == len(set(found))
    for wanted in (
        ("LIMIT = 10", "LIMIT = 11"),
        ("if a is None and self.open:", "if a is None or self.open:"),
        ("if a is None and self.open:", "if a is not None and self.open:"),
        ("if a is None and self.open:", "if not (a is None and self.open):"),
        ("return False", "return True"),
        ("self.items.log.append(a)", "pass"),
        ("if item > LIMIT:", "if item >= LIMIT:"),
        ("continue", "break"),
        ("self.sum += item", "pass"),
        ("if not self.items:", "if self.items:"),
        ('raise ValueError(f"{a + 1} too many")', "pass"),
        ("return self.sum < 5", "return self.sum <= 5"),
        ("return self.sum < 5", "return self.sum < 6"),
        ("return self.sum < 5", "return None"),
    ):
        assert wanted in found


def test_what_only_people_read_is_left_alone() -> None:
    lines = [before for before, _ in made()]
    assert not [line for line in lines if "log.info" in line or "None = None" in line or "1 + 1" in line]
    assert lines.count('raise ValueError(f"{a + 1} too many")') == 1


def test_the_rest_of_the_module_stays_byte_for_byte() -> None:
    for fault in faults_of("box.py", SOURCE):
        before, after = SOURCE.splitlines(), fault.apply(SOURCE).splitlines()
        assert len(before) == len(after)
        assert [number for number, pair in enumerate(zip(before, after, strict=True), 1) if pair[0] != pair[1]] == [
            fault.line
        ]


@pytest.mark.parametrize("area", AREAS)
def test_every_fault_of_an_area_has_a_place(area: str) -> None:
    for prefix in AREAS[area]:
        assert (ROOT / prefix).is_dir()


def test_every_equivalent_fault_has_its_reason() -> None:
    lines = EQUIVALENT.read_text().splitlines()
    assert len(equivalents()) == len([line for line in lines if not line.startswith("#")])
    for name, reason in equivalents().items():
        path, _, before, after = name.split("\t")
        assert (ROOT / path).is_file()
        assert before != after
        assert len(reason) > 10


def _fault(line: int, *, in_function: bool = True) -> Fault:
    return Fault("src/a.py", "f", "kind", 0, 0, "", line, (line, line), in_function, "", "")


def test_tests_are_chosen_by_the_lines_they_pass_quick_ones_first() -> None:
    def seen(seconds: float, *lines: int) -> dict[str, object]:
        return {"seconds": seconds, "passed": True, "lines": {"/copy/src/a.py": list(lines)}}

    prints = {
        "tests/sim/test_x.py::far": seen(0.1, 3),
        "tests/unit/test_x.py::slow": seen(5, 3),
        "tests/unit/test_x.py::quick[1]": seen(0.2, 3),
        "tests/unit/test_x.py::quick[2]": seen(0.1, 3),
        "tests/unit/test_x.py::other": seen(0.1, 4),
    }
    choice = Choice(prints, Path("/copy"))
    assert choice.for_fault(_fault(3)).tests == [
        "tests/unit/test_x.py::quick[1]",
        "tests/unit/test_x.py::slow",
        "tests/unit/test_x.py::quick[2]",
        "tests/sim/test_x.py::far",
    ]
    assert choice.for_fault(_fault(5)).tests == []
    assert len(choice.for_fault(_fault(5, in_function=False)).tests) == 5


def test_fixed_faults_are_noticed_and_none_is_seen_where_there_is_none() -> None:
    command = [sys.executable, "-m", "tools.mutants", "--fixed"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("noticed") == 6
