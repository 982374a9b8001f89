"""Runs tests of the suite, each in a process of its own, and keeps what came of them.

One process per test, because the client library is native code: a crash, a hang or a client left open must not touch
the next test. A test over its time limit is killed with everything that it started.
"""

from __future__ import annotations

import contextlib
import enum
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

SKIPPED = re.compile(rb"^OK \(skipped=\d+\)", re.MULTILINE)
# The last line of a traceback is the error; a client's own log lines start with a date.
ERROR_LINE = re.compile(
    r"^(\w+(?:\.\w+)*(?:Error|Exception|Timeout|Failure)\w*|_pulsar\.\w+|pulsar\.\w+|Pulsar\w+)\b.*"
)


class Outcome(enum.Enum):
    PASSED = "passed"
    SKIPPED = "skipped"
    FAILED = "failed"
    TIMED_OUT = "timed out"
    CRASHED = "crashed"


@dataclass(frozen=True, slots=True)
class Result:
    test: str
    outcome: Outcome
    seconds: float
    error: str
    output: str

    @property
    def good(self) -> bool:
        return self.outcome in (Outcome.PASSED, Outcome.SKIPPED)

    def row(self) -> str:
        return "\t".join((self.test, self.outcome.value, f"{self.seconds:.2f}", self.error.replace("\t", " ")))


def error_of(output: str) -> str:
    """The line that says why a test failed, or nothing."""
    lines = [line.strip() for line in output.splitlines()]
    found = [line for line in lines if ERROR_LINE.match(line)]
    return found[-1][:300] if found else ""


def judge(returncode: int, raw: bytes) -> Outcome:
    if returncode == 0:
        return Outcome.SKIPPED if SKIPPED.search(raw) else Outcome.PASSED
    return Outcome.CRASHED if returncode < 0 else Outcome.FAILED


def run_one(test: str, tests: Path, python: str, seconds_max: float, path: str | None = None) -> Result:
    """Run one test to its end or to its limit; ``path`` is its PYTHONPATH."""
    started = time.monotonic()
    process = subprocess.Popen(
        [python, "-m", "unittest", test],
        cwd=tests,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        | ({} if path is None else {"PYTHONPATH": path}),
    )
    try:
        raw, _ = process.communicate(timeout=seconds_max)
        outcome = judge(process.returncode, raw)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        raw, _ = process.communicate()
        outcome = Outcome.TIMED_OUT
    output = raw.decode(errors="replace")
    seconds = time.monotonic() - started
    return Result(test, outcome, seconds, "" if outcome is Outcome.PASSED else error_of(output), output)


def run(
    chosen: Iterable[str],
    tests: Path,
    *,
    python: str,
    seconds_max: float,
    jobs: int,
    alone: Callable[[str], bool],
    path: str | None = None,
) -> Iterator[Result]:
    """Results in the order of ``chosen``. Tests for which ``alone`` holds run after the others, one at a time."""
    together = [test for test in chosen if jobs > 1 and not alone(test)]
    rest = [test for test in chosen if test not in set(together)]
    with ThreadPoolExecutor(max(jobs, 1)) as pool:
        yield from pool.map(lambda test: run_one(test, tests, python, seconds_max, path), together)
    for test in rest:
        yield run_one(test, tests, python, seconds_max, path)
