"""Brings what people type into the order that the commands' parsers read."""

from __future__ import annotations

from collections.abc import Container


def in_order(arguments: list[str]) -> list[str]:
    """Return a command line of `pulsar-client`, whose connection stands before the command, with it after that."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("--") and arguments[at] not in ("--help", "--version"):
        at += 1 if "=" in arguments[at] else 2
    if not at or arguments[at : at + 1] not in (["produce"], ["consume"], ["read"]):
        return arguments
    return [arguments[at], *arguments[:at], *arguments[at + 1 :]]


def helped(arguments: list[str]) -> list[str]:
    """Return ``help produce`` as ``produce --help``: people type it, and no command has that name."""
    return [*arguments[1:], "--help"] if arguments[:1] == ["help"] else arguments


def passed_whole(arguments: list[str], commands: Container[str]) -> list[str]:
    """Return a command line whose ``--`` reaches the command: the group above takes the first one away. ``commands``
    have a parser of their own."""
    if arguments and arguments[0] in commands and "--" in arguments:
        at = arguments.index("--")
        return [*arguments[:at], "--", *arguments[at:]]
    return arguments
