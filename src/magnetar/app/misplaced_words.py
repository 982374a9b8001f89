"""What a command line with its words in another order means: the error says where they belong."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from typing import Final

_EAGER: Final = ("--help", "--version")


def misplaced(words: Sequence[str], commands: Collection[str], admin_groups: Collection[str]) -> str | None:
    """Return what is wrong with the first word, and the line that was meant; None if nothing is known about it."""
    first = words[0] if words else ""
    if not first or first in commands or first in _EAGER:
        return None
    if first in admin_groups:
        line = shlex.join(["magnetar", "admin", *words])
        return f"there is no command {first!r}; it is a group of magnetar admin: {line}"
    if first.startswith("-"):
        at = next((number for number, word in enumerate(words) if word in commands), 0)
        if at:
            line = shlex.join(["magnetar", words[at], *words[:at], *words[at + 1 :]])
            return f"{first.partition('=')[0]!r} stands before the command; options follow it: {line}"
    return None
