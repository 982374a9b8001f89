"""Knows where output goes, and what of a stranger's name may reach a terminal."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TextIO

_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
"""Control characters but tab and newline, and those that turn the direction of text or cannot be seen."""


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


def escaped(text: str) -> str:
    r"""Return a text without characters that act on a terminal: they are shown as ``\x1b``."""
    return _CONTROL.sub(_visible, text)


def _visible(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
