"""The glossary: each term once, and the modules and classes that it names are in the tree."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from tests.support.code_names import ROOT, classes, names


@dataclass(frozen=True)
class Row:
    """One row of the glossary, cell by cell."""

    section: str
    term: str
    meaning: str
    where: str
    source: str


def _rows() -> list[Row]:
    rows, section = [], ""
    for line in (ROOT / "docs/glossary.md").read_text().splitlines():
        if line.startswith("## "):
            section = line[3:]
        elif line.startswith("|") and not line.startswith(("| term ", "|---")):
            term, meaning, where, source = (cell.strip() for cell in line.strip("|").split("|"))
            rows.append(Row(section, term, meaning, where, source))
    return rows


def _terms(row: Row) -> list[str]:
    """The terms of a row; what stands in parentheses explains a term and makes it no other one."""
    return [term.strip("` ").lower() for term in re.sub(r" \([^)]*\)", "", row.term).split(",")]


def test_every_section_has_rows() -> None:
    sections = re.findall(r"^## (.+)$", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)
    assert sections == list(dict.fromkeys(row.section for row in _rows()))
    assert len(_rows()) > 200


def test_no_term_is_defined_twice() -> None:
    counts = Counter(term for row in _rows() for term in _terms(row))
    assert [term for term, times in counts.items() if times > 1] == []


def test_every_row_is_whole() -> None:
    assert [row.term for row in _rows() if not (row.term and row.meaning and row.where and row.source)] == []


def test_terms_that_are_classes_exist() -> None:
    """Terms in backticks or with two capitals are classes; if the row names a module, they are defined within it."""
    wrong = []
    for row in _rows():
        inside = re.findall(r"`(magnetar[\w.]*)`", row.where)
        for term in row.term.split(", "):
            name = term.strip("`")
            if term.startswith("`") or re.fullmatch(r"[A-Z][a-z]+[A-Z]\w*", term):
                places = classes().get(name, frozenset())
                if not places or (
                    inside and not any(f"{place}.".startswith(f"{at}.") for place in places for at in inside)
                ):
                    wrong.append(
                        f"{row.section}: {name} is not in {', '.join(inside) or 'the tree'}, but {sorted(places)}"
                    )
    assert wrong == [], "\n" + "\n".join(wrong)


def test_places_exist() -> None:
    """What stands in backticks in the third column is a module, a class or a path."""
    wrong = []
    for row in _rows():
        for name in re.findall(r"`([^`]+)`", row.where):
            known = name in names() if name.startswith("magnetar") else name in classes() or (ROOT / name).exists()
            if not known:
                wrong.append(f"{row.section}: {row.term}: {name}")
    assert wrong == [], "\n" + "\n".join(wrong)
