"""What shells are offered, and that bash can load and run its script."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from magnetar.app import main
from magnetar.cli.completion.candidates import COMMANDS, candidates


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
    ],
)
def test_what_may_follow(words: list[str], offered: list[str]) -> None:
    assert candidates(words) == offered


def test_a_flag_is_offered_once() -> None:
    assert "--force" in candidates(["admin", "tenants", "delete", "acme", ""])
    assert "--force" not in candidates(["admin", "tenants", "delete", "acme", "-f", ""])


def test_bash_completes(tmp_path: Path) -> None:
    """The script of bash, in bash, with the program."""
    bash = shutil.which("bash")
    assert bash is not None
    program = tmp_path / "magnetar"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m magnetar.app.main "$@"\n')
    program.chmod(0o755)
    script = (
        f'PATH={shlex.quote(str(tmp_path))}:$PATH; eval "$(magnetar completion bash)"; '
        'COMP_WORDS=(magnetar admin tenants cre); COMP_CWORD=3; _magnetar; echo "${COMPREPLY[@]}"; '
        'COMP_WORDS=(magnetar admin topics stats t --get-p); COMP_CWORD=5; _magnetar; echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run([bash, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == ["create", "--get-precise-backlog"]
