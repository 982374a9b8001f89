"""What a command came to."""

from __future__ import annotations

from typing import NamedTuple

SECONDS_MAX = 45.0
"""How long a command may take."""
UNFINISHED = -99


class Said(NamedTuple):
    """What a command came to. ``code`` is its exit code; or ``UNFINISHED``."""

    code: int
    out: str
    err: str
