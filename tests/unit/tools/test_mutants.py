"""The mutation programme: which faults it makes, that it notices some, and that it sees none where there is none."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest
from tools.mutants.__main__ import part_of
from tools.mutants.choice import AREAS, Choice
from tools.mutants.faults import KINDS, Fault, faults_of
from tools.mutants.footprint_map import Footprint, FootprintMap
from tools.mutants.judge import Judgement
from tools.mutants.probes import MODULE, module, planted
from tools.mutants.sample import EQUIVALENT, Drawn, Sample, equivalents

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


def test_kinds_of_faults_can_be_chosen_and_are_all_that_there_are() -> None:
    assert {fault.kind for path in PLACES for fault in faults_of(*_product(path))} == set(KINDS)


def test_samples_of_parts_are_kept_apart(tmp_path: Path) -> None:
    possible = faults_of(*_product(PLACE))
    kinds = ["statement left out", "and, or"]
    assert part_of([], None) == ""
    assert part_of(kinds, 3) == part_of([*reversed(kinds), kinds[0]], 3) == "and-or-statement-left-out-thin-3"
    for part, some in (("", possible[:1]), (part_of([], 0), possible[1:2])):
        found = Sample(lambda some=some: {"protocol": some}, 5, 3, tmp_path, part)  # type: ignore[misc]
        assert [one.name for one in found.drawn] == [fault.name for fault in some]
    assert {path.name for path in tmp_path.iterdir()} == {"sample-3-5", "sample-3-5-thin-0"}


def test_every_equivalent_fault_has_its_reason() -> None:
    lines = EQUIVALENT.read_text().splitlines()
    assert len(equivalents()) == len([line for line in lines if not line.startswith("#")])
    for name, reason in equivalents().items():
        path, _, before, after = name.split("\t")
        assert (ROOT / path).is_file()
        assert before != after
        assert len(reason) > 10


PLACE = "src/magnetar/protocol/varints.py"
PLACES = (PLACE, "src/magnetar/storage/ledgers/ranges.py", "src/magnetar/protocol/hot_commands.py")


def _fault(line: int, *, in_function: bool = True) -> Fault:
    return Fault(PLACE, "f", "kind", 0, 0, "", line, (line, line), in_function, "", "")


def _map(folder: Path, **tests: tuple[float, int]) -> FootprintMap:
    """What each test took, and its marks: of three stretches, in lines 1, 3 to 4 and 5."""
    folder.mkdir()
    found = FootprintMap(folder)
    text = (ROOT / PLACE).read_bytes()
    digest = hashlib.sha256(text).hexdigest()
    (folder / "sources").mkdir()
    (folder / "sources" / digest).write_bytes(text)
    table = {PLACE: {"text": digest, "first": 0, "stretches": [[1, 1], [3, 4], [5, 5]]}}
    (folder / "table-t").write_text(json.dumps(table))
    for name, (seconds, marks) in tests.items():
        found.tests[name] = Footprint("t", marks, seconds, seconds)
    return found


def test_what_only_asserts_has_no_faults() -> None:
    assert (
        made(b'def check(self):\n    """Assert that all fits."""\n    self.seen.update(a)\n    assert self.seen\n')
        == []
    )
    assert made(b"pairs = list(zip(a, b, strict=True))\nassert pairs[0]\n") == []
    assert made(b"pairs = list(zip(a, b, strict=False))\n") == [
        ("pairs = list(zip(a, b, strict=False))", "pairs = list(zip(a, b, strict=True))")
    ]


def test_a_bound_is_judged_by_quick_tests_that_name_it_wherever_they_stand(tmp_path: Path) -> None:
    """Of those that import a module the map knows the first alone."""
    names = ["tests/unit/tools/test_mutants.py::names_it", "tests/unit/tools/test_official.py::does_not"]
    choice = Choice(_map(tmp_path / "map", **dict.fromkeys((*names, "tests/wire/test_x.py::real"), (0.1, 0))))
    assert choice.for_fault(replace(_fault(1), where="", in_function=False, before="ROOT = 5")).tests == names[:1]
    assert choice.for_fault(replace(_fault(1), where="a.Choice", in_function=False, before="x = 5")).tests == names[:1]
    assert choice.for_fault(replace(_fault(1), before="ROOT = 5")).tests == [], "of a function, only those that pass it"


def test_tests_are_chosen_by_the_lines_they_pass_near_and_quick_ones_first(tmp_path: Path) -> None:
    choice = Choice(
        _map(
            tmp_path / "map",
            **{
                "tests/sim/test_x.py::far": (0.1, 0b010),
                "tests/unit/test_x.py::slow": (5, 0b010),
                "tests/unit/test_x.py::quick[1]": (0.2, 0b110),
                "tests/unit/test_x.py::quick[2]": (0.1, 0b010),
                "tests/unit/test_varints.py::near": (6, 0b010),
                "tests/unit/test_varints.py::cases[1]": (0.01, 0b010),
                "tests/unit/test_varints.py::cases[2]": (0.02, 0b010),
                "tests/unit/test_varints.py::cases[3]": (4, 0b010),
                "tests/unit/protocol/test_y.py::beside[1]": (0.03, 0b010),
                "tests/unit/protocol/test_y.py::beside[2]": (0.04, 0b010),
                "tests/unit/protocol/test_y.py::broad[1]": (0.03, (1 << 400) - 1),
                "tests/unit/protocol/test_y.py::broad[2]": (0.04, (1 << 400) - 1),
                "tests/unit/test_x.py::other": (0.1, 0b100),
                "tests/wire/test_x.py::real": (0.1, 0b010),
                "tests/unit/protocol/test_x.py::passes_nothing": (0.1, 0),
                "tests/unit/test_x.py::passes_nothing": (0.1, 0),
            },
        )
    )
    found = choice.for_fault(_fault(4))
    assert found.tests == [
        "tests/unit/test_varints.py::cases[1]",
        "tests/unit/test_varints.py::cases[2]",
        "tests/unit/test_varints.py::near",
        "tests/unit/protocol/test_y.py::beside[1]",
        "tests/unit/protocol/test_y.py::beside[2]",
        "tests/unit/protocol/test_y.py::broad[1]",
        "tests/unit/test_x.py::quick[2]",
        "tests/sim/test_x.py::far",
        "tests/unit/protocol/test_y.py::broad[2]",
        "tests/unit/test_x.py::quick[1]",
    ]
    assert found.others == ["tests/unit/test_x.py::slow", "tests/unit/test_varints.py::cases[3]"], "no time for them"
    assert found.real == ["tests/wire/test_x.py::real"]
    assert found.passing == 13
    assert choice.for_fault(_fault(2)).tests == []
    found = choice.for_fault(_fault(2, in_function=False))
    assert found.passing == 14
    assert "tests/unit/protocol/test_x.py::passes_nothing" in found.tests, "near what runs with the import"
    assert "tests/unit/test_x.py::passes_nothing" not in found.tests


def test_lines_are_followed_when_the_product_has_changed(tmp_path: Path) -> None:
    found = FootprintMap(tmp_path)
    (tmp_path / "sources").mkdir()
    now = (ROOT / "tools/mutants/tree.py").read_text().splitlines(keepends=True)
    before = ["# one line more\n", *now[:9], *now[12:]]
    (tmp_path / "sources" / "old").write_text("".join(before))
    place = now.index("class Tree:\n") + 1
    stretch = before.index("class Tree:\n") + 1
    table = {"tools/mutants/tree.py": {"text": "old", "first": 7, "stretches": [[1, 2], [stretch, stretch]]}}
    (tmp_path / "table-t").write_text(json.dumps(table))
    found.tests["a"] = Footprint("t", 1 << 8, 0, 0)
    found.tests["b"] = Footprint("t", 1 << 7, 0, 0)
    assert stretch != place
    assert found.passing("tools/mutants/tree.py", range(place, place + 1)) == {"a"}
    assert found.passing("tools/mutants/tree.py", range(11, 12)) == set(), "a line that was not there"
    assert found.below("tools") == {"a", "b"}
    assert found.below("tools/mutants/tr") == set()
    found.imported["t"] = 1 << 8
    assert found.passing("tools/mutants/tree.py", range(place, place + 1)) == {"a", "b"}, "it runs with the import"


@pytest.mark.parametrize("more", [0, 2])
def test_what_no_test_passes_is_named_also_where_the_product_has_changed_since(tmp_path: Path, more: int) -> None:
    source = (ROOT / PLACE).read_bytes()
    stretches = planted(source, 0)[1]
    then = b"# a line that is gone\n" * more + source
    digest = hashlib.sha256(then).hexdigest()
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / digest).write_bytes(then)
    moved = [[first + more, last + more] for first, last in stretches]
    (tmp_path / "table-t").write_text(json.dumps({PLACE: {"text": digest, "first": 5, "stretches": moved}}))
    found = FootprintMap(tmp_path)
    all_but = ((1 << len(stretches)) - 1) & ~0b100
    found.tests["one"] = Footprint("t", (all_but & 0xFF) << 5, 0.1, 0.1)
    found.tests["two"] = Footprint("t", (all_but & ~0xFF) << 5, 0.1, 0.1)
    assert list(found.unpassed("src/magnetar/protocol")) == [(PLACE, *stretches[2])]


PASSING = b'''"""A text."""
from __future__ import annotations

def f(a):
    """Another text."""
    b = a
    c = b + 1
    if c > 3:
        return c
    elif c > 2:
        b = 5
    else:
        b = 6
    for i in range(c):
        if i == 1:
            continue
        b += i
    else:
        b += 1
    try:
        b += 1 // (a - 1)
        b += 7
    except ZeroDivisionError:
        b = -1
    finally:
        c = 0
    match a:
        case 0:
            b += 10
        case _:
            b += 20
    class Inner:
        def g(self):
            return b
    return Inner().g() + (lambda: c)()
'''


def test_probes_change_nothing_and_mark_what_runs(tmp_path: Path) -> None:
    text, stretches = planted(PASSING, 4)
    marks = tmp_path / "marks"
    marks.write_bytes(bytes(4 + len(stretches)))
    hits: dict[str, Any] = {}
    exec(module(marks, 0), hits)
    plain: dict[str, Any] = {}
    exec(PASSING, plain)
    held = ModuleType(MODULE)
    held.__dict__.update(hits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, MODULE, held)
        probed: dict[str, Any] = {}
        exec(text, probed)
        for a in range(-1, 4):
            marks.write_bytes(bytes(4 + len(stretches)))
            assert probed["f"](a) == plain["f"](a)
            seen = marks.read_bytes()
            passed = {
                line for at, (first, last) in enumerate(stretches, 4) for line in range(first, last + 1) if seen[at]
            }
            assert _traced(plain["f"], a) <= passed
            # the handler, one branch, one case
            assert sorted(passed & {11, 24, 29}) == {1: [24], 0: [29], 2: [11]}.get(a, [])
    assert probed["f"].__doc__ == "Another text."


def test_a_sample_is_drawn_once_and_gone_on_with(tmp_path: Path) -> None:
    possible = {"protocol": faults_of(*_product("src/magnetar/protocol/varints.py"))}
    sample = Sample(lambda: possible, 5, 3, tmp_path)
    assert len(sample.drawn) == 5
    assert all(sample.is_open(one, "quick") and not sample.is_open(one, "whole") for one in sample.drawn)
    noticed, survived, *others = sample.drawn
    sample.keep(noticed, Judgement("noticed", "t", 1.0))
    sample.keep(survived, Judgement("survived", "3 tests", 1.0))
    again = Sample(dict, 5, 3, tmp_path)
    assert again.drawn == sample.drawn
    assert again.judgement(noticed) == Judgement("noticed", "t", 1.0)
    assert [one for one in again.drawn if again.is_open(one, "quick")] == others
    assert [one for one in again.drawn if again.is_open(one, "whole")] == [survived]
    for one in again.drawn:
        fault = again.fault(one)
        assert fault is not None
        assert (fault.name, fault.start, fault.text) == (one.name, one.start, one.text)
    assert again.fault(Drawn(0, "protocol", one.name.replace("varint", "variant"), 0, "")) is None


def _product(path: str) -> tuple[str, bytes]:
    return path, (ROOT / path).read_bytes()


def _traced(function: Callable[[int], object], argument: int) -> set[int]:
    lines = set()

    def line(frame: FrameType, event: str, _: object) -> Any:
        if event == "line" and frame.f_code.co_filename == "<string>":
            lines.add(frame.f_lineno)
        return line

    sys.settrace(line)
    try:
        function(argument)
    finally:
        sys.settrace(None)
    return lines - {23, 30, 32, 33}  # heads of handlers, cases and classes have no probe


@pytest.mark.timeout(900)
def test_fixed_faults_are_noticed_and_none_is_seen_where_there_is_none() -> None:
    command = [sys.executable, "-m", "tools.mutants", "--fixed"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=800)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("noticed") == 6
