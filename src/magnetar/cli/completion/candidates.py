"""What may follow the words of a command line that is being written."""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from magnetar.cli.admin.table import Command

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
_PROGRAM: Final = "magnetar.app.main"
"""Which lies above and is imported when it is needed only: it knows where the other commands are."""
_PLACES: Final = {
    "produce": {"topic": "topic"},
    "consume": {"topic": "topic", "subscription": "subscription"},
    "read": {"topic": "topic"},
    "explain subscription": {"topic": "topic", "name": "subscription"},
    "perf produce": {"topics": "topic"},
    "perf consume": {"topics": "topic", "subscriptions": "subscription"},
    "perf read": {"topics": "topic"},
    "permissions explain": {"topic": "topic", "namespace": "namespace", "tenant": "tenant"},
    "contexts use": {"name": "context"},
    "contexts show": {"name": "context"},
    "contexts remove": {"name": "context"},
}
"""What stands in the arguments and options of commands, by their parameters; in ``--context`` it is a context."""
_SUBSCRIPTION_FLAGS: Final = ("subscription", "sub", "sub-name", "subscription-name")


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
    return sorted({one for one in _possible(before, prefix) if one.startswith(prefix)})


def _possible(before: Sequence[str], prefix: str) -> Iterable[str]:
    if not before:
        return [*COMMANDS, "help"]
    if before == ["help"]:
        return COMMANDS
    if before[0] == "admin":
        return _admin(before[1:], prefix)
    if len(before) == 1 and before[0] in GROUPS and not prefix.startswith("-"):
        return GROUPS[before[0]]
    return _program(before, prefix)


def _program(before: Sequence[str], prefix: str) -> Iterable[str]:
    """What may follow in a command that typer declares."""
    from magnetar.cli.completion.program_words import place_of

    name, command, words = _command(before)
    if command is None:
        return ()
    place = place_of(command, words)
    kinds = {"context": "context", **_PLACES.get(name, {})}
    parameter = place.waiting if place.waiting is not None or prefix.startswith("-") else place.argument
    if parameter in kinds:
        return _names(kinds[parameter], prefix, place.given.get("topic") or place.given.get("topics", ""), place.given)
    if place.waiting is not None or (place.argument is not None and not prefix.startswith("-")):
        return ()  # a file perhaps, which the shell knows
    return place.options


def _command(before: Sequence[str]) -> tuple[str, Any, list[str]]:
    """The name of the command of a line, what typer has made of it (None: there is none), and the words after it."""
    from typer.main import get_command

    program = importlib.import_module(_PROGRAM)
    words = list(before)
    name = words.pop(0)
    package = program.PASSED_ON.get(name)
    found: Any = get_command(importlib.import_module(f"magnetar.{package}.command").app if package else program.app)
    if package is None:
        found = found.commands.get(name)
    while found is not None and hasattr(found, "commands"):
        if not words:
            break
        below = words.pop(0)
        name, found = f"{name} {below}", found.commands.get(below)
    return name, found, words


def _names(kind: str, prefix: str, topic: str, given: Mapping[str, str]) -> Iterable[str]:
    if kind == "context":
        return _saved_contexts()
    from magnetar.cli.completion.broker_names import flags_of, names_in_time

    flags = flags_of(given)
    if flags is None or (kind == "subscription" and not topic):
        return ()
    return names_in_time(kind, prefix, topic, flags)


def _saved_contexts() -> Iterable[str]:
    """The names of the saved connections; none where the file of them cannot be read, which commands say."""
    from magnetar.contexts.context_file import read_contexts
    from magnetar.model.errors import InvalidValueError

    try:
        return read_contexts().by_name
    except InvalidValueError:
        return ()


def _admin(before: Sequence[str], prefix: str) -> Iterable[str]:
    from magnetar.cli.admin.arguments import HelpWanted, Parser, UsageError, VersionWanted
    from magnetar.cli.admin.command import ROOT_FLAGS
    from magnetar.cli.admin.table import ALIASES, GROUPS, HIDDEN_GROUPS, commands_of

    if before and before[-1] == "--context":
        return _saved_contexts()
    root = Parser(ROOT_FLAGS, stop=True)
    try:
        given = root.parse(before)
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
    said = {key.replace("-", "_"): str(value) for key, value in given.items() if value}
    return _of_command(command, root.rest[2:], prefix, said)


def _of_command(command: Command, words: Sequence[str], prefix: str, said: Mapping[str, str]) -> Iterable[str]:
    """What may follow some words of a command of ``admin``."""
    flags = {name: flag for flag in command.flags for name in flag.names}
    placed = _placed(command, words)
    taken = flags.get(words[-1]) if words else None
    if taken is not None and taken.kind != "switch":
        if taken.kind.startswith("one of "):
            return taken.kind.removeprefix("one of ").split("|")
        if taken.key in _SUBSCRIPTION_FLAGS and taken.kind == "text" and command.arguments[:1]:
            topic = placed[0] if placed and command.arguments[0].kind == "topic" else ""
            return _names("subscription", prefix, topic, said)
        return ()
    if len(placed) < len(command.arguments) and not prefix.startswith("-"):
        argument = command.arguments[len(placed)]
        kind = {"topic": "topic", "namespace": "namespace"}.get(argument.kind, argument.name)
        found = list(_names(kind, prefix, "", said)) if kind in ("topic", "namespace", "tenant") else []
        if found or prefix:
            return found
    given = {name for flag in command.flags if set(flag.names) & set(words) for name in flag.names}
    longest = [max(flag.names, key=len) for flag in command.flags if not flag.hidden]
    return [name for name in [*longest, "--json", "--help"] if name not in given]


def _placed(command: Command, words: Sequence[str]) -> list[str]:
    """The words that are no flags and no values of flags."""
    flags = {name: flag for flag in command.flags for name in flag.names}
    placed: list[str] = []
    value = False
    for word in words:
        if value:
            value = False
        elif (flag := flags.get(word)) is not None:
            value = flag.kind != "switch"
        elif not word.startswith("-"):
            placed.append(word)
    return placed
