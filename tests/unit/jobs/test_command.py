"""Bad input and a broker that is down: one sentence, exit code 2, no Spark started."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from magnetar.app.main import app
from magnetar.client.login import ClientLogin
from magnetar.contexts.context import Context
from magnetar.contexts.context_file import Contexts
from magnetar.contexts.flags import login
from magnetar.jobs.broker_flags import access_of, rest_of
from tests.support.live_broker import HOST, free_port
from tests.support.minted_secrets import kept, signing_key, token


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["jobs", *arguments])
    return result.exit_code, " ".join(result.output.split())


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["audit", "t", "--data", "/nowhere"], "/nowhere is no data directory of a magnetar broker"),
        (["audit", "t", "--url", "http://x"], "unknown scheme 'http'; write pulsar://host:6650"),
        (["audit", "t", "--url", "pulsar://x", "--out", "x.csv"], "can be written as .json or .parquet"),
        (["replay", "t", "t", "--id", "x", "--url", "pulsar://x"], "cannot be replayed into itself as a whole"),
        (["offload", "t", "--data", "."], "name the broker whose directory --data is, with --admin-url or --context"),
        (["compact", "t", "--data", "."], "name the broker whose directory --data is, with --admin-url or --context"),
        (["report", "public"], "'public' is no namespace; write tenant/namespace"),
        (["report", "a/b", "--admin", "http://127.0.0.1:1"], "give --url as well, of the same broker"),
        (
            ["report", "a/b", "--admin", "http://127.0.0.1:1", "--url", "pulsar://x"],
            "http://127.0.0.1:1 does not answer",
        ),
        (["report", "a/b", "--url", "pulsar://x"], "give --admin-url as well, of the same broker"),
        (["replay", "t", "u", "--id", "x", "--subscription", "s", "--url", "pulsar://x"], "give --admin-url as well"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    arguments: list[str], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, output = run(*arguments)
    assert text in output
    assert code == 2
    assert not list(tmp_path.iterdir())


def test_a_broker_that_is_down_is_one_sentence() -> None:
    port = free_port()
    code, output = run("audit", "t", "--url", f"pulsar://127.0.0.1:{port}", "--patience", "0.2")
    assert f"127.0.0.1:{port}" in output
    assert code == 2


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--token", "{0}"], "token must be a reference to a secret, env:NAME, file:/path or command:PROGRAM"),
        (["--token", "env:NOT_THERE"], "the environment has no variable NOT_THERE"),
        (["--client-conf", "/not/there"], "/not/there cannot be read on this machine"),
        (["--client-conf", "{1}"], "no login by Kerberos"),
    ],
)
def test_a_login_that_cannot_be_is_one_sentence_without_a_secret(
    arguments: list[str], text: str, tmp_path: Path
) -> None:
    minted = token("app", signing_key())
    conf = kept(tmp_path, "client.conf", f"authPlugin=AuthenticationSasl\nauthParams={minted}")
    given = [one.format(minted, conf) for one in arguments]
    with socket.create_server((HOST, 0)) as listener:
        code, output = run("audit", "t", "--url", f"pulsar://{HOST}:{listener.getsockname()[1]}", *given)
    assert (code, text in output) == (2, True), output
    assert minted not in output


def test_the_token_of_the_environment_is_a_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULSAR_TOKEN", token("app", signing_key()))
    assert login() == ClientLogin(token="env:PULSAR_TOKEN")
    assert login("env:OTHER") == ClientLogin(token="env:OTHER")
    assert login(client_conf="/client.conf") == ClientLogin(client_conf="/client.conf")


def test_jobs_go_to_the_broker_of_the_context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one in use, or the one that is named, with its addresses and its login; a flag counts more."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    contexts = Contexts(tmp_path / "magnetar" / "contexts.toml")
    for name in ("one", "two"):
        made = Context(service_url=f"pulsar://{name}:1", web_url=f"http://{name}:2", token=f"file:/{name}")
        contexts = contexts.with_context(name, made)
    contexts.using("two").write()
    way = access_of(None, None, None, None, None, 1.0)
    assert (way.url, way.login.token) == ("pulsar://two:1", "file:/two")
    way = access_of(None, tmp_path, None, None, "one", 1.0)
    assert (way.url, way.login.token, way.directory) == ("pulsar://one:1", "file:/one", str(tmp_path))
    assert access_of("pulsar://three:1", None, None, None, None, 1.0).url == "pulsar://three:1"
    assert access_of(None, tmp_path, None, None, None, 1.0).url is None, "a directory alone needs no broker"
    assert rest_of(None, None, None, "one").url == "http://one:2"
    for command in ("audit", "replay", "report", "offload", "compact"):
        assert "--context" in run(command, "--help")[1]
    code, output = run("report", "a/b", "--context", "three")
    assert code == 2 and "three" in output
