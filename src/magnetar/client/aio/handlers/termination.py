"""SIGTERM for runs: it stops all of one event loop, and leaves the signal as it was when the last one has ended."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from weakref import WeakKeyDictionary

_stops: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, list[Callable[[], None]]]] = WeakKeyDictionary()
_before: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, Any]] = WeakKeyDictionary()
"""What SIGTERM did before."""


@contextmanager
def stopped_by_sigterm(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> Iterator[None]:
    """Have ``stop`` called in the loop when SIGTERM comes; without effect outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    stops = _stops.setdefault(loop, [])
    if not stops:
        before = signal.getsignal(signal.SIGTERM)
        try:
            loop.add_signal_handler(signal.SIGTERM, _stop_all, loop)
        except (NotImplementedError, RuntimeError):
            yield  # a loop without signals, as a simulation's is
            return
        _before[loop] = before
    stops.append(stop)
    try:
        yield
    finally:
        stops.remove(stop)
        if not stops:
            loop.remove_signal_handler(signal.SIGTERM)
            signal.signal(signal.SIGTERM, _before.pop(loop) or signal.SIG_DFL)


@contextmanager
def sigterm_calls(stop: Callable[[], None]) -> Iterator[None]:
    """Have ``stop`` called when SIGTERM comes while the main thread waits for something; as above elsewhere."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: stop())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def _stop_all(loop: asyncio.AbstractEventLoop) -> None:
    for stop in list(_stops.get(loop, ())):
        stop()
