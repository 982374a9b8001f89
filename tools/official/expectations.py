"""Tests of the suite that cannot pass on our client, each with the reason (docs/official-suite.md shows them).

The list is exact: a test that fails and is not in it is an error of ours, and so is one in it that passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tools.official.runner import Result

LIST: Final = Path(__file__).with_name("cannot_pass.tsv")
BY_CHANCE: Final = "by chance: "
"""How the reason of a test begins that passes at times."""


def cannot_pass() -> dict[str, str]:
    """Return the reasons by the tests."""
    lines = LIST.read_text().splitlines()[1:]
    found = dict(line.split("\t", 1) for line in lines)
    assert len(found) == len(lines) and all(found.values()), f"{LIST} names a test twice, or without a reason"
    return found


def differences(results: Sequence[Result], expected: Mapping[str, str]) -> list[str]:
    """Return what is otherwise than the list says, of the tests that were run."""
    found = [
        f"fails and is not listed: {result.test}  {result.error[:120]}"
        for result in results
        if not result.good and result.test not in expected
    ]
    return found + [
        f"is listed and passes: {one.test}"
        for one in results
        if one.good and not expected.get(one.test, BY_CHANCE).startswith(BY_CHANCE)
    ]


def shown(results: Sequence[Result], expected: Mapping[str, str]) -> list[str]:
    """Return a line for each test that failed as it is listed, with the reason."""
    return [f"{one.test}: {expected[one.test]}" for one in results if not one.good and one.test in expected]
