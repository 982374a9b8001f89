"""docs/security.md: its commands run, and brokers take its settings."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from magnetar.cli.tokens.command import app
from magnetar.config.configuration import load
from magnetar.config.properties import read_properties
from magnetar.runtime.clock import SystemClock
from magnetar.security.authentication.configured_providers import authentication_service
from magnetar.security.authentication.revocation_list import parse
from tests.support.snippets import Snippet, commands, snippets

PAGE = [one for one in snippets() if one.file == "docs/security.md"]


def starting(*words: str) -> list[Snippet]:
    return [one for one in PAGE if one.text.startswith(words)]


def commands_of_page(directory: Path) -> list[list[str]]:
    """The commands of ``magnetar tokens``, in their order."""
    blocks = [one._replace(text=one.at("", directory)) for one in PAGE if one.language == "sh"]
    called = [words for one in blocks for words in commands(one)]
    return [words[2:] for words in called if words[:2] == ["magnetar", "tokens"]]


def test_the_commands_for_tokens(tmp_path: Path) -> None:
    """Each runs after those before it; the token that one prints is what the next ones read."""
    (tmp_path / "data").mkdir()
    run = CliRunner()
    ran = 0
    for words in commands_of_page(tmp_path):
        result = run.invoke(app, words)
        assert result.exit_code == 0, (words, result.output)
        if words[0] == "create":
            (tmp_path / "data" / "alice.token").write_text(result.stdout)
        ran += 1
    assert ran == 7
    assert len(parse((tmp_path / "data" / "revoked").read_text()).fingerprints) == 1


@pytest.mark.parametrize(
    "block", starting("authenticationEnabled=true\nauthenticationProviders"), ids=lambda one: one.where
)
def test_the_settings(tmp_path: Path, block: Snippet) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "secret.key").write_bytes(bytes(range(32)))
    file = tmp_path / "broker.conf"
    file.write_text(block.at("", tmp_path))
    loaded = load(file=file)
    assert {one.key for one in read_properties(block.text)} == set(loaded.origin)
    service = authentication_service(loaded.settings, SystemClock())
    assert service is not None
    assert service.methods == ("token",)


def test_the_revocation_list() -> None:
    (block,) = starting("# one on a line\n")
    found = parse(block.text)
    assert found.faults == ()
    assert len(found) == 3
