"""The Python of Spark's workers, which must have what the driver has.

A session of one's own takes whatever ``python3`` the PATH names, unless PYSPARK_PYTHON says otherwise. With a virtual
environment that is not activated that is another one, and the first query ends with a trace about pickles.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from magnetar.model.errors import InvalidValueError
from magnetar.spark.forks.fork_request import ADDRESS
from magnetar.spark.forks.server_start import started
from magnetar.spark.interpreter import of_session

VARIABLE: Final = "PYSPARK_PYTHON"
_ASKED: Final = "import sys, magnetar, pyspark; print('%d.%d' % sys.version_info[:2])"
_PATIENCE: Final = 60.0
_good: Final[set[str]] = set()


def settle_workers(context: Any) -> None:
    """Let the workers of a SparkContext in local mode run this Python, or one that was named and has what they need.

    On a cluster this process cannot look (docs/clusters.md). InvalidValueError says what to set.
    """
    if not str(context.master).startswith("local"):
        return
    if not os.environ.get(VARIABLE):
        context.pythonExec = of_session()
        return
    problem = problem_of(context.pythonExec)
    if problem:
        raise InvalidValueError(
            f"Spark's workers run {context.pythonExec} ({VARIABLE}), {problem}. End the session, and before the next "
            f"one set {VARIABLE}={of_session()}, or unset it"
        )


def use_forks(context: Any) -> None:
    """Let the Python processes of a SparkContext in local mode be forks of a server that has imported what they need.

    Only where they run this Python: another one starts each for itself.
    """
    if (
        str(context.master).startswith("local")
        and context.pythonExec == of_session()
        and (address := started(of_session()))
    ):
        context.environment[ADDRESS] = address


def problem_of(python: str) -> str:
    """Return what is wrong with an interpreter for workers of this process; empty if nothing is."""
    found = shutil.which(python)
    if found is None:
        return "which is not there"
    if found in _good or Path(found) in (Path(sys.executable), Path(of_session())):
        return ""
    try:
        asked = subprocess.run([found, "-c", _ASKED], capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"which does not answer: {error}"
    if asked.returncode:
        return f"which has not what is needed here: {(asked.stderr.strip().splitlines() or ['no reason'])[-1]}"
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if asked.stdout.strip() != version:
        return f"which is Python {asked.stdout.strip()}, and the driver is {version}"
    _good.add(found)
    return ""
