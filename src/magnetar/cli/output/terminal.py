"""Knows where output goes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TextIO


@dataclass(frozen=True, slots=True)
class Terminal:
    """What stands at the other end of a stream."""

    interactive: bool
    color: bool
    columns: int


def terminal_of(stream: TextIO, environment: Mapping[str, str] = os.environ) -> Terminal:
    """Return what a stream leads to: NO_COLOR, TERM=dumb and COLUMNS are heeded."""
    interactive = stream.isatty()
    color = interactive and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"
    return Terminal(interactive, color, shutil.get_terminal_size((100, 24)).columns)
