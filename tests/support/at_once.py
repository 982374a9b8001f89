"""Coroutines that do not wait, run to their end by tests that are not asynchronous: metadata stores of one process."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of ``coroutine``; raises what it raises, and AssertionError if it waits for anything."""
    try:
        waits_for = coroutine.send(None)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    coroutine.close()
    raise AssertionError(f"it waits for {waits_for}")
