"""Makes text that others wrote, such as names of topics, harmless to a terminal."""

from __future__ import annotations

import re
from typing import Final

_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
"""Control characters but tab and newline, and those that turn the direction of text or cannot be seen."""


def escaped(text: str) -> str:
    r"""Return a text without characters that act on a terminal: they are shown as ``\x1b``."""
    return _CONTROL.sub(_visible, text)


def _visible(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
