"""A file or directory may be named from the home directory: a shell leaves the tilde of ``--data=~/x`` alone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from magnetar.runtime.command_line import directory, directory_name, file_name, found_from_here

HOME = "/home/somebody"


@pytest.mark.parametrize("read", [directory, directory_name, file_name, found_from_here])
@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("~/data", f"{HOME}/data"), ("data/~", "data/~"), ("~nobody.of.that.name", "~nobody.of.that.name"),
        ("s3://bucket/~", "s3://bucket/~"), ("./~/data", "./~/data"), ("~", HOME),
    ],
)  # fmt: skip
def test_a_tilde_is_the_home_directory_where_a_shell_takes_it_for_that(
    read: Callable[[object], object], text: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", HOME)
    assert read(text) in (path, Path(path))


@pytest.mark.parametrize(
    "words",
    [
        ["verify", "~/data"],
        ["rescue", "metadata", "~/data"],
        ["config", "--conf=~/broker.conf"],
        ["backup", "saved", "--data=~/data"],
        ["restore", "~/saved", "--data=data"],
        ["pipeline", "check", "~/p.yaml"],
        ["lake", "history", "~/table"],
        ["tokens", "show", "--token-file=~/token"],
        ["contexts", "import", "one", "~/client.conf"],
        ["admin", "--client-conf=~/client.conf", "topics", "list", "a/b"],
        ["produce", "t", "-m", "x", "--client-conf=~/client.conf"],
        ["produce", "t", "-m", "x", "--url=pulsar+ssl://localhost:1", "--trust-cert-file=~/ca.pem"],
    ],
    ids=" ".join,
)
def test_commands_look_in_the_home_directory(words: list[str], tmp_path: Path) -> None:
    """What is named is nowhere: the command says where it looked, and makes no directory of that name."""
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    here.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "magnetar", *words],
        cwd=here, env={**os.environ, "HOME": str(home)}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode in (1, 2, 255)
    assert f"{home}/" in done.stderr, done.stderr
    assert list(here.iterdir()) == []
