"""A directory that is named by an empty text is refused: that is a variable that is not set, not where one stands."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from tests.support.command_line import taken


@pytest.mark.parametrize(
    "line",
    [
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
def test_an_empty_directory_is_refused(line: list[str]) -> None:
    with pytest.raises(typer.BadParameter) as refused:
        taken(line)
    assert "it is empty; is a variable not set?" in str(refused.value)
    taken([word or "." for word in line])


def test_it_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from magnetar.app.main import app

    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        app(["standalone", "--data", "", "--set", "brokerServicePort=0", "--set", "nonsense=1"])
    assert ended.value.code == 2
    assert "--data" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
