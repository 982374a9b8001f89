"""Where a client's log lines go: to Python's loggers as those of any library, and to what the program asks for.

Lines are the same for all clients of a process: what one client is given gets those of the others, too.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from enum import IntEnum
from os import PathLike
from typing import Final

from typing_extensions import override

from magnetar.client.errors import ArgumentError

_OURS: Final = logging.getLogger("magnetar.client")


class LoggerLevel(IntEnum):
    """How much is logged, with the official client's names and numbers."""

    Debug = 0
    Info = 1
    Warn = 2
    Error = 3


_LEVELS: Final = {
    LoggerLevel.Debug: logging.DEBUG,
    LoggerLevel.Info: logging.INFO,
    LoggerLevel.Warn: logging.WARNING,
    LoggerLevel.Error: logging.ERROR,
}


class ConsoleLogger:
    """Lines of this level and above go to standard output."""

    def __init__(self, log_level: LoggerLevel = LoggerLevel.Info) -> None:
        self.log_level = _checked(log_level)


class FileLogger:
    """Lines of this level and above are appended to a file."""

    def __init__(self, log_level: LoggerLevel, log_file: str | PathLike[str]) -> None:
        self.log_level = _checked(log_level)
        if not isinstance(log_file, str | PathLike):
            raise ArgumentError(f"log_file is the path of a file, and not {type(log_file).__name__}")
        self.log_file = log_file


ClientLogger = logging.Logger | ConsoleLogger | FileLogger


def attach(logger: ClientLogger | None) -> Callable[[], object]:
    """Send the lines of clients there, too; returns what ends it. Raises ArgumentError, OSError about the file."""
    if logger is None:
        return lambda: None
    if isinstance(logger, logging.Logger):
        handler: logging.Handler = _Forwarding(logger)
    elif isinstance(logger, ConsoleLogger):
        handler = logging.StreamHandler(sys.stdout)
    elif isinstance(logger, FileLogger):
        handler = logging.FileHandler(logger.log_file)
    else:
        raise ArgumentError(f"logger is a logging.Logger, ConsoleLogger or FileLogger, and not {type(logger).__name__}")
    if not isinstance(logger, logging.Logger):
        handler.setLevel(_LEVELS[logger.log_level])
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s [%(threadName)s] %(name)s: %(message)s"))
        if not _OURS.isEnabledFor(handler.level):
            _OURS.setLevel(handler.level)
    _OURS.addHandler(handler)

    def detach() -> None:
        _OURS.removeHandler(handler)
        handler.close()

    return detach


class _Forwarding(logging.Handler):
    """Hands lines to a logger of the program."""

    def __init__(self, logger: logging.Logger) -> None:
        super().__init__()
        self._logger = logger

    @override
    def emit(self, record: logging.LogRecord) -> None:
        above: logging.Logger | None = _OURS
        while above is not None:
            if above is self._logger:
                return  # it gets the line anyway
            above = above.parent if above.propagate else None
        if self._logger.isEnabledFor(record.levelno):
            self._logger.handle(record)


def _checked(level: LoggerLevel) -> LoggerLevel:
    if not isinstance(level, LoggerLevel):
        raise ArgumentError(f"log_level is a LoggerLevel, and not {type(level).__name__}")
    return level
