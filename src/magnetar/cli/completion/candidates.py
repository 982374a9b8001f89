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
GROUPS: Final = {
    "completion": ("bash", "zsh", "fish"),
    "contexts": ("list", "add", "use", "show", "remove", "import"),
    "explain": ("subscription",),
    "jobs": ("audit", "compact", "compare", "offload", "replay", "report"),
    "lake": ("compact", "history", "holding", "positions", "vacuum", "verify"),
    "perf": ("consume", "produce", "read", "transaction"),
    "permissions": ("explain", "self-test"),
    "pipeline": ("check", "plan", "replay", "run", "status", "verify"),
    "rescue": ("metadata",),
    "tokens": ("create", "create-key-pair", "create-secret-key", "revoke", "show", "validate"),
}
"""The commands of the other groups: loading a group for its names takes too long for a key press."""
_NAME_A_CONTEXT: Final = ("use", "show", "remove")


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
        return [*COMMANDS, "help"]
    if before == ["help"]:
        return COMMANDS
    if before[-1] == "--context" or (len(before) == 2 and before[0] == "contexts" and before[1] in _NAME_A_CONTEXT):
        return _saved_contexts()
    if before[0] == "admin":
        return _admin(before[1:])
    return GROUPS.get(before[0], ()) if len(before) == 1 else ()


def _saved_contexts() -> Iterable[str]:
    """The names of the saved connections; none where the file of them cannot be read, which commands say."""
    from magnetar.cli.contexts.context_file import read_contexts
    from magnetar.model.errors import InvalidValueError

    try:
        return read_contexts().by_name
    except InvalidValueError:
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
