"""Tests have no saved connection of the user, and no login: their commands would ask that broker, and change it."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

from magnetar.contexts.broker_connection import CLIENT_CONF_VARIABLE, CONTEXT_VARIABLE, TOKEN_VARIABLE
from magnetar.contexts.context_file import contexts_path

_PREFIX: Final = "settings-of-tests-"


def leave_out_settings_of_the_user() -> None:
    """Take the variables of a connection away, and name a directory of settings that has all but the contexts: what
    else stands there (pip's mirror) is still found."""
    for name in (CLIENT_CONF_VARIABLE, CONTEXT_VARIABLE, TOKEN_VARIABLE):
        os.environ.pop(name, None)
    _remove_those_of_killed_runs()
    contexts = contexts_path()
    if not os.path.lexists(contexts):
        return
    place = _place_of_this_run()
    for entry in contexts.parent.parent.iterdir():
        if entry.name != contexts.parent.name:
            (place / entry.name).symlink_to(entry)
    os.environ["XDG_CONFIG_HOME"] = str(place)


def _place_of_this_run() -> Path:
    """Make a directory that is locked as long as this process and those that it forks live."""
    made = tempfile.mkdtemp(prefix=f"new-{_PREFIX}")
    fcntl.flock(os.open(made, os.O_RDONLY), fcntl.LOCK_EX)
    place = made.replace(f"new-{_PREFIX}", _PREFIX)
    os.rename(made, place)  # other runs see it only now that it is locked
    owner = os.getpid()
    atexit.register(lambda: shutil.rmtree(place, ignore_errors=True) if os.getpid() == owner else None)
    return Path(place)


def _remove_those_of_killed_runs() -> None:
    """Remove what runs left that a signal ended: a mutant's that took too long, one under ``timeout``."""
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # another user's
            handle = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left)
            finally:
                os.close(handle)
