"""`pipeline verify` says "proven" only of what it has read: any damage to a table or a checkpoint is noticed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]  # publishes no types
import pytest
from deltalake import DeltaTable

from magnetar.lakehouse import open_lake
from magnetar.lakehouse.model.lineage import live_files
from magnetar.model.errors import InvalidValueError
from magnetar.pipelines.declaration.model import Pipeline
from magnetar.pipelines.evidence.verify import verify
from magnetar.pipelines.state.checkpoint import PipelineCheckpoint
from tests.support.declared_pipeline import declared, finish, keep, publish
from tests.support.live_broker import LiveBroker

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
KINDS = ("parquet", "delta", "iceberg")
ROWS = 150
"""Rows of three micro-batches together."""


def findings(pipeline: Pipeline, spark: Any) -> list[str]:
    return [str(one) for one in verify(pipeline, spark).findings]


@pytest.fixture(scope="module")
def made(spark: Any, broker: LiveBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    """Three kinds of tables and a topic, three micro-batches."""
    directory = tmp_path_factory.mktemp("verify")
    columns = {"parquet": "k", "delta": "k, day", "iceberg": "bucket(2, k)"}
    lakes = "".join(
        f'  {kind}: {{from: days, format: {kind}, path: "{directory}/{kind}",'
        f' options: {{partitionColumns: "{columns[kind]}"}}}}\n'
        for kind in KINDS
    )
    rest = f"""
steps:
  - name: days
    sql: >
      SELECT n, string(n % 2) AS k, date_add(date'2013-01-01', int(n % 2)) AS day, struct(n AS inner, "x" AS y) AS s, at
      FROM numbers
