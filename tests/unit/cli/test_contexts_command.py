"""``magnetar contexts``, as a user runs it."""

from __future__ import annotations

import fcntl
import json
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from magnetar.cli.contexts.command import app
from magnetar.contexts import context_file
from magnetar.contexts.context import Context


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def _run(*words: str, exit_code: int = 0) -> str:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == exit_code, result.output
    return result.output


def test_from_adding_to_removing() -> None:
    assert "none is saved" in _run("list")
    _run("add", "dev", "--web-url", "http://dev:8080")
    _run("add", "prod", "--web-url", "https://prod:8443", "--token", "env:TOKEN", "--use")
    assert "is there already" in _run("add", "prod", exit_code=1)
    listed = json.loads(_run("list", "--json"))
    assert listed["current"] == "prod"
    assert listed["contexts"]["dev"] == {"web_url": "http://dev:8080"}
    assert "token = env:TOKEN" in _run("show")
    _run("use", "dev")
    assert "* dev" in _run("list")
    _run("remove", "dev")
    assert "no context is in use" in _run("show", exit_code=1)
    assert "is not in" in _run("remove", "dev", exit_code=1)


def test_addresses_have_the_flags_of_all_other_commands() -> None:
    _run("add", "dev", "-u", "pulsar://dev:6650", "--admin-url", "http://dev:8080")
    _run("add", "test", "--url", "pulsar://test:6650", "--web-url", "http://test:8080")
    assert json.loads(_run("list", "--json"))["contexts"] == {
        name: {"service_url": f"pulsar://{name}:6650", "web_url": f"http://{name}:8080"} for name in ("dev", "test")
    }


def test_a_secret_is_refused_and_not_shown() -> None:
    said = _run("add", "dev", "--token", "eyJhbGciOiJIUzI1NiJ9", exit_code=1)
    assert "reference" in said and "eyJ" not in said
    assert "none is saved" in _run("list")


@pytest.mark.parametrize(
    ("params", "kept"),
    [
        ("file:///run/token", {"auth_plugin": "token", "auth_params": "file:///run/token"}),
        ("token:eyJhbGciOiJIUzI1NiJ9", {"client_conf": "client.conf"}),
    ],
)
def test_a_client_conf_becomes_a_context(tmp_path: Path, params: str, kept: dict[str, str]) -> None:
    """References are copied; a secret that stands in the file stays there, and the file is the reference."""
    conf = tmp_path / "client.conf"
    conf.write_text(
        f"webServiceUrl=http://b:1/\nbrokerServiceUrl=pulsar://b:2\nauthPlugin=token\nauthParams={params}\n"
    )
    said = _run("import", "b", str(conf))
    shown = json.loads(_run("show", "b", "--json"))
    if "client_conf" in kept:
        kept = {"client_conf": str(conf)}
        assert "keep it" in said
    assert shown == {"web_url": "http://b:1", "service_url": shown["service_url"], **kept}
    assert "eyJ" not in (tmp_path / "config/magnetar/contexts.toml").read_text()


def test_files_are_found_from_other_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was saved beside the file was not found by a command that ran elsewhere."""
    monkeypatch.chdir(tmp_path)
    _run("add", "dev", "--trust", "ca.pem", "--certificate", "own.pem", "--key", "keys/own.key")
    conf = "tlsTrustCertsFilePath=ca.pem\ntlsCertificateFilePath=own.pem\ntlsKeyFilePath=keys/own.key\n"
    (tmp_path / "client.conf").write_text(conf)
    _run("import", "prod", "client.conf")
    for name in ("dev", "prod"):
        shown = json.loads(_run("show", name, "--json"))
        wanted = {"trust": "ca.pem", "certificate": "own.pem", "key": "keys/own.key"}
        assert shown == {key: str(tmp_path / value) for key, value in wanted.items()}


def test_files_of_a_login_are_found_from_other_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They stayed relative in the parameters of a login, and the file of a token was refused."""
    monkeypatch.chdir(tmp_path)
    params = "tlsCertFile:./own.pem,tlsKeyFile:keys/own.key"
    (tmp_path / "client.conf").write_text(f"authPlugin=tls\nauthParams={params}\n")
    _run("add", "cert", "--auth-plugin", "tls", "--auth-params", params)
    _run("import", "conf", "client.conf")
    _run("add", "token", "--token", "file:token.txt")
    _run("add", "other", "--auth-plugin", "token", "--auth-params", "file://token.txt")
    shown = json.loads(_run("list", "--json"))["contexts"]
    for name in ("cert", "conf"):
        assert shown[name]["auth_params"] == f"tlsCertFile:{tmp_path}/own.pem,tlsKeyFile:{tmp_path}/keys/own.key"
    assert shown["token"]["token"] == shown["other"]["auth_params"] == f"file:{tmp_path}/token.txt"


