"""How a command ends: quietly into a closed pipe, with 130 on Ctrl-C, with 1 on an error."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

from magnetar.runtime.command_line import PIPE_CLOSED, let_go_of_output

INTERRUPTED: Final = 130


def ended(run: Callable[[], int]) -> int:
    """Run a command and return its exit code; what it printed is flushed."""
    try:
        code = run()
        sys.stdout.flush()
    except KeyboardInterrupt:
        _flush_quietly()
        return INTERRUPTED
    except BrokenPipeError:
        let_go_of_output()
        return PIPE_CLOSED
    return code


def _flush_quietly() -> None:
    try:
        sys.stdout.flush()
    except OSError:
        let_go_of_output()
