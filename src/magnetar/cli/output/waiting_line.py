"""Waiting for long work: a line on a terminal's standard error that says what is waited for, and nothing elsewhere."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Final, TextIO

from magnetar.cli.output.terminal import terminal_of
from magnetar.runtime.harmless_text import as_it_is, escaped

_STEPS: Final = "|/-\\"


class WaitingLine:
    """What is shown while a command waits; use it with ``with``, so that its line is gone when others print."""

    def __init__(self, said: str, stream: TextIO | None = None) -> None:
        self._said = escaped(said)
        self._stream = as_it_is(sys.stderr if stream is None else stream)
        self._shown = terminal_of(self._stream).interactive
        self._turns = 0

    def __enter__(self) -> WaitingLine:
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()

    def _clear(self) -> None:
        if self._shown and self._turns:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()

    def say(self, text: str) -> None:
        """Print a line that stays, also where there is no terminal."""
        self._clear()
        self._stream.write(f"{escaped(text)}\n")
        self._stream.flush()

    def turn(self, detail: str = "") -> None:
        """Show that the work goes on."""
        self._turns += 1
        if self._shown:
            columns = terminal_of(self._stream).columns
            line = f"{_STEPS[self._turns % len(_STEPS)]} {self._said} {escaped(detail)}".rstrip()
            self._stream.write("\r\x1b[2K" + line[: columns - 1])
            self._stream.flush()


def wait_for(said: str, done: Callable[[], bool], seconds: float, *, pause: float = 0.5) -> bool:
    """Ask ``done`` again and again, at growing distances, until it is or the time is over; return which."""
    asleep = threading.Event()
    waited, distance = 0.0, min(pause, 0.05)
    with WaitingLine(said) as progress:
        while not done():
            if waited >= seconds:
                return False
            progress.turn(f"{waited:.0f} s")
            asleep.wait(distance)
            waited += distance
            distance = min(distance * 1.5, pause)
    return True
