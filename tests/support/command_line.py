"""Command lines of documents and help pages, judged by the real command line without running them."""

from __future__ import annotations

import importlib
from typing import Any

import typer.main

from magnetar.app import main
from magnetar.cli.admin.arguments import Parser
from magnetar.cli.admin.command import ROOT_FLAGS
from magnetar.cli.admin.table import ALIASES, commands_of


def taken(words: list[str]) -> None:
    """Raise unless the command exists, and has these arguments and options; ``magnetar`` itself is not among them."""
    if words[0] == "admin":
        taken_by_admin(words[1:])
        return
    app = main.app
    if words[0] in main.PASSED_ON:
        app, words = importlib.import_module(f"magnetar.{main.PASSED_ON[words[0]]}.command").app, words[1:]
    command: Any = typer.main.get_command(app)
    if not words:
        command.make_context("magnetar", [])
        return
    context = command.make_context("magnetar", [words[0]]) if hasattr(command, "commands") else None
    while hasattr(command, "commands"):
        command, words = command.commands[words[0]], words[1:]
    command.make_context(command.name, words, parent=context)


def taken_by_admin(words: list[str]) -> None:
    """Raise unless ``magnetar admin`` has this command with these arguments, and does not refuse it."""
    root = Parser(ROOT_FLAGS, stop=True)
    root.parse(words)
    group, name, *rest = root.rest
    command = commands_of(ALIASES.get(group, group))[name]
    assert command.refusal is None, words
    Parser(command.flags, command.arguments).parse(rest)
