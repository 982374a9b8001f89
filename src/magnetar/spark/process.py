"""The end of a process that this one started."""

from __future__ import annotations

import subprocess
from typing import Any


def await_end(process: subprocess.Popen[Any], patience: float) -> None:
    """Wait until a process that was asked to end has ended; after ``patience`` seconds it is killed."""
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
