"""Files of secrets that are open to every user of the machine: said once, never refused.

OpenSSH refuses such keys, also those that a group may read. Container systems mount secrets for everybody in a
container of one user, and services share keys by a group, so that it is a warning here, and about everybody only.
"""

from __future__ import annotations

import logging
import os
import shlex
import stat
from typing import Final

from magnetar.runtime.harmless_text import one_line

_WARNED_MAX: Final = 1024
_warned: set[str] = set()
"""What was said, with file and mode; a file is loaded for each port, and again when it has changed."""


def exposure(file: str | os.PathLike[str], what: str) -> str:
    """What is to be said of a file that ``what`` names, and the next step; empty if not everybody may use it."""
    try:
        mode = os.stat(file).st_mode
    except (OSError, ValueError):
        return ""
    if not stat.S_ISREG(mode) or not mode & (stat.S_IROTH | stat.S_IWOTH):
        return ""
    path = os.fspath(file)
    return one_line(
        f"{what}: {path} holds a secret and is open to every user of this machine (mode {stat.S_IMODE(mode):04o}): "
        f"chmod 600 {shlex.quote(path)}"
    )


def warn_of_exposure(file: str | os.PathLike[str], what: str, log: logging.Logger) -> None:
    """Log that, once in a process unless the file's mode changes."""
    said = exposure(file, what)
    if said and said not in _warned and len(_warned) < _WARNED_MAX:
        _warned.add(said)
        log.warning("%s", said)
