"""Runs the tests that might notice a fault, in a fork of a process that has imported everything but the product.

A fork costs a few milliseconds where a new interpreter with pytest and hypothesis costs a second and more. Its bounds
are processor time and memory, so that a busy machine does not decide; the clock ends only what sleeps for ever.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from tools.mutants.tree import ROOT, Tree

_FOREIGN: Final = (
    "pytest", "hypothesis", "hypothesis.stateful", "asyncio", "concurrent.futures", "multiprocessing",
    "google.protobuf.descriptor", "google.protobuf.internal.builder", "crc32c", "mmh3", "cramjam", "re2", "uvloop",
    "starlette", "httpx", "pyarrow", "anyio", "bcrypt", "jwt", "cryptography.x509", "sqlite3",
)  # fmt: skip
_MEMORY_MAX: Final = 6 << 30
_CLOCK: Final = 10
"""How much longer than on the processor it may take: others may use the machine."""
_TEST_MAX: Final = 240
"""Seconds of the clock for one test, which tells where something waits for ever."""
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
_BROKEN: Final = re.compile(r"^E  +(.{1,120})", re.MULTILINE)

Verdict = Literal["noticed", "survived", "timed out"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What became of one fault."""

    verdict: Verdict
    by: str
    """The test that noticed it, or what went wrong."""
    seconds: float
    stage: str = "quick"
    """``whole``: the tests of real brokers have judged, too."""


class Judge:
    """For one tree. ``factor`` multiplies what tests may take, ``least`` is added."""

    def __init__(self, tree: Tree, *, least_s: float = 15.0, factor: float = 2.0) -> None:
        self._tree = tree
        self._least_s = least_s
        self._factor = factor
        for name in _FOREIGN:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)

    def judge(self, tests: Sequence[str], expected_s: float) -> Judgement:
        """Run them until the first that fails."""
        if not tests:
            return Judgement("survived", "no test passes this line", 0.0)
        bound = self._least_s + self._factor * expected_s
        start = time.monotonic()
        with tempfile.TemporaryFile() as output:
            child = os.fork()
            if child == 0:
                self._run(tests, output.fileno(), bound)
            status = _ended(child, bound * _CLOCK)
            _end_all(child)
            output.seek(0)
            text = output.read().decode(errors="replace")
        seconds = time.monotonic() - start
        if status is None:
            return Judgement("timed out", f"{bound * _CLOCK:.0f} s of the clock", seconds)
        if os.WIFSIGNALED(status):
            if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL):
                return Judgement("timed out", f"{bound:.0f} s of the processor", seconds)
            return Judgement("noticed", f"signal {os.WTERMSIG(status)}", seconds)
        if os.WEXITSTATUS(status) == 0:
            return Judgement("survived", f"{len(tests)} tests", seconds)
        if "ERROR: not found:" in text and any("[" in test for test in tests):
            # the fault has changed what cases are called: all cases then
            return self.judge(list(dict.fromkeys(test.partition("[")[0] for test in tests)), expected_s)
        found = _FAILED.search(text) or _BROKEN.search(text)
        if "Failed: Timeout" in text:
            return Judgement("timed out", f"{_TEST_MAX} s of the clock, {found[1] if found else ''}", seconds)
        return Judgement("noticed", found[1] if found else " ".join(text[-300:].split()), seconds)

    def _run(self, tests: Sequence[str], output: int, bound_s: float) -> None:
        """Run the tests in the fork; does not return."""
        code = 70
        try:
            os.setsid()
            os.dup2(output, 1)
            os.dup2(output, 2)
            seconds = int(bound_s) + 1
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_MAX, _MEMORY_MAX))
            root = self._tree.path
            os.chdir(root)
            mine = [str(root / "src"), str(root)]
            sys.path[:] = mine + [path for path in sys.path if path and not Path(path).is_relative_to(ROOT / "src")]
            sys.path = [path for path in sys.path if path != str(ROOT)]
            os.environ["PYTHONPATH"] = os.pathsep.join(mine)
            for name in [name for name in sys.modules if name.partition(".")[0] in ("magnetar", "tests", "tools")]:
                del sys.modules[name]
            pytest = importlib.import_module("pytest")
            options = ["-x", "-q", "-p", "no:cacheprovider", "--tb=short", "--timeout", str(_TEST_MAX)]
            options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of what was imported above
            code = int(pytest.main([*options, "--rootdir", str(root), *tests]))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)


def _ended(child: int, seconds: float) -> int | None:
    """Exit status of the child, None if it had to be killed."""
    watched = os.pidfd_open(child)
    try:
        ready = select.select([watched], [], [], seconds)[0]
        if not ready:
            os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        return status if ready else None
    finally:
        os.close(watched)


def _end_all(group: int) -> None:
    """Whatever the tests started and left behind."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
