"""The thread that the engine of queries works in, which nothing ends but the process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

_NAME: Final = "sql engine"


def start_engine(work: Callable[[], None]) -> None:
    """Have a thread do the work of a query."""
    threading.Thread(target=work, name=_NAME, daemon=True).start()


def engine_at_work() -> bool:
    """Return whether a query still runs, though a bound or a signal has ended the waiting for it.

    An interpreter that ends in its own way would then have the thread leave native code that cannot be left, and abort.
    """
    return any(thread.name == _NAME for thread in threading.enumerate())
