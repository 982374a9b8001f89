"""Places of a machine that a file names: a relative one begins in the file's directory, wherever a command runs.

The current directory must not count: started from another one, a pipeline would go on with the same checkpoint and
begin a second table.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_REFERENCE: Final = "${"


def beside(file: str, text: str) -> str:
    """Return a place as an absolute one; a URL, and what begins with a reference, stays as it is written."""
    if not text or text.startswith(_REFERENCE) or _SCHEME.match(text) or os.path.isabs(text):
        return text
    return os.path.normpath(os.path.join(os.path.abspath(os.path.dirname(file)), text))


def directory_of(text: str) -> str | None:
    """Return the directory that a place is, with links followed; None for another kind of URL, or a reference."""
    text = text.removeprefix("file://")
    if not text or text.startswith(_REFERENCE) or _SCHEME.match(text):
        return None
    return os.path.realpath(text)


def obstacle(text: str) -> str | None:
    """Return what is in the way of a directory at a place: a file there or above it; None if nothing is."""
    directory = directory_of(text)
    if directory is None:
        return None
    place = Path(directory)
    # A place whose parents cannot be looked into is left to the command that uses it.
    try:
        found = next((one for one in (place, *place.parents) if one.exists()), None)
    except OSError as error:
        return f"{directory} cannot be: {error.strerror}"
    return None if found is None or found.is_dir() else f"{found} is a file and not a directory"
