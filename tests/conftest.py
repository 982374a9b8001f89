"""For all tests: an example of Hypothesis may take as long as it does, since the machine has other work, too.

After the run, what the tests have left is searched for secrets.
"""

from __future__ import annotations

from hypothesis import settings

from tests.support.secret_search import (
    pytest_runtest_logreport,
    pytest_sessionfinish,
    pytest_terminal_summary,
    pytest_warning_recorded,
)

__all__ = [
    "pytest_runtest_logreport",
    "pytest_sessionfinish",
    "pytest_terminal_summary",
    "pytest_warning_recorded",
]

settings.register_profile("here", deadline=None)
settings.load_profile("here")
