"""Work on a table that a signal can end at once: most of it is a call of a library that hears none until it is done."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import NoReturn, TypeVar

from magnetar.runtime.command_line import INTERRUPTED, ended_as_by_ctrl_c, say_interrupted

_T = TypeVar("_T")


def done_or_abandoned(work: Callable[[], _T], said: str) -> _T:
    """Return what ``work`` returns, or raise what it raises. Ctrl-C, SIGTERM and SIGHUP end the process where it is,
    with ``said`` as its last line: a table is whole at any moment, as after a kill."""
    results: list[_T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # of another thread: it is raised in the one that waits
            errors.append(error)

    try:
        with ended_as_by_ctrl_c():
            thread = threading.Thread(target=run, name="table", daemon=True)
            thread.start()
            thread.join()
    except KeyboardInterrupt:
        _end(said)
    if errors:
        raise errors[0]
    return results[0]


def _end(said: str) -> NoReturn:
    try:
        say_interrupted(said)
    finally:
        os._exit(INTERRUPTED)  # an interpreter that ends in order waits for some libraries' threads
