"""docs/testing.md: every program on it is a test, and they all pass as they stand."""

from __future__ import annotations

import pytest

from tests.support.plugin_arguments import ARGUMENTS
from tests.support.snippets import snippets

pytest_plugins = ["pytester"]

PAGE = "docs/testing.md"


def test_the_programs(pytester: pytest.Pytester) -> None:
    """Each is a file of its own, in one run."""
    programs = [one for one in snippets() if one.file == PAGE and one.language == "python"]
    for one in programs:
        pytester.makepyfile(**{f"test_line_{one.line}": one.text})
    wanted = sum(one.text.count("def test_") for one in programs)
    assert wanted > 10
    pytester.runpytest_inprocess(*ARGUMENTS, "--durations=5").assert_outcomes(passed=wanted)


def test_the_configuration(pytester: pytest.Pytester) -> None:
    """What stands in pytest's configuration is taken."""
    (text,) = (one.text for one in snippets() if one.file == PAGE and one.text.startswith("[tool.pytest"))
    pytester.makefile(".toml", pyproject=text)
    program = """
        def test_one(request, pulsar_broker):
            assert pulsar_broker._embedded.settings.brokerDeduplicationEnabled

        def test_two(request, pulsar_broker):
            pass
    """
    pytester.makepyfile(program)
    pytester.runpytest_inprocess(*ARGUMENTS).assert_outcomes(passed=2)
