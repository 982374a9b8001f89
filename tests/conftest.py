"""For all tests: an example of Hypothesis may take as long as it does, since the machine has other work, too.

A run in the background of a script begins with Ctrl-C ignored, one under nohup with the end of the terminal; tests that
send them have them as a terminal gives them.
What was there before the first test is left to no garbage collection: it stays to the end, and is most of what there
is. After the run, what the tests have left is searched for secrets. With MAGNETAR_BUILD=compiled, or pure, the other
build is not tested by mistake.
"""

from __future__ import annotations

import gc
import importlib.util
import signal
import sys

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
from tests.support.users_settings import leave_out_settings_of_the_user

__all__ = [
    "pytest_runtest_logreport",
    "pytest_sessionfinish",
    "pytest_terminal_summary",
    "pytest_warning_recorded",
]

settings.register_profile("here", deadline=None)
settings.load_profile("here")


def pytest_configure() -> None:
    """Refuse to test another build than MAGNETAR_BUILD asks for, take signals, and know no broker of the user."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        check_build()
    except NotAllowedError as error:
        raise pytest.UsageError(str(error)) from None
    leave_out_settings_of_the_user()
    if importlib.util.find_spec("sniffio") is None:
        # httpx looks for it at every request, in every directory of the path: more than a millisecond each
        sys.modules["sniffio"] = None  # type: ignore[assignment]


def pytest_collection_finish() -> None:
    """Leave modules and collected tests to no collection: a twentieth of a run's processor time, or more."""
    gc.collect()
    gc.freeze()
