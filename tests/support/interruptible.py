"""Children that Ctrl-C ends.

Whoever starts pytest in the background of a script (`make test &`, nohup) has it ignore SIGINT, and a program that is
started inherits that: Python then leaves SIGINT alone, as it should, and a test that sends one waits for ever.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Within, children are started with SIGINT as a terminal gives it; only in the main thread."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
