"""What a command line with its words in another order means: the error says where they belong."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from typing import Final

_EAGER: Final = ("--help", "-h", "--version")
_OTHER_WORDS: Final = {
    **dict.fromkeys(("start", "run", "serve", "server", "broker"), "a broker is started by: magnetar standalone"),
    **dict.fromkeys(("stop", "shutdown"), "a broker is stopped by Ctrl-C in its terminal, or by SIGTERM"),
    **dict.fromkeys(("status", "health", "ping"), "whether a broker answers says: magnetar doctor --only broker"),
    "version": "the release is printed by: magnetar --version",
    **dict.fromkeys(("publish", "send", "write"), "messages are sent by: magnetar produce TOPIC -m MESSAGE"),
    **dict.fromkeys(("subscribe", "receive"), "messages are received by: magnetar consume TOPIC -s SUBSCRIPTION"),
    "list": "topics are listed by: magnetar admin topics list public/default",
    **dict.fromkeys(("login", "use"), "how to log in is saved by: magnetar contexts add NAME"),
    **dict.fromkeys(("check", "fsck"), "a data directory is checked by: magnetar verify DIRECTORY"),
}
"""What commands of other programs are called, and what is meant here."""


def misplaced(words: Sequence[str], commands: Collection[str], admin_groups: Collection[str]) -> str | None:
    """Return what is wrong with the first word, and the line that was meant; None if nothing is known about it."""
    first = words[0] if words else ""
    if not first or first in commands or first in _EAGER:
        return None
    if first in admin_groups:
        line = shlex.join(["magnetar", "admin", *words])
        return f"there is no command {first!r}; it is a group of magnetar admin: {line}"
    if first in _OTHER_WORDS:
        return f"there is no command {first!r}; {_OTHER_WORDS[first]}"
    if first.startswith("-"):
        at = next((number for number, word in enumerate(words) if word in commands), 0)
        if at:
            line = shlex.join(["magnetar", words[at], *words[:at], *words[at + 1 :]])
            return f"{first.partition('=')[0]!r} stands before the command; options follow it: {line}"
    return None
