"""What may follow the words of a command line that is being written."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import Final

COMMANDS: Final = (
    "admin", "backup", "completion", "config", "consume", "contexts", "doctor", "explain", "jobs", "lake", "perf",
    "permissions", "pipeline", "produce", "read", "rescue", "restore", "sql", "standalone", "tokens", "verify",
)  # fmt: skip
"""The commands of ``magnetar``; those of ``admin`` are in its tables."""
_SHELLS: Final = ("bash", "zsh", "fish")
_CONTEXTS: Final = ("list", "add", "use", "show", "remove", "import")


def words_of(line: str) -> list[str]:
    """Return the words of a line up to the cursor; the last is empty after a space.

    bash itself parts words at colons and equals signs too, which stand in URLs.
    """
    try:
        found = shlex.split(line)
    except ValueError:  # a quotation that is not closed yet
        found = line.split()
    return [*found, ""] if not line or line[-1].isspace() else found


def candidates(words: Sequence[str]) -> list[str]:
    """Return what the last word may become; the words are those after ``magnetar``."""
    *before, prefix = words or [""]
    return sorted(one for one in _possible(before) if one.startswith(prefix))


def _possible(before: Sequence[str]) -> Iterable[str]:
    if not before:
        return COMMANDS
    if before[0] == "admin":
        return _admin(before[1:])
    if len(before) == 1:
        return {"completion": _SHELLS, "contexts": _CONTEXTS}.get(before[0], ())
    return ()


def _admin(before: Sequence[str]) -> Iterable[str]:
    from magnetar.cli.admin.arguments import HelpWanted, Parser, UsageError, VersionWanted
    from magnetar.cli.admin.command import ROOT_FLAGS
    from magnetar.cli.admin.table import ALIASES, GROUPS, HIDDEN_GROUPS, commands_of

    root = Parser(ROOT_FLAGS, stop=True)
    try:
        root.parse(before)
    except (HelpWanted, UsageError, VersionWanted):
        return ()
    if not root.rest:
        return [*(name for name in GROUPS if name not in HIDDEN_GROUPS), *(flag.names[0] for flag in ROOT_FLAGS)]
    group = ALIASES.get(root.rest[0], root.rest[0])
    if group not in GROUPS:
        return ()
    commands = commands_of(group)
    if len(root.rest) == 1:
        return [
            name for name, one in commands.items() if not one.hidden or all(two.hidden for two in commands.values())
        ]
    command = commands.get(root.rest[1])
    if command is None:
        return ()
    last = root.rest[-1]
    taken = next((flag for flag in command.flags if last in flag.names and len(root.rest) > 2), None)
    if taken is not None and taken.kind != "switch":
        return taken.kind.removeprefix("one of ").split("|") if taken.kind.startswith("one of ") else ()
    given = {name for flag in command.flags if set(flag.names) & set(root.rest[2:]) for name in flag.names}
    longest = [max(flag.names, key=len) for flag in command.flags if not flag.hidden]
    return [name for name in [*longest, "--json", "--help"] if name not in given]
