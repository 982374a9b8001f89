"""``magnetar lake`` where nothing is as it should be: one line that says what and where, and nothing is changed."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from magnetar.lakehouse import open_lake
from magnetar.lakehouse.command import app, line_of
from magnetar.lakehouse.formats.kinds import open_table
from magnetar.lakehouse.formats.parquet_log import commit_path
from magnetar.lakehouse.model.history import Commit
from magnetar.lakehouse.model.options import TableKind
from magnetar.model.errors import InvalidValueError, NotFoundError
from tests.unit.lakehouse.writing import batch_of, change_of, options_of


def _refused(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 1 and isinstance(result.exception, SystemExit), result.exception
    said = result.output.strip()
    assert said.startswith("magnetar: ") and "\n" not in said, said
    return said


def _table(kind: TableKind, directory: Path, commits: int = 2) -> Path:
    options = options_of(kind, directory)
    for number in range(commits):
        open_table(options).commit(change_of(options, batch_of([number, number + 10]), number))
    return directory / "t"


FIRST = "what commit 0 adds"
_LOGS = {
    "no JSON": b"{",
    "no text": b"\xff\x00",
    "a list": b"[]",
    "empty": b"",
    "no format": b"{}",
    "nothing else": b'{"v": 1}',
    "nested": b"[" * 100_000,
}
_CHANGES: dict[str, dict[str, Any]] = {
    "time": {"time": "noon"},
    "huge time": {"time": 10**30},
    "schema": {"schema": base64.b64encode(b"no schema").decode()},
    "rows": {"add": [{"path": "a", "staged": "b", "size": 1, "rows": None, "partition": []}]},
    "removes": {"remove": ["nothing"]},
    "removes twice": {"remove": [FIRST, FIRST]},
    "removes a number": {"remove": [1]},
    "removes no list": {"remove": "ab"},
    "forgets no list": {"forget": 1},
    "forgets a list": {"forget": [["a"]]},
    "partitioning": {"partitioning": 1},
    "partitioned by a number": {"partitioning": [1]},
}


@pytest.mark.parametrize("case", [*_LOGS, *_CHANGES])
@pytest.mark.parametrize("command", ["history", "verify", "positions", "compact", "vacuum"])
def test_a_damaged_commit_is_named(case: str, command: str, tmp_path: Path) -> None:
    table = _table(TableKind.PARQUET, tmp_path)
    file = table / commit_path(1)
    first = json.loads((table / commit_path(0)).read_bytes())["add"][0]["path"]
    changes = json.loads(json.dumps(_CHANGES.get(case, {})).replace(FIRST, first))
    changed = {**json.loads(file.read_bytes()), **changes}
    file.write_bytes(_LOGS.get(case, json.dumps(changed).encode()))
    said = _refused(command, str(table))
    assert f"{commit_path(1)} is damaged" in said and "put the file back from a copy" in said


@pytest.mark.parametrize("times", [1, 2])
def test_a_state_takes_nothing_of_a_damaged_commit(times: int, tmp_path: Path) -> None:
    table = _table(TableKind.PARQUET, tmp_path)
    file = table / commit_path(1)
    path = "nothing" if times == 1 else json.loads((table / commit_path(0)).read_bytes())["add"][0]["path"]
    file.write_text(json.dumps({**json.loads(file.read_bytes()), "remove": [path] * times}))
    opened = open_table(options_of(TableKind.PARQUET, tmp_path))
    for _ in range(2):  # not only at the first look
        with pytest.raises(InvalidValueError, match="damaged"):
            opened.exists()


def test_a_later_format_asks_for_a_later_release(tmp_path: Path) -> None:
    table = _table(TableKind.PARQUET, tmp_path)
    (table / commit_path(1)).write_text('{"v": 2}')
    assert "use a later release of magnetar" in _refused("history", str(table))


@pytest.mark.parametrize("kind", [TableKind.DELTA, TableKind.ICEBERG])
def test_what_a_library_says_of_damage_is_one_line(kind: TableKind, tmp_path: Path) -> None:
    table = _table(kind, tmp_path)
    delta, iceberg = table / "_delta_log" / f"{1:020}.json", tmp_path / "_catalog.sqlite"
    (delta if kind is TableKind.DELTA else iceberg).write_text("{")
    assert str(table) in _refused("history", str(table))


@pytest.mark.parametrize(
    "options", [["catalog.type=nope"], ["catalog.uri=nope"], ["catalog.type=hive"], ["catalog.type=sql"]]
)
def test_a_catalog_that_cannot_be_is_one_line(options: list[str], tmp_path: Path) -> None:
    table = _table(TableKind.ICEBERG, tmp_path)
    assert "--option" in _refused("history", str(table), *(word for one in options for word in ("--option", one)))


def test_an_address_that_is_no_store_is_one_line() -> None:
    assert "see options storage.*" in _refused("history", "nope://x")
    assert "HTTP" in _refused("history", "http://127.0.0.1:1/x")


@pytest.mark.parametrize("command", ["history", "verify", "compact", "vacuum"])
@pytest.mark.parametrize("kind", [kind.value for kind in TableKind])
def test_a_table_that_is_not_there_is_said_and_not_begun(command: str, kind: str, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    for path in (there, tmp_path / "missing"):
        assert "there is no" in _refused(command, str(path), "--kind", kind)
    assert not (tmp_path / "missing").exists() and not list(there.iterdir())


def test_an_empty_path_is_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _table(TableKind.PARQUET, tmp_path)
    monkeypatch.chdir(tmp_path / "t")
    result = CliRunner().invoke(app, ["vacuum", "", "--hours", "0"])
    assert result.exit_code == 2 and "is a variable not set?" in result.output


@pytest.mark.parametrize("kind", TableKind)
def test_a_part_of_an_hour_keeps_what_is_younger(kind: TableKind, tmp_path: Path) -> None:
    table = _table(kind, tmp_path)
    change_of(options_of(kind, tmp_path), batch_of([7]), 7)  # of an attempt that is under way
    before = sorted(table.rglob("*.parquet"))
    for hours in (0.5, 1e30, float("inf")):
        assert open_lake(str(table)).vacuum(hours) == []
    assert sorted(table.rglob("*.parquet")) == before
    for hours in (-1, float("nan")):
        with pytest.raises(InvalidValueError, match="cannot be kept"):
            open_lake(str(table)).vacuum(hours)


def test_a_line_of_the_history_changes_no_terminal() -> None:
    commit = Commit(1, 10**30, "\x1b[31mred\nnext", "\x1b]0;x\x07", 0)
    line = line_of(commit)
    assert "\x1b" not in line and "\n" not in line and "1000000000000000000000000000000 ms" in line


def test_a_directory_that_nobody_may_look_at_is_not_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("magnetar.lakehouse.lake.os.stat", refused)
    with pytest.raises(PermissionError):
        open_lake(str(tmp_path / "t"))
    monkeypatch.undo()
    with pytest.raises(NotFoundError, match="no such directory"):
        open_lake(str(tmp_path / "t"))
