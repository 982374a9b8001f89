"""The file of a result is valid and says what was looked at, also when nothing was found."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq  # type: ignore[import-untyped]  # publishes no types
import pytest

from magnetar.jobs.report import TopicReport
from magnetar.jobs.results import write_rows
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
