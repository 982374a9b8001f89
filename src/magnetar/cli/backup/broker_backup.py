"""A backup that a running broker writes: asked for over REST, waited for, its progress shown on a terminal."""

from __future__ import annotations

import sys
import time
from typing import Any, Final

from magnetar.client.rest import Rest
from magnetar.contexts.broker_connection import ConnectionFlags, connection
from magnetar.model.errors import MagnetarError, PersistenceError
from magnetar.runtime.command_line import interruption_said
from magnetar.runtime.harmless_text import as_it_is

_PATH: Final = "/admin/v2/brokers/backup"
_ANSWER_SECONDS: Final = 120.0
"""The broker answers when what it is just writing is durable."""
_LOOK_SECONDS: Final = 0.2


def back_up_broker(flags: ConnectionFlags, name: str) -> dict[str, Any]:
    """Ask for a backup of that name; return its status when it is whole. Raises MagnetarError, typer.Exit."""
    rest = connection(flags).rest(_ANSWER_SECONDS)
    with interruption_said(f"the broker may have begun backup {name}; GET {_PATH} says so"):
        found: dict[str, Any] = rest.ask("POST", _PATH, {"name": name})
    with interruption_said(f"the broker goes on writing backup {name}; GET {_PATH} says how far it is"):
        found = _waited_for(rest, found)
    if found["status"] != "SUCCESS":
        raise PersistenceError(found["lastError"])
    return found


def _waited_for(rest: Rest, found: dict[str, Any]) -> dict[str, Any]:
    name, taken = found["name"], found["taken"]
    try:
        while found["status"] == "RUNNING":
            _show(f"\r{found['bytes'] >> 20} of {max(found['totalBytes'], found['bytes']) >> 20} MB")
            time.sleep(_LOOK_SECONDS)
            try:
                found = rest.ask("GET", _PATH)
            except MagnetarError as error:
                raise PersistenceError(
                    f"{error}; it was writing backup {name}: if that is whole there is a manifest.json in it, if not "
                    "the same command begins it again"
                ) from None
            if (found["name"], found["taken"]) != (name, taken):
                raise PersistenceError(
                    f"the broker writes backup {found['name']} by now; if {name} is whole there is a manifest.json in "
                    "it, if not its log says why"
                )
    finally:
        _show("\r\x1b[K")
    return found


def _show(text: str) -> None:
    if sys.stderr.isatty():
        terminal = as_it_is(sys.stderr)
        terminal.write(text)
        terminal.flush()
