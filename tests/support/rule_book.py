"""The rule book (docs/semantics.md) as data: its rules, who cites them, and those that no test shows."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
INDEX = ROOT / "docs" / "semantics.md"
UNTESTED = ROOT / "docs" / "semantics" / "untested.md"
PAGES = sorted((ROOT / "docs" / "semantics").glob("[0-9][0-9]-*.md"))

_RULE = re.compile(
    r'^- <a id="r(?P<anchor>[\d.]+)"></a>\*\*(?P<number>[\d.]+)\*\* (?P<text>.+?)(?=^- <a id|^#|^$)', re.M | re.S
)
_SECTION = re.compile(r'^## <a id="s([\d.]+)"></a>\1 ', re.MULTILINE)
_NUMBER = r"\d{1,2}(?:\.\d{1,2}){1,2}"
_LIST = re.compile(rf"\brules? (?:of )?({_NUMBER}(?:(?:, (?:and )?| and | or | to ){_NUMBER})*)", re.IGNORECASE)
_RANGE = re.compile(rf"({_NUMBER})(?: to ({_NUMBER}))?")
_GROUP = re.compile(r"\brules of group (\d{1,2})\b")
_PROBE = re.compile(r'^@probe\(((?:"[\d.]+",?\s*)+)[^)]*\)\ndef (\w+)', re.MULTILINE)
_LINE_END = re.compile(r"\s*\n[ \t]*(?:#:? )?")


class Rule(NamedTuple):
    """One rule of the book."""

    number: str
    anchor: str
    text: str
    page: Path

    @property
    def group(self) -> int:
        return int(self.number.partition(".")[0])


class Citation(NamedTuple):
    """Numbers that a file cites in one place: one, or the first and last of a range."""

    path: Path
    first: str
    last: str

    def __str__(self) -> str:
        numbers = self.first if self.first == self.last else f"{self.first} to {self.last}"
        return f"{self.path.relative_to(ROOT)}: {numbers}"


@cache
def rules() -> tuple[Rule, ...]:
    """All rules in the order of the book."""
    return tuple(
        Rule(found["number"], found["anchor"], " ".join(found["text"].split()), page)
        for page in PAGES
        for found in _RULE.finditer(page.read_text("utf-8") + "\n")
    )


@cache
def sections() -> frozenset[str]:
    return frozenset(number for page in PAGES for number in _SECTION.findall(page.read_text("utf-8")))


@cache
def order() -> dict[str, int]:
    """Return the place of each rule in the book."""
    return {rule.number: place for place, rule in enumerate(rules())}


def between(first: str, last: str) -> list[str]:
    """The rules from one to another, both included."""
    return [rule.number for rule in rules()[order()[first] : order()[last] + 1]]


@cache
def tracked() -> tuple[Path, ...]:
    """The text files of the repository."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    return tuple(path for path in paths if path.suffix not in {".gz", ".xz", ".svg", ".json"} and path.is_file())


@cache
def citations(path: Path) -> tuple[Citation, ...]:
    """What a file cites: "rule x.y.z", "rules x.y.z, x.y.w", "rules x.y.z to x.y.w", and the rules of a probe."""
    return tuple(_citations(path))


def _citations(path: Path) -> Iterator[Citation]:
    text = path.read_text("utf-8")
    for numbers in _LIST.findall(_LINE_END.sub(" ", text)):
        for first, last in _RANGE.findall(numbers):
            yield Citation(path, first, last or first)
    for numbers, _ in _PROBE.findall(text):
        for number in re.findall(r'"([\d.]+)"', numbers):
            yield Citation(path, number, number)


def groups_cited(path: Path) -> set[int]:
    """The groups that a file cites as a whole."""
    return {int(group) for group in _GROUP.findall(_LINE_END.sub(" ", path.read_text("utf-8")))}


@cache
def probes() -> dict[str, frozenset[str]]:
    """The rules of each probe by its id."""
    return {
        name.replace("_", "-"): frozenset(re.findall(r'"([\d.]+)"', numbers))
        for path in tracked()
        if path.parent.name == "probes"
        for numbers, name in _PROBE.findall(path.read_text("utf-8"))
    }


@cache
def tested() -> frozenset[str]:
    """The rules that a test cites, or a probe, which the recorded answers test."""
    found: set[str] = set()
    for path in tracked():
        if path.suffix == ".py" and (path.is_relative_to(ROOT / "tests") or path.parent.name == "probes"):
            for one in citations(path):
                if one.first in order() and one.last in order():
                    found.update(between(one.first, one.last))
    return frozenset(found)


@cache
def untested() -> tuple[str, ...]:
    """The rules in the list of those that no test shows, as often as they stand there."""
    return tuple(number for one in citations(UNTESTED) for number in between(one.first, one.last))
