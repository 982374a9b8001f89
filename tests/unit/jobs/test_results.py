"""The file of a result is valid and says what was looked at, also without findings; what is printed can be read."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq  # type: ignore[import-untyped]  # publishes no types
import pytest

from magnetar.jobs.report import TopicReport
from magnetar.jobs.results import show, write_rows
from magnetar.jobs.verification.audit import AuditFinding
from magnetar.jobs.verification.comparison import Difference

SUMMARY = {"job": "audit", "topic": "t", "messages": 7, "counts": {}}


@pytest.mark.parametrize("rows", [[], [AuditFinding("gap", "t", "1:2:0", "", "p", None, 3, "lost")]])
def test_json_has_the_summary_and_the_rows(tmp_path: Path, rows: list[AuditFinding]) -> None:
    path = tmp_path / "out.json"
    write_rows(path, AuditFinding, rows, SUMMARY)
    assert json.loads(path.read_text()) == {**SUMMARY, "rows": [one._asdict() for one in rows]}
    assert [one.name for one in tmp_path.iterdir()] == ["out.json"]


@pytest.mark.parametrize("kind", [AuditFinding, Difference, TopicReport])
def test_parquet_has_its_columns_without_a_row(tmp_path: Path, kind: type) -> None:
    path = tmp_path / "out.parquet"
    write_rows(path, kind, [], SUMMARY)
    table = pq.read_table(path)
    assert table.column_names == list(kind._fields) and len(table) == 0  # type: ignore[attr-defined]  # a NamedTuple
    assert json.loads(table.schema.metadata[b"magnetar"]) == SUMMARY


def test_parquet_with_rows(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    found = AuditFinding("gap", "t", "1:2:0", "", "p", None, 3, "lost")
    write_rows(path, AuditFinding, [found], SUMMARY)
    assert pq.read_table(path).to_pylist() == [found._asdict()]


_LONG = "persistent://public/default/" + "orders-of-a-shop-" * 5
_NAMES = ("topic", "size", "entries", "subscriptions", "backlog", "slowest", "kept", "until", "oldest", "freed")


def test_a_table_that_no_terminal_shows_is_as_wide_as_it_must_be(capsys: pytest.CaptureFixture[str]) -> None:
    """It was folded to 80 columns, three letters a line: no line had a whole name, and no search found one."""
    show("2 topics", _NAMES, [(_LONG, *range(9)), ("b", *range(9))])
    lines = capsys.readouterr().out.splitlines()
    assert any(_LONG in line and " 8 " in line for line in lines) and any("subscriptions" in line for line in lines)


def test_on_a_terminal_that_is_too_narrow_rows_are_blocks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    show("1 topics", _NAMES, [(_LONG, *range(8), None)])
    assert f"topic          {_LONG}\nsize           0\n" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["a[/b]", "[red]a", "a:smile:", "a\x1b[31m"])
def test_names_of_strangers_are_printed_as_they_are(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One with brackets ended the job in a traceback, or was printed without them."""
    show(f"{name}: 1 messages", ("topic",), [(name,)])
    printed = capsys.readouterr().out
    assert printed.count(name.replace("\x1b", "\\x1b")) == 2 and "\x1b" not in printed
