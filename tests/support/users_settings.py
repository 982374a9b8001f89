"""Tests have no saved connection of the user, and no login: their commands would ask that broker, and change it."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from magnetar.contexts.broker_connection import CLIENT_CONF_VARIABLE, CONTEXT_VARIABLE, TOKEN_VARIABLE
from magnetar.contexts.context_file import contexts_path

_PLACES: Final[list[TemporaryDirectory[str]]] = []


def leave_out_settings_of_the_user() -> None:
    """Take the variables of a connection away, and name a directory of settings that has all but the contexts: what
    else stands there (pip's mirror) is still found."""
    for name in (CLIENT_CONF_VARIABLE, CONTEXT_VARIABLE, TOKEN_VARIABLE):
        os.environ.pop(name, None)
    contexts = contexts_path()
    if not os.path.lexists(contexts):
        return
    _PLACES.append(TemporaryDirectory(prefix="settings-", ignore_cleanup_errors=True))
    for entry in contexts.parent.parent.iterdir():
        if entry.name != contexts.parent.name:
            Path(_PLACES[-1].name, entry.name).symlink_to(entry)
    os.environ["XDG_CONFIG_HOME"] = _PLACES[-1].name
