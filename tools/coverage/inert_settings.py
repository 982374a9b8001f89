"""A plugin of pytest: while a test runs, one setting keeps its default, whatever anybody gives it.

``INERT_SETTINGS`` names a file of JSON, setting by test: a function, or one of its cases (``function[case]``). Those
that failed are written beside it. Brokers that tests start as processes of their own are not reached.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

import pytest

from magnetar.config.settings import Settings

FILE = Path(os.environ["INERT_SETTINGS"])
WANTED: dict[str, str] = json.loads(FILE.read_text("utf-8"))
failed: set[str] = set()


@contextmanager
def inert(name: str) -> Iterator[None]:
    """Have everybody read the default of a setting."""
    default = next(field.default for field in fields(Settings) if field.name == name)
    own = vars(Settings).get(name)
    setattr(Settings, name, property(lambda settings: default, lambda settings, value: None))
    try:
        yield
    finally:
        if own is None:
            delattr(Settings, name)
        else:
            setattr(Settings, name, own)


def function_of(nodeid: str) -> str:
    """The test without its parameters."""
    return nodeid.partition("[")[0]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    name = WANTED.get(item.nodeid) or WANTED.get(function_of(item.nodeid))
    if name is None:
        return (yield)
    with inert(name):
        return (yield)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        failed.update((report.nodeid, function_of(report.nodeid)))


def pytest_sessionfinish() -> None:
    FILE.with_suffix(".failed").write_text(json.dumps(sorted(failed)), "utf-8")
