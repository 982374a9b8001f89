"""The log of the process: one line per event on standard error, coloured if that is a terminal.

Plain lines look like ``2026-01-31T12:00:00.123Z WARN broker.session message`` and stay one line: line breaks inside a
message are shown as ``\\n``, and what else could change a terminal or the order of a line as ``\\x1b``: names come from
clients. Only the trace of an exception follows on lines of its own, indented. Clients can cause
warnings, and could fill a disk with them: such warnings go through :class:`RateLimitedLog`, which lets a few of a kind
pass per minute and then says how many it held back.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from typing_extensions import override

from magnetar.runtime.clock import Clock, SystemClock
from magnetar.runtime.harmless_text import as_it_is
from magnetar.runtime.log_counts import LogCounts

_LEVELS: Final = {"WARNING": "WARN", "CRITICAL": "FATAL"}
_KINDS_MAX: Final = 1024
_CONTROLS: Final = (
    *range(0x20), *range(0x7F, 0xA0), 0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A),
)  # fmt: skip
"""C0, DEL and C1, marks and embeddings of bidirectional text, separators of lines and paragraphs."""
_SHOWN: Final = {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in _CONTROLS} | {
    ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t",
}  # fmt: skip
_SHOWN_OF_TRACE: Final = {code: shown for code, shown in _SHOWN.items() if code != ord("\n")}
_SHOWN_IN_JSON: Final = {code: f"\\u{code:04x}" for code in _CONTROLS}

FIELDS: Final = ("connection", "topic", "subscription", "role")
"""What a line may say besides, as members of JSON; given by ``extra`` of the standard library."""


def set_up(level: str = "INFO", stream: TextIO | None = None, *, as_json: bool = False) -> None:
    """Send everything from ``level`` up to ``stream`` (standard error), replacing earlier handlers."""
    target = stream or sys.stderr
    if as_json:
        handler: logging.Handler = logging.StreamHandler(target)
        handler.setFormatter(JsonFormatter())
    else:
        handler = _terminal_handler() if stream is None and target.isatty() else _plain_handler(target)
    logging.basicConfig(level=level.upper(), handlers=[handler, LogCounts()], force=True)
    # a request over REST is not an event of the broker
    logging.getLogger("uvicorn.access").setLevel(logging.WARNING)
    logging.captureWarnings(True)


def _plain_handler(stream: TextIO) -> logging.Handler:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(PlainFormatter())
    return handler


def _terminal_handler() -> logging.Handler:
    # a broker under a supervisor has no use for colours, so only a terminal loads rich
    from rich.console import Console
    from rich.logging import RichHandler

    handler = RichHandler(
        console=Console(file=as_it_is(sys.stderr)),
        show_path=False,
        markup=False,
        log_time_format="%H:%M:%S",
        rich_tracebacks=False,
    )
    handler.setFormatter(HarmlessFormatter())
    return handler


class HarmlessFormatter(logging.Formatter):
    """The message alone, with every control character of it and of a trace shown as text."""

    @override
    def formatMessage(self, record: logging.LogRecord) -> str:
        return record.getMessage().translate(_SHOWN)

    @override
    def formatException(self, ei: Any) -> str:
        return super().formatException(ei).translate(_SHOWN_OF_TRACE)


class PlainFormatter(HarmlessFormatter):
    """UTC time, level, name without our package, message."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")
        level = _LEVELS.get(record.levelname, record.levelname)
        line = f"{time}Z {level} {record.name.removeprefix('magnetar.')} {self.formatMessage(record)}"
        if record.exc_info:
            trace = self.formatException(record.exc_info)
            line += "\n    " + trace.replace("\n", "\n    ")
        return line


class JsonFormatter(logging.Formatter):
    """One object for each line: ``time``, ``level``, ``logger``, ``message``, and of :data:`FIELDS` what is known."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")
        line: dict[str, object] = {
            "time": f"{time}Z",
            "level": _LEVELS.get(record.levelname, record.levelname),
            "logger": record.name.removeprefix("magnetar."),
            "message": record.getMessage(),
        }
        for name in FIELDS:
            value = getattr(record, name, None)
            if value:
                line[name] = str(value)
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        # what JSON itself lets stand could still change a terminal
        return json.dumps(line, ensure_ascii=False).translate(_SHOWN_IN_JSON)


class RateLimitedLog:
    """Warnings about one subject (clients' faults): at most ``burst`` of a kind in ``window_ms``.

    A kind is any short text the caller chooses (``"bad checksum"``, a remote address). The number of warnings held
    back is part of the next one of that kind.
    """

    def __init__(
        self, logger: logging.Logger, *, burst: int = 5, window_ms: int = 60_000, clock: Clock | None = None
    ) -> None:
        self._log = logger
        self._burst = burst
        self._window_ms = window_ms
        self._clock = clock or SystemClock()
        self._kinds: dict[str, _Window] = {}

    def warning(self, kind: str, message: str, *args: object, extra: Mapping[str, object] | None = None) -> None:
        """Log ``message % args`` at WARNING unless ``burst`` of this kind were logged in the window.

        ``extra``: of :data:`FIELDS` what is known.
        """
        now = self._clock.now_ms()
        window = self._kinds.get(kind)
        if window is None:
            if len(self._kinds) >= _KINDS_MAX:
                self._forget_oldest()
            window = self._kinds[kind] = _Window(now)
        held_back = window.held_back
        if not 0 <= now - window.began < self._window_ms:
            window.began, window.passed, window.held_back = now, 0, 0
        elif window.passed >= self._burst:
            window.held_back += 1
            return
        else:
            held_back = 0
        window.passed += 1
        if held_back:
            message, args = message + " (%d more of this kind since the last such line)", (*args, held_back)
        self._log.warning(message, *args, extra=extra)

    def _forget_oldest(self) -> None:
        # the dictionary keeps the order of arrival, so this bounds memory for any kinds that clients cause
        del self._kinds[next(iter(self._kinds))]


class _Window:
    __slots__ = ("began", "held_back", "passed")

    def __init__(self, began: int) -> None:
        self.began = began
        self.passed = 0
        self.held_back = 0
