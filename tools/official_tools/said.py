"""What a command came to."""

from __future__ import annotations

import os
from typing import NamedTuple

SECONDS_MAX = float(os.environ.get("JUDGES_SECONDS_MAX", "45"))
"""How long a command may take; a busy machine needs more to start Java."""
UNFINISHED = -99


class Said(NamedTuple):
    """What a command came to. ``code`` is its exit code; or ``UNFINISHED``."""

    code: int
    out: str
    err: str
