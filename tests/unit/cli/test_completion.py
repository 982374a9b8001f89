"""What shells are offered, and that bash can load and run its script."""

from __future__ import annotations

import importlib
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from magnetar.app import main
from magnetar.cli.completion.candidates import COMMANDS, GROUPS, candidates, words_of


def test_the_commands_are_those_of_the_program() -> None:
    found = typer.main.get_command(main.app)
    shown = {name for name, command in getattr(found, "commands", {}).items() if not command.hidden}
    assert set(COMMANDS) >= shown


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["adm"], ["admin"]),
        (["admin", "topicP"], ["topicPolicies"]),
        (["admin", "--admin-url", "http://x:1", "tena"], ["tenants"]),
        (["admin", "tenants", "cre"], ["create"]),
        (["admin", "tenants", "create", "acme", "--al"], ["--allowed-clusters"]),
        (["admin", "topics", "list", "--topic-domain", ""], ["non_persistent", "persistent"]),
        (["admin", "topics", "list", "--bundle", ""], []),
        (["admin", "nothing", ""], []),
        (["contexts", "u"], ["use"]),
        (["completion", ""], ["bash", "fish", "zsh"]),
        (["tokens", "create-"], ["create-key-pair", "create-secret-key"]),
        (["help", "tok"], ["tokens"]),
        (["standalone", "--s"], ["--set"]),
        (["rescue", "metadata", "--acc"], ["--accept"]),
        (["tokens", "create", "--sub"], ["--subject"]),
        (["produce", "orders", "-m", "--k"], []),
        (
            ["produce", "orders", "-m", "x", "--key-v"],
            ["--key-value-encoding-type", "--key-value-key", "--key-value-key-file"],
        ),
        (["produce", "orders", "-m", "x", "--num-produce", "3", "--num"], []),
        (["produce", "orders", "--", "--num"], []),
        (["restore", ""], []),
        (["lake", "history", "--he"], ["--help"]),
        (["nothing", "--h"], []),
        (["tokens", "nothing", "--h"], []),
        (["tokens", "--h"], ["--help"]),
    ],
)
def test_what_may_follow(words: list[str], offered: list[str]) -> None:
    assert candidates(words) == offered


def test_the_commands_of_the_groups_are_those_of_the_program() -> None:
    found: dict[str, set[str]] = {}
    top = typer.main.get_command(main.app)
    for name, command in getattr(top, "commands", {}).items():
        package = main.PASSED_ON.get(name)
        if package is not None:
            command = typer.main.get_command(importlib.import_module(f"magnetar.{package}.command").app)
        shown = {one for one, below in getattr(command, "commands", {}).items() if not below.hidden}
        if shown:
            found[name] = shown
    assert {name: set(words) for name, words in GROUPS.items()} == found


def test_names_of_contexts_are_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file = tmp_path / "magnetar" / "contexts.toml"
    for before in (["contexts", "use"], ["contexts", "remove"], ["admin", "--context"], ["consume", "t", "--context"]):
        file.parent.mkdir(exist_ok=True)
        file.write_text("[contexts.dev]\n[contexts.prod]\n")
        assert candidates([*before, ""]) == ["dev", "prod"]
        file.write_text("no TOML [")
        assert candidates([*before, ""]) == []


def test_words_that_look_like_flags_are_words(program: Path) -> None:
    """As zsh and fish hand them over, each by itself: a dash that was typed last was lost, and --help was obeyed."""
    words = f"{shlex.quote(str(program))}/magnetar completion words -- admin topics stats t"
    assert run("bash", f"{words} --get-p", program) == ["--get-precise-backlog"]
    assert "--get-precise-backlog" in run("bash", f"{words} --", program)
    assert run("bash", f"{words} --help", program) == ["--help"]


def test_a_flag_is_offered_once() -> None:
    assert "--force" in candidates(["admin", "tenants", "delete", "acme", ""])
    assert "--force" not in candidates(["admin", "tenants", "delete", "acme", "-f", ""])


def test_words_of_a_line() -> None:
    """As the shell parts them, but for colons and equals signs."""
    assert words_of("magnetar admin --admin-url http://x:1 tena") == [
        "magnetar",
        "admin",
        "--admin-url",
        "http://x:1",
        "tena",
    ]
    assert words_of("magnetar admin ") == ["magnetar", "admin", ""]
    assert words_of('magnetar produce "a b" ') == ["magnetar", "produce", "a b", ""]
    assert words_of('magnetar produce "a b') == ["magnetar", "produce", '"a', "b"]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A directory that holds ``magnetar``, for a shell's PATH."""
    file = tmp_path / "magnetar"
    file.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m magnetar.app.main "$@"\n')
    file.chmod(0o755)
    return tmp_path


def run(shell: str, script: str, program: Path) -> list[str]:
    """The lines that a script prints in a shell that has the program."""
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"this machine has no {shell}")
    environment = {**os.environ, "PATH": f"{program}{os.pathsep}{os.environ['PATH']}", "HOME": str(program)}
    found = [path, "-f", "-c", script] if shell == "zsh" else [path, "-c", script]
    return subprocess.run(
        found, capture_output=True, text=True, timeout=120, check=True, env=environment, cwd=program
    ).stdout.split()


def test_bash_completes(program: Path) -> None:
    """The script of bash, in bash, with the program; bash parts the URL at its colons."""
    script = (
        'eval "$(magnetar completion bash)"; '
        'try() { COMP_LINE=$1; COMP_POINT=${#1}; _magnetar; echo "${COMPREPLY[@]}"; }; '
        "try 'magnetar admin --admin-url http://x:1 tenants cre'; try 'magnetar admin topics stats t --get-p'; "
        "COMP_WORDBREAKS=':='; try 'magnetar admin --admin-url=http://x:1 ten'"
    )
    assert run("bash", script, program) == ["create", "--get-precise-backlog", "tenants"]


def test_fish_completes(program: Path) -> None:
    """Files where no word of ours may stand, too."""
    (program / "payload.bin").touch()
    script = (
        "magnetar completion fish | source; complete -C 'magnetar admin tenants cre'; "
        "complete -C 'magnetar admin topics stats t --get-p'; complete -C 'magnetar produce t -f payl'"
    )
    assert run("fish", script, program) == ["create", "--get-precise-backlog", "payload.bin"]


def test_zsh_completes(program: Path) -> None:
    """The function of zsh, with the array and the number that zsh gives it."""
    script = (
        'compdef() { :; }; compadd() { shift; print -l -- "${(P@)1}"; }; _files() { print files; }; '
        'eval "$(magnetar completion zsh)"; words=(magnetar admin tenants cre); CURRENT=4; _magnetar; '
        "words=(magnetar admin topics stats t --get-p); CURRENT=6; _magnetar; words=(magnetar produce t -f payl); "
        "CURRENT=5; _magnetar"
    )
    assert run("zsh", script, program) == ["create", "--get-precise-backlog", "files"]
