"""What one check of ``magnetar doctor`` says."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    NOTE = "note"
    """Something is not there that only some users need."""
    WARNING = "warning"
    """It works, and not as well or as safely as it could."""
    FAILURE = "failure"
    """It does not work."""


class Symptom(NamedTuple):
    """One line of the result."""

    check: str
    level: Level
    says: str
    """What was seen, with numbers."""
    next_step: str = ""
    """What to do; empty if there is nothing to do."""
