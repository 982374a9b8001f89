"""How many lines of the product a call executes: a cost that does not depend on the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps(work: Callable[[], object]) -> int:
    """Lines of the product that ``work`` executes; a comprehension counts once per element."""
    count = 0

    def line(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return line

    def call(frame: FrameType, event: str, argument: object) -> Any:
        return line if "/magnetar/" in frame.f_code.co_filename else None

    sys.settrace(call)
    try:
        work()
    finally:
        sys.settrace(None)
    return count
