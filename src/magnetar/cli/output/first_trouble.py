"""A client that goes on trying says so at once, once: without it a wrong address is 30 seconds of silence."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from typing_extensions import override


class _FirstTrouble(logging.Handler):
    """Hands on the first record."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__()
        self._say = say
        self._said = False

    @override
    def emit(self, record: logging.LogRecord) -> None:
        if not self._said:
            self._said = True
            self._say(f"magnetar: {record.getMessage()}")


@contextmanager
def first_trouble_said(log: logging.Logger, say: Callable[[str], None]) -> Iterator[None]:
    """Print the first record that ``log`` gets at INFO or above, as one line."""
    handler = _FirstTrouble(say)
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.setLevel(level)
        log.removeHandler(handler)