def test_a_file_in_the_home_directory_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No shell reads the ``~`` behind ``file:``; it became the name of a directory below the current one."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    _run("add", "dev", "--token", "file:~/token.txt", "--trust", "~/ca.pem")
    shown = json.loads(_run("show", "dev", "--json"))
    assert shown == {"token": f"file:{tmp_path}/home/token.txt", "trust": f"{tmp_path}/home/ca.pem"}


def test_a_key_in_the_place_of_its_file_is_not_kept(tmp_path: Path) -> None:
    params = '{"issuerUrl": "https://a.example", "privateKey": "bm8gcGF0aA"}'
    said = _run("add", "dev", "--auth-plugin", "oauth2", "--auth-params", params, exit_code=1)
    assert "must be a reference" in said and "bm8g" not in said
    assert not (tmp_path / "config/magnetar/contexts.toml").exists()


def test_a_change_is_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two commands at once lost a change: both read the file, and the last to write it won."""
    monkeypatch.setattr(context_file, "_PATIENCE", 0.0)
    said: list[str] = []

    def change(found: context_file.Contexts) -> context_file.Contexts:
        said.append(_run("add", "second", exit_code=1))
        return found.with_context("first", Context())

    context_file.change_contexts(change)
    assert "another command changes" in said[0] and str(tmp_path / "config/magnetar/contexts.lock") in said[0]
    _run("add", "second")
    assert set(json.loads(_run("list", "--json"))["contexts"]) == {"first", "second"}


def test_a_change_waits_for_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "config/magnetar"
    directory.mkdir(parents=True)
    with (directory / "contexts.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        monkeypatch.setattr(time, "sleep", lambda _: fcntl.flock(lock, fcntl.LOCK_UN))
        _run("add", "dev")
    assert "dev" in _run("list")


@pytest.mark.parametrize(
    "url",
    [
        *("pulsar://user:hunter2@b:6650", "pulsar://user:hun/ter2@b:99999", "hunter2@b", "http://user:hunter2@b:1"),
        "kafka://user:hunter2@b:1,user:hunter2@c:1",
    ],
)
def test_a_password_in_a_url_is_not_shown(url: str) -> None:
    for flag in ("--service-url", "--web-url"):
        said = _run("add", "dev", flag, url, exit_code=1)
        assert "hunter2" not in said and "hun/" not in said and "URL" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[contexts."a b"]', "'a b' is no name of a context"),
        ('[contexts.dev]\ntoken = "eyJhbGci"', "context dev: token must be a reference"),
        ('[contexts.dev]\nweb_url = "dev:8080"', "context dev: web URL 'dev:8080' is no address"),
    ],
)
def test_what_is_wrong_in_the_file_is_said_with_its_name(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "config/magnetar/contexts.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    found = _run("list", exit_code=1)
    assert f"{file}: " in found and said in found and "eyJ" not in found


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    file = tmp_path / "config/magnetar/contexts.toml"
    file.parent.mkdir(parents=True)
    file.write_bytes(b'\xef\xbb\xbf[contexts.dev]\r\nweb_url = "http://dev:8080"\r\n')
    assert "dev" in _run("list")
