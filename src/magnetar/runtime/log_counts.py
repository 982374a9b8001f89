"""How many lines of each level were logged, for /metrics."""

from __future__ import annotations

import logging

from typing_extensions import override

LEVELS = {"DEBUG": "debug", "INFO": "info", "WARNING": "warn", "ERROR": "error", "CRITICAL": "fatal"}


class LogCounts(logging.Handler):
    """A handler that counts and writes nothing; several of one process count the same lines."""

    def __init__(self) -> None:
        super().__init__()
        self.by_level = dict.fromkeys(LEVELS.values(), 0)

    @override
    def emit(self, record: logging.LogRecord) -> None:
        self.by_level[LEVELS.get(record.levelname, "info")] += 1

    @override
    def handle(self, record: logging.LogRecord) -> bool:
        # no lock is needed for an addition, and a line that is logged need not wait for one
        self.emit(record)
        return True


def counted() -> LogCounts:
    """The counter of this process; made and attached by the first call."""
    root = logging.getLogger()
    for handler in root.handlers:
        if isinstance(handler, LogCounts):
            return handler
    made = LogCounts()
    root.addHandler(made)
    return made
