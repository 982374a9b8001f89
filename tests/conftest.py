"""For all tests: an example of Hypothesis may take as long as it does, since the machine has other work, too.

After the run, what the tests have left is searched for secrets. With MAGNETAR_BUILD=compiled, or pure, the other build
is not tested by mistake.
"""

from __future__ import annotations

import pytest
from hypothesis import settings

from magnetar.compiled_build import check_build
from magnetar.model.errors import NotAllowedError
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


def pytest_configure() -> None:
    """Refuse to test another build than MAGNETAR_BUILD asks for."""
    try:
        check_build()
    except NotAllowedError as error:
        raise pytest.UsageError(str(error)) from None
