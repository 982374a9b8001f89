"""The rule book is whole: each number once, with its anchor and its evidence, and every number that is cited exists."""

from __future__ import annotations

import re
from collections import Counter

from tools.structure import checkout

from tests.support import rule_book
from tests.support.rule_book import INDEX, ROOT, order, rules

EVIDENCE = {
    "seed",
    "computed",
    "observed on Apache Pulsar 4.0.8",
    "broker source",
    "protocol definition",
    "Pulsar documentation",
    "Go client",
    "C++ client",
    "Python client",
    "unconfirmed",
}


def _key(number: str) -> list[int]:
    return [int(part) for part in number.split(".")]


def test_every_bold_number_is_read_as_a_rule() -> None:
    written = [number for page in rule_book.PAGES for number in re.findall(r"\*\*([\d.]+)\*\*", page.read_text())]
    assert written == [rule.number for rule in rules()]
    assert len(written) > 500


def test_no_number_is_defined_twice_and_numbers_ascend() -> None:
    assert [number for number, times in Counter(rule.number for rule in rules()).items() if times > 1] == []
    for page in rule_book.PAGES:
        numbers = [rule.number for rule in rules() if rule.page == page]
        assert numbers == sorted(numbers, key=_key), page.name


def test_every_rule_has_its_anchor_and_stands_on_the_page_of_its_group() -> None:
    assert [rule.number for rule in rules() if rule.anchor != rule.number] == []
    assert [rule.number for rule in rules() if int(rule.page.name[:2]) != rule.group] == []


def test_every_rule_names_its_evidence() -> None:
    wrong = []
    for rule in rules():
        found = re.fullmatch(r".+ \*Evidence: (.+)\.\*", rule.text)
        parts = re.sub(r" \(probes? [^)]*\)", "", found[1]).split("; ") if found else [""]
        if not set(parts) <= EVIDENCE:
            wrong.append((rule.number, parts))
    assert wrong == []


def test_a_probe_named_as_evidence_asks_about_that_rule() -> None:
    wrong = []
    for rule in rules():
        for names in re.findall(r"observed on Apache Pulsar 4\.0\.8 \(probes? ([^)]*)\)", rule.text):
            for name in re.findall(r"`([\w-]+)`", names):
                if rule.number not in rule_book.probes().get(name, ()):
                    wrong.append((rule.number, name))
    assert wrong == []
    assert len(rule_book.probes()) > 200


def test_the_index_names_every_page() -> None:
    linked = re.findall(r"^\| (\d+) \| \[[^\]]+\]\((semantics/[^)]+)\)", INDEX.read_text(), re.MULTILINE)
    assert [(int(number), ROOT / "docs" / page) for number, page in linked] == list(enumerate(rule_book.PAGES))


def test_every_cited_rule_exists() -> None:
    known = order().keys() | rule_book.sections()
    wrong = [
        str(one)
        for path in rule_book.tracked()
        for one in rule_book.citations(path)
        if one.first not in known or one.last not in known
    ]
    groups = range(len(rule_book.PAGES))
    wrong += [
        f"{path.relative_to(ROOT)}: group {group}"
        for path in rule_book.tracked()
        for group in rule_book.groups_cited(path)
        if group not in groups
    ]
    assert wrong == [], "\n" + "\n".join(wrong)


def test_every_cited_range_ascends() -> None:
    wrong = [
        str(one)
        for path in rule_book.tracked()
        for one in rule_book.citations(path)
        if one.first in order() and one.last in order() and order()[one.first] > order()[one.last]
    ]
    assert wrong == []


def test_every_rule_is_cited_by_a_test_or_listed_as_untested() -> None:
    tested, listed = rule_book.tested(), set(rule_book.untested())
    neither = [rule.number for rule in rules() if rule.number not in tested | listed]
    assert neither == [], "no test cites these; cite them, or list them with the reason in docs/semantics/untested.md"
    assert sorted(listed & tested) == [], "tests cite these: take them off docs/semantics/untested.md"


def test_no_rule_is_listed_twice_as_untested() -> None:
    assert [number for number, times in Counter(rule_book.untested()).items() if times > 1] == []


def test_docstrings_of_tests_are_sentences_with_the_rule_at_the_end() -> None:
    wrong = checkout().numbered_test_docstrings
    assert wrong == [], "\n" + "\n".join(wrong)


def test_no_document_outside_of_the_repository_is_cited() -> None:
    wrong = checkout().outside_references
    assert wrong == [], "\n" + "\n".join(wrong)
