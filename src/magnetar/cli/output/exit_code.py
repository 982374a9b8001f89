"""How a command ends: quietly into a closed pipe, with 130 on Ctrl-C, with 1 on an error."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Final

INTERRUPTED: Final = 130
PIPE_CLOSED: Final = 141


def ended(run: Callable[[], int]) -> int:
    """Run a command and return its exit code; what it printed is flushed."""
    try:
        code = run()
        sys.stdout.flush()
    except KeyboardInterrupt:
        _flush_quietly()
        return INTERRUPTED
    except BrokenPipeError:
        # the interpreter would try to flush again when it ends, and complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    return code


def _flush_quietly() -> None:
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
