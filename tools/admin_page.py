"""``docs/admin-commands.md``, made from the tables of ``magnetar admin``.

``python -m tools.admin_page > docs/admin-commands.md`` renews it; `tests/docs/test_admin_page.py` compares.
"""

from __future__ import annotations

from collections.abc import Iterator

from magnetar.cli.admin.help_page import example, name_of
from magnetar.cli.admin.table import GROUPS, Command, commands_of

_HEAD = """\
# Commands of `magnetar admin`

<!-- generated: python -m tools.admin_page > docs/admin-commands.md -->

The groups, commands and flags of Apache Pulsar's `pulsar-admin` 4.0.8: a script runs after its name is replaced by
`magnetar admin`. `magnetar admin GROUP COMMAND --help` says what each flag means. Flags before the group say where the
broker is and how to log in; they are taken at the end, too. `--json` prints JSON: on standard error an object with
`error`, and for a refusal `status`, `reason`, `asked` and `next`.
"""


def admin_page() -> str:
    """The whole page: a section for each group, a row for each command."""
    return _HEAD + "".join(line for group in GROUPS for line in _group(group))


def _group(group: str) -> Iterator[str]:
    commands = {name: one for name, one in commands_of(group).items() if name == one.name}
    yield f"\n## `{group}`\n\n{GROUPS[group]}\n\n| command | what it does |\n|---|---|\n"
    for command in commands.values():
        yield f"| `{_called(command)}` | {_said(command)} |\n"


def _called(command: Command) -> str:
    words = [command.name, *(name_of(one) for one in command.arguments)]
    for flag in command.flags:
        if not flag.hidden:
            shown = "/".join(sorted(flag.names, key=len))
            words.append(shown if flag.required else f"[{shown}]")
    return " ".join(words).replace("|", "\\|")


def _said(command: Command) -> str:
    if command.refusal is not None:
        return f"refused: {command.refusal}".replace("|", "\\|")
    hidden = " Hidden in help, as in pulsar-admin." if command.hidden else ""
    return f"{command.said}{hidden}<br>`{example(command)}`".replace("|", "\\|")


if __name__ == "__main__":
    print(admin_page(), end="")
