"""``docs/command-line.md``, made from the commands themselves.

``python -m tools.command_page > docs/command-line.md`` renews it; `tests/docs/test_command_page.py` compares.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from typing import Any, Final

os.environ.setdefault("TERMINAL_WIDTH", "100")

import click
import typer.main

from magnetar.app import main

_BRACES: Final = str.maketrans("", "", "{}")
_HEAD: Final = """\
# Command line

<!-- generated: python -m tools.command_page > docs/command-line.md -->

`magnetar COMMAND --help`, or `-h`, prints what stands here. Commands of Spark (`jobs`, `pipeline`, `lake`) need
`pip install '.[pipelines]'` from a checkout, and Java 17 where they start a session.
"""


def command_page() -> str:
    """The whole page: a section for each command, in the order of ``--help``."""
    root: Any = typer.main.get_command(main.app)
    return _HEAD + "".join(_sections(root, "magnetar"))


def _sections(command: Any, name: str) -> Iterator[str]:
    for word, found in command.commands.items():
        below: Any = found
        if word in main.PASSED_ON:
            module = importlib.import_module(f"magnetar.{main.PASSED_ON[word]}.command")
            below = typer.main.get_command(module.app)
        yield from _section(below, f"{name} {word}")


def _section(command: Any, name: str) -> Iterator[str]:
    said = " ".join((command.help or "").split())
    if hasattr(command, "commands"):
        yield f"\n## `{name}`\n\n{said}\n"
        yield from _table(command, click.Context(command, info_name=name), "option before the command")
        for word, found in command.commands.items():
            yield from _section(found, f"{name} {word}")
        return
    level = "##" if name.count(" ") == 1 else "###"
    context = click.Context(command, info_name=name)
    arguments = " ".join(
        piece.translate(_BRACES) for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"
    )
    called = f"{name} {arguments}".strip()
    yield f"\n{level} `{called}`\n\n{said}\n"
    yield from _table(command, context, "argument or option")


def _table(command: Any, context: Any, title: str) -> Iterator[str]:
    rows = [record for one in command.params if (record := one.get_help_record(context)) and one.name != "help"]
    if rows:
        yield f"\n| {title} | meaning |\n|---|---|\n"
        for left, right in rows:
            yield f"| `{left}` | {' '.join(right.split()).replace('|', chr(92) + '|')} |\n"


if __name__ == "__main__":
    print(command_page(), end="")
