"""The flags of connections: whatever the command, one flag has one spelling and one help."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

import pytest
import typer.main
from typer.core import TyperCommand, TyperGroup, TyperOption

from magnetar.app.main import PASSED_ON, app
from magnetar.cli.admin.command import ROOT_FLAGS
from magnetar.contexts import flags

SHARED = {
    "--context": flags.Context,
    "--client-conf": flags.ClientConfFile,
    "--token": flags.Token,
    "--auth-plugin": flags.AuthPlugin,
    "--auth-params": flags.AuthParams,
    "--service-url": flags.ServiceUrl,
    "--admin-url": flags.WebUrl,
    "--listener-name": flags.ListenerName,
    "--trust-cert-file": flags.Trust,
}
OTHER_MEANING = {
    ("perf produce", "--admin-url"): "for --partitions",
    ("perf transaction", "--admin-url"): "for --partitions",
    ("jobs offload", "--admin-url"): "whose directory --data is",
    ("jobs compact", "--admin-url"): "whose directory --data is",
}
SAVING = "contexts"
"""What ``contexts add`` is given is saved: its flags are those of the file."""


def commands(name: str, command: object) -> Iterator[tuple[str, TyperCommand]]:
    if isinstance(command, TyperGroup):
        for word, one in command.commands.items():
            yield from commands(f"{name} {word}", one)
    else:
        assert isinstance(command, TyperCommand)
        yield name, command


def all_commands() -> Iterator[tuple[str, TyperCommand]]:
    for name, package in PASSED_ON.items():
        if name != SAVING:
            yield from commands(name, typer.main.get_command(import_module(f"magnetar.{package}.command").app))
    yield from commands("", typer.main.get_command(app))


FOUND = [
    (name, option)
    for name, command in all_commands()
    for option in command.params
    if isinstance(option, TyperOption) and SHARED.keys() & set(option.opts)
]


@pytest.mark.parametrize(("name", "option"), FOUND, ids=[f"{name} {option.opts[-1]}" for name, option in FOUND])
def test_a_flag_says_the_same_in_each_command(name: str, option: TyperOption) -> None:
    (spelt,) = SHARED.keys() & set(option.opts)
    help_ = option.help or ""
    other = OTHER_MEANING.get((name, spelt))
    assert other in help_ if other else help_ == flags.help_of(SHARED[spelt])


def test_the_commands_with_a_broker_take_contexts() -> None:
    logging_in = {name for name, option in FOUND if "--token" in option.opts}
    assert {name for name, option in FOUND if "--context" in option.opts} == logging_in
    assert {"jobs audit", "explain subscription", "perf read", "permissions self-test"} <= logging_in


def test_admin_says_the_same() -> None:
    told = {name: flag.said for flag in ROOT_FLAGS for name in flag.names}
    for name in ("--context", "--client-conf", "--token", "--auth-plugin", "--auth-params", "--admin-url"):
        assert told[name] == flags.help_of(SHARED[name])
