"""A file, directory, token or address that is named by an empty text is refused: it is a variable that is not set."""

from __future__ import annotations

import importlib
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from magnetar.app import main
from magnetar.cli.admin.command import run as admin
from magnetar.contexts.broker_connection import ConnectionFlags, connection
from magnetar.contexts.flags import login
from magnetar.model.errors import InvalidValueError
from magnetar.runtime.command_line import directory, file_name
from tests.support.command_line import taken


@pytest.mark.parametrize(
    "line",
    [
        ["standalone", "--conf", ""],
        ["config", "--conf", ""],
        ["jobs", "audit", "orders", "--out", ""],
        ["jobs", "replay", "a", "b", "--id", "1", "--plan", ""],
        ["pipeline", "check", ""],
        ["tokens", "show", "--token-file", ""],
        ["contexts", "import", "prod", ""],
        ["sql", "SELECT 1", "--parquet", ""],
        ["standalone", "--data", ""],
        ["verify", ""],
        ["doctor", "--data", ""],
        ["rescue", "metadata", ""],
        ["backup", "--data", "", "/backups/monday"],
        ["backup", "--data", "data", ""],
        ["restore", "", "--data", "data"],
        ["restore", "/backups/monday", "--data", ""],
        ["jobs", "audit", "orders", "--data", ""],
        ["jobs", "compare", "a", "-", "b", "-", "--data-b", ""],
        ["jobs", "offload", "orders", "--rest", "http://localhost:8080", "--to", "/copies", "--data", ""],
        ["jobs", "compact", "orders", "--rest", "http://localhost:8080", "--data", ""],
    ],
    ids=" ".join,
)
def test_an_empty_file_or_directory_is_refused(line: list[str]) -> None:
    with pytest.raises(typer.BadParameter) as refused:
        taken(line)
    assert "it is empty; is a variable not set?" in str(refused.value)
    taken([word or "a.json" for word in line])


def _parameters() -> Iterator[tuple[str, Any, Any]]:
    apps = [main.app, *(importlib.import_module(f"magnetar.{p}.command").app for p in main.PASSED_ON.values())]
    for app in apps:
        for command in (*app.registered_commands, *(one for g in app.registered_groups for one in _of(g))):
            for name, hint in typing.get_type_hints(command.callback, include_extras=True).items():
                if hasattr(hint, "__metadata__"):
                    yield f"{command.callback.__module__}.{command.callback.__name__}: {name}", hint.__args__[0], hint


def _of(group: Any) -> list[Any]:
    return list(group.typer_instance.registered_commands)


def test_every_parameter_that_is_a_path_is_read_by_one_of_two_functions() -> None:
    paths = {
        where: hint.__metadata__[0].parser
        for where, kind, hint in _parameters()
        if kind is Path or Path in typing.get_args(kind)
    }
    assert len(paths) > 20
    assert not {where: parser for where, parser in paths.items() if parser not in (directory, file_name)}


@pytest.mark.parametrize("flag", ["context", "client_conf", "service_url", "web_url", "token", "trust"])
def test_an_empty_flag_of_the_connection_is_refused(flag: str) -> None:
    """It would be a login without a token, with what another context says, or with other authorities."""
    with pytest.raises(InvalidValueError, match="is empty; is a variable not set"):
        connection(ConnectionFlags(**{flag: ""}), {})  # type: ignore[arg-type]


def test_also_where_only_a_login_is_asked_for() -> None:
    for given in (("", None), (None, "")):
        with pytest.raises(InvalidValueError, match="is empty; is a variable not set"):
            login(*given)


def test_admin_refuses_it_before_it_asks_a_broker(capsys: pytest.CaptureFixture[str]) -> None:
    for flag in ("--token", "--client-conf", "--context"):
        assert admin([flag, "", "tenants", "list"]) == 1
        assert f"{flag} is empty" in capsys.readouterr().err


def test_it_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main.app(["standalone", "--data", "", "--set", "brokerServicePort=0", "--set", "nonsense=1"])
    assert ended.value.code == 2
    assert "--data" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