sinks:
  out: {{topic: verify-out}}
  nothing: {{format: noop}}
{lakes}"""
    pipeline = declared(directory, broker.url, "verify", rest)
    publish(broker.url, "verify", [json.dumps({"n": n, "at": "2013-01-01T10:15:00Z"}) for n in range(ROWS)])
    keep(broker.url, "verify-out")
    finish(spark, pipeline)
    yield pipeline


def test_all_is_proven_and_what_was_not_looked_at_is_said(spark: Any, made: Pipeline) -> None:
    report = verify(made, spark)
    assert report.findings == [] and report.unseen == []
    lines = "\n".join(report.lines)
    assert all(f"sink {kind}: 3 commits of {kind}" in lines for kind in KINDS)
    assert lines.count(f"{ROWS - 1:,} rows read again") == len(KINDS)
    report = verify(made, None)
    assert report.findings == []
    seen = "\n".join(report.unseen)
    assert "sources: 150 rows" in seen and all(f"sink {kind}: contents" in seen for kind in KINDS)


def files_of(made: Pipeline, kind: str) -> list[Path]:
    place = Path(made.checkpoint).parent / kind
    return sorted(place / one.path for one in live_files(open_lake(str(place), kind).table.file_log()))


def gone(files: list[Path]) -> None:
    files[0].unlink()


def all_gone(files: list[Path]) -> None:
    for one in files:
        one.unlink()


def truncated(files: list[Path]) -> None:
    os.truncate(files[-1], files[-1].stat().st_size - 9)


def fewer_rows(files: list[Path]) -> None:
    """Damage a file without changing its length."""
    whole = pq.ParquetFile(files[0]).read()
    size = files[0].stat().st_size
    pq.write_table(whole.slice(1), files[0], compression="none")
    with files[0].open("ab") as file:
        file.truncate(size) if file.tell() > size else file.write(bytes(size - file.tell()))


def exchanged(files: list[Path]) -> None:
    """Two files of two micro-batches, or two partitions: nothing is gone, and the log names both."""
    whole = files[0].read_bytes()
    files[0].write_bytes(files[-1].read_bytes())
    files[-1].write_bytes(whole)


def another_value(files: list[Path]) -> None:
    whole = pq.ParquetFile(files[0]).read()
    index = whole.column_names.index("n")
    changed = whole.set_column(index, "n", whole["n"].take([0] * len(whole)))
    pq.write_table(changed, files[0], compression="zstd")


@pytest.mark.parametrize("damage", [gone, all_gone, truncated, fewer_rows, exchanged, another_value])
def test_damaged_data_files_are_noticed(spark: Any, made: Pipeline, damage: Callable[[list[Path]], None]) -> None:
    """All kinds are damaged at once, and each is reported by itself."""
    kept = {one: one.read_bytes() for kind in KINDS for one in files_of(made, kind)}
    for kind in KINDS:
        damage(files_of(made, kind))
    try:
        found = findings(made, spark)
        assert all(any(kind in one for one in found) for kind in KINDS), found
        if damage in (gone, all_gone, truncated):
            # The lengths are looked at without Spark, too.
            found = findings(made, None)
            assert all(any(kind in one for one in found) for kind in KINDS), found
    finally:
        for path, content in kept.items():
            path.write_bytes(content)
    assert findings(made, spark) == []


def test_a_file_of_somebody_else_is_noticed_where_plain_readers_read_it(spark: Any, made: Pipeline) -> None:
    """Readers of Delta and Iceberg tables follow their logs, those of a directory take every file in it."""
    for kind in KINDS:
        copied, *_ = files_of(made, kind)
        foreign, hidden = copied.with_name("copied.parquet"), copied.with_name("_copied.parquet")
        for one in (foreign, hidden):
            shutil.copy(copied, one)
        try:
            found = findings(made, spark)
            assert len(found) == (1 if kind == "parquet" else 0), found
            assert not found or f"{foreign.parent.name}/copied.parquet is not of this table's log" in found[0]
        finally:
            foreign.unlink()
            hidden.unlink()


def test_a_table_that_is_elsewhere_is_noticed_and_not_begun_again(spark: Any, made: Pipeline) -> None:
    for kind in KINDS:
        place = Path(made.checkpoint).parent / kind
        place.rename(place.with_name("aside"))
        try:
            found = findings(made, None)
            assert found == [f"sink {kind}: there is no {kind} {place}, and {ROWS - 1} rows were written to it"]
            assert not place.exists(), "looking makes no table"
            with pytest.raises(InvalidValueError, match=f"{place} there is nothing. Going on would begin a second"):
                finish(spark, made)
            place.mkdir()
            with pytest.raises(
                InvalidValueError, match=f"{place} (nothing is of this pipeline|the table cannot be read)"
            ):
                finish(spark, made)
        finally:
            shutil.rmtree(place, ignore_errors=True)
            place.with_name("aside").rename(place)
    assert findings(made, None) == []
    finish(spark, made)


def test_a_log_that_is_gone_is_noticed(spark: Any, made: Pipeline) -> None:
    for kind, name in (("parquet", "_magnetar_log"), ("delta", "_delta_log"), ("iceberg", "metadata")):
        place = Path(made.checkpoint).parent / kind / name
        place.rename(place.with_name("aside"))
        try:
            assert any(kind in one for one in findings(made, None)), kind
        finally:
            place.with_name("aside").rename(place)


def test_a_checkpoint_that_was_set_back_is_noticed(spark: Any, made: Pipeline, tmp_path: Path) -> None:
    directory = PipelineCheckpoint(made.checkpoint).directory
    kept = tmp_path / "kept"
    shutil.copytree(directory, kept)
    try:
        # Only the newest manifest: Spark knows better.
        (directory / "manifests" / "2.json").unlink()
        assert any(one.startswith("batch 2: Spark has finished it") for one in findings(made, None))
        # Everything of the last micro-batch, as in a backup of before: the outputs know better.
        for name in ("offsets/2", "commits/2"):
            (directory / name).unlink()
        found = findings(made, None)
        assert len([one for one in found if "set back" in one]) == 1 + len(KINDS), found
        # While it is under way that is no finding.
        (directory / "staged" / "2").mkdir(parents=True)
        (directory / "staged" / "2" / "staged.json").write_text("{}")
        assert findings(made, None) == []
    finally:
        shutil.rmtree(directory)
        shutil.copytree(kept, directory)


def test_upkeep_is_no_damage_and_deletes_of_others_are(spark: Any, made: Pipeline) -> None:
    """This test runs last: it changes the tables for good."""
    place = Path(made.checkpoint).parent
    for kind in KINDS:
        assert open_lake(str(place / kind), kind).compact().version is not None
    report = verify(made, spark)
    assert report.findings == [] and report.unseen == []
    DeltaTable(place / "delta").delete("n = 20")
    (found,) = findings(made, spark)
    assert "149 rows were written and 148 are there; files were rewritten or removed by version" in found
    (found,) = findings(made, None)
    assert "149 rows were written and 148 are there" in found
