"""Which test passes which line: a plugin for pytest, by the interpreter's own tracing.

``pytest -p tools.mutants.footprints`` with FOOTPRINTS_OF (prefixes of files, joined by colons) and FOOTPRINTS_TO (the
file to write) set. Lines passed while a module is imported belong to no test.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from time import perf_counter
from types import CodeType, FrameType
from typing import Any, Final

import pytest

_SEEN: dict[CodeType, set[int]] = {}
_TESTS: dict[str, dict[str, Any]] = {}
_FAILED: set[str] = set()
_PREFIXES: Final = tuple(filter(None, os.environ.get("FOOTPRINTS_OF", "").split(":")))


def _called(frame: FrameType, event: str, argument: object) -> Any:
    code = frame.f_code
    if not code.co_filename.startswith(_PREFIXES):
        return None
    lines = _SEEN.get(code)
    if lines is None:
        lines = _SEEN[code] = set()
    lines.add(frame.f_lineno)
    add = lines.add

    def passed(frame: FrameType, event: str, argument: object) -> Any:
        if event == "line":
            add(frame.f_lineno)
        return passed

    return passed


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """Trace one test with its fixtures."""
    _SEEN.clear()
    start = perf_counter()
    threading.settrace(_called)
    sys.settrace(_called)
    try:
        return (yield)
    finally:
        sys.settrace(None)
        threading.settrace(None)
        files: dict[str, set[int]] = {}
        for code, lines in _SEEN.items():
            files.setdefault(code.co_filename, set()).update(lines)
        _TESTS[item.nodeid] = {
            "passed": item.nodeid not in _FAILED,
            "seconds": round(perf_counter() - start, 3),
            "lines": {path: sorted(lines) for path, lines in files.items()},
        }


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Which ones fail as it is."""
    if report.failed:
        _FAILED.add(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write what was found."""
    Path(os.environ["FOOTPRINTS_TO"]).write_text(json.dumps(_TESTS))
