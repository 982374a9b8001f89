"""The runner of the official suite on a suite of our own: extraction, addresses, outcomes, limits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tools.official import expectations, page, runner, suite

TEST = """
import unittest
URL = "pulsar://localhost:6650", "http://localhost:8080", "pulsar+ssl://localhost:6651"
class Inner:
    def test_not_one(self): pass
class SomeTest(unittest.TestCase):
    def test_url(self): self.assertEqual(URL, ("pulsar://localhost:11", "http://localhost:22", "pulsar+ssl://localhost:6651"))
    def test_fails(self): self.assertEqual(1, 2)
    def test_hangs(self):
        import time
        time.sleep(60)
    def test_crashes(self):
        import os
        os.abort()
    def test_skips(self): self.skipTest("no")
    async def test_url_async(self): pass
    def test_fails(self): raise ValueError("the later definition")
"""


@pytest.fixture
def tests(tmp_path: Path) -> Path:
    """A repository with a suite in it, extracted."""
    repository = tmp_path / "repository"
    (repository / "tests").mkdir(parents=True)
    for module in suite.MODULES:
        (repository / "tests" / f"{module}.py").write_text(TEST if module == "pulsar_test" else "")
    git = ["git", "-C", str(repository), "-c", "user.name=x", "-c", "user.email=x@x"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "suite"]):
        subprocess.run([*git, *command], check=True)
    return suite.extract(repository, tmp_path / "out")


def test_names_are_found_without_importing(tests: Path) -> None:
    names = suite.names(tests)
    assert "pulsar_test.SomeTest.test_url_async" in names
    assert names.count("pulsar_test.SomeTest.test_fails") == 1


@pytest.mark.parametrize(
    ("test", "outcome", "error"),
    [
        ("test_url", runner.Outcome.PASSED, ""),
        ("test_fails", runner.Outcome.FAILED, "ValueError: the later definition"),
        ("test_hangs", runner.Outcome.TIMED_OUT, ""),
        ("test_crashes", runner.Outcome.CRASHED, ""),
        ("test_skips", runner.Outcome.SKIPPED, ""),
    ],
)
def test_outcomes(tests: Path, test: str, outcome: runner.Outcome, error: str) -> None:
    suite.point_at(tests, suite.Addresses(11, 22))
    result = runner.run_one(f"pulsar_test.SomeTest.{test}", tests, sys.executable, 3.0)
    assert (result.outcome, result.error) == (outcome, error)
    assert result.good == (outcome in (runner.Outcome.PASSED, runner.Outcome.SKIPPED))


def test_tests_that_must_be_alone_run_after_the_others(tests: Path) -> None:
    chosen = [f"pulsar_test.SomeTest.{name}" for name in ("test_fails", "test_skips", "test_url_async")]
    results = runner.run(
        chosen, tests, python=sys.executable, seconds_max=20, jobs=2, alone=lambda name: "skips" in name
    )
    assert [result.test for result in results] == [chosen[0], chosen[2], chosen[1]]


def test_no_suite_is_an_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(suite.SuiteError, match="no suite in"):
        suite.extract(tmp_path, tmp_path / "out")


def result(test: str, outcome: runner.Outcome) -> runner.Result:
    return runner.Result(test, outcome, 0.1, "ValueError: no", "")


def test_the_list_of_what_cannot_pass_is_exact() -> None:
    good, bad = runner.Outcome.PASSED, runner.Outcome.TIMED_OUT
    expected = {"a": "why a", "b": "why b", "c": "why c", "d": "by chance: why d"}
    results = [result("a", bad), *(result(one, good) for one in "bd"), result("x", bad)]
    results.append(result("y", runner.Outcome.SKIPPED))
    assert expectations.differences(results, expected) == [
        "fails and is not listed: x  ValueError: no", "is listed and passes: b",
    ]  # fmt: skip
    assert expectations.shown(results, expected) == ["a: why a"]


def test_the_page_has_the_list_that_is_checked() -> None:
    stored = (Path(__file__).parents[3] / "docs" / "official-suite.md").read_text()
    assert stored == page.page(), "python -m tools.official.page > docs/official-suite.md"
