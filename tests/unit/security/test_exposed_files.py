"""Files of secrets that are open to everybody: said once, with the next step, and never refused."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from magnetar.cli.tokens.command import app
from magnetar.config.settings import Settings
from magnetar.runtime.clock import SystemClock
from magnetar.security.authentication.token_provider import TokenProvider
from magnetar.security.credentials.key_file import read_key
from magnetar.security.credentials.secret import Secret
from magnetar.security.exposed_files import exposure
from magnetar.security.tls.client_tls import ClientTls
from tests.support.certificates import Authority

OPEN = "holds a secret and is open to every user of this machine (mode"


def kept(path: Path, content: str | bytes, mode: int) -> str:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize(("mode", "said"), [(0o644, True), (0o602, True), (0o640, False), (0o600, False)])
def test_the_brokers_secret(tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int, said: bool) -> None:
    """It got no word."""
    file = kept(tmp_path / "a secret.key", b"s" * 32, mode)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            TokenProvider.of(Settings(tokenSecretKey=f"file://{file}"), SystemClock())
    step = f"tokenSecretKey: {file} {OPEN} {mode:04o}): chmod 600 '{file}'"
    assert [one.getMessage() for one in caplog.records] == [step] * said


def test_the_secret_behind_a_variable(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", kept(tmp_path / "secret.key", b"s" * 32, 0o644))
    with caplog.at_level(logging.WARNING):
        TokenProvider.of(Settings(tokenSecretKey="env:KEY"), SystemClock())
    assert OPEN in caplog.text


def test_a_public_key_is_for_everybody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    private, public = str(tmp_path / "private.key"), str(tmp_path / "public.key")
    pair = ("create-key-pair", "--output-private-key", private, "--output-public-key", public)
    assert CliRunner().invoke(app, pair).exit_code == 0
    token = CliRunner().invoke(app, ("create", "--private-key", private, "-s", "alice"))
    assert (token.exit_code, token.stderr) == (0, "")
    done = CliRunner().invoke(app, ("validate", "--public-key", public, token.stdout.strip()))
    assert (done.exit_code, done.stderr) == (0, "")
    with caplog.at_level(logging.WARNING):
        TokenProvider.of(Settings(tokenPublicKey=public), SystemClock())
    assert os.stat(public).st_mode & 0o777 == 0o644 and not caplog.records


def test_keys_of_the_tokens_commands(tmp_path: Path) -> None:
    """The token on standard output stays alone there."""
    file = kept(tmp_path / "secret.key", b"s" * 32, 0o644)
    made = CliRunner().invoke(app, ("create", "--secret-key", file, "--subject", "alice"))
    assert (made.exit_code, len(made.stdout.splitlines())) == (0, 1)
    assert made.stderr == f"magnetar: --secret-key: {file} {OPEN} 0644): chmod 600 {file}\n"
    checked = CliRunner().invoke(app, ("validate", "--secret-key", file, made.stdout.strip()))
    assert checked.exit_code == 0 and OPEN in checked.stderr


def test_the_keys_of_a_client(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    issued = Authority(tmp_path).issue("client")
    Path(issued.key_file).chmod(0o644)
    login = kept(tmp_path / "login.json", json.dumps({"client_id": "a", "client_secret": "b"}), 0o644)
    with caplog.at_level(logging.WARNING):
        for check in (True, False):
            ClientTls(
                certificate_file=issued.certificate_file, key_file=issued.key_file, verify_host_name=check
            ).context()
            read_key(Secret.parse(f"file:{login}", "privateKey"))
    assert [one.getMessage().partition(" holds")[0] for one in caplog.records] == [
        f"the key for TLS: {issued.key_file}",
        f"the key file of the login: {login}",
    ]


def test_nothing_is_said_of_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o666)
    assert [exposure(path, "x") for path in (tmp_path / "pipe", tmp_path / "gone", "/dev/null", "a\0b")] == [""] * 4
    named = kept(tmp_path / "a\nmagnetar: all is lost", b"k", 0o644)
    assert "\n" not in exposure(named, "x")
