"""Files are assigned to micro-batches by the logs of real tables, and missing files are named."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pytest
from deltalake import DeltaTable
from typer.testing import CliRunner

from magnetar.lakehouse import Lake
from magnetar.lakehouse.command import app
from magnetar.lakehouse.formats.kinds import open_table
from magnetar.lakehouse.formats.table import Table
from magnetar.lakehouse.lake import TableVerification
from magnetar.lakehouse.model.lineage import FileCommit, LoggedFile, groups, live_files
from magnetar.lakehouse.model.options import TableKind
from magnetar.model.errors import NotFoundError
from tests.unit.lakehouse.writing import QUERY, batch_of, change_of, ids_of, options_of

KINDS = pytest.mark.parametrize("kind", list(TableKind), ids=lambda kind: kind.value)


def file(name: str) -> LoggedFile:
    return LoggedFile(name, (name,), 1, 1)


def rows_of(table: Table, files: tuple[LoggedFile, ...]) -> list[int]:
    reader = table.reader()
    return ids_of(pa.concat_tables([reader.read(one) for one in files]))


@KINDS
@pytest.mark.parametrize("partitions", ["", "country"])
def test_each_micro_batch_has_its_files_until_they_are_put_together(
    kind: TableKind, tmp_path: Path, partitions: str
) -> None:
    options = options_of(kind, tmp_path, partitionColumns=partitions) if partitions else options_of(kind, tmp_path)
    table = open_table(options)
    for number in range(3):
        table.commit(change_of(options, batch_of(range(number * 10, number * 10 + 10)), number))
    table.commit(change_of(options, batch_of([100]), 0, query="another"))
    found = groups(table.file_log(), QUERY)
    assert [(sorted(one.batches), one.others) for one in found] == [
        ([0], False),
        ([1], False),
        ([2], False),
        ([], True),
    ]
    for number, group in enumerate(found[:3]):
        assert rows_of(table, group.files) == list(range(number * 10, number * 10 + 10))
        assert sum(one.rows or 0 for one in group.files) == 10
    whole = table.read().sort_by("id")
    parts = pa.concat_tables([table.reader().read(one) for group in found for one in group.files]).sort_by("id")
    assert parts.select(whole.column_names).cast(whole.schema) == whole
    assert table.compact().version is not None
    (together,) = groups(table.file_log(), QUERY)
    assert together.batches == {0, 1, 2} and together.others and len(together.rearranged) == 1
    assert rows_of(table, together.files) == [*range(30), 100]
    assert table.reader().differing(live_files(table.file_log())) == {}


@KINDS
def test_a_file_that_is_gone_or_shorter_is_named(kind: TableKind, tmp_path: Path) -> None:
    options = options_of(kind, tmp_path)
    table = open_table(options)
    table.commit(change_of(options, batch_of(range(10)), 0))
    one, two = live_files(table.file_log())
    place = tmp_path / "t"
    (place / one.path).unlink()
    (place / two.path).write_bytes((place / two.path).read_bytes()[:-1])
    found = table.reader().differing(live_files(table.file_log()))
    assert found[one.path] == "is gone" and "bytes, and the table's log says" in found[two.path]
    with pytest.raises(NotFoundError, match="is gone"):
        table.reader().read(one)


def test_a_delta_table_whose_log_was_cut_has_files_of_unknown_origin(tmp_path: Path) -> None:
    options = options_of(TableKind.DELTA, tmp_path)
    table = open_table(options)
    for number in range(3):
        table.commit(change_of(options, batch_of([number, number + 10]), number))
    DeltaTable(tmp_path / "t").create_checkpoint()
    (tmp_path / "t/_delta_log/00000000000000000000.json").unlink()
    found = groups(open_table(options).file_log(), QUERY)
    assert [(sorted(one.batches), one.others) for one in found] == [([], True), ([1], False), ([2], False)]


def test_a_delete_of_somebody_is_a_rearrangement(tmp_path: Path) -> None:
    options = options_of(TableKind.DELTA, tmp_path)
    table = open_table(options)
    for number in range(2):
        table.commit(change_of(options, batch_of([number, number + 10]), number))
    DeltaTable(tmp_path / "t").delete("id = 10")
    found = {tuple(one.batches): one for one in groups(table.file_log(), QUERY)}
    assert found[(0,)].rearranged == (2,) and rows_of(table, found[(0,)].files) == [0]
    assert found[(1,)].rearranged == ()


def test_rows_of_unknown_origin_stay_unknown() -> None:
    log = [
        FileCommit(3, "append", QUERY, 7, (file("a"),), ()),
        FileCommit(4, "compact", None, None, (file("b"),), ("a", "from-before")),
    ]
    (found,) = groups(log, QUERY)
    assert found.batches == {7} and found.others and found.files == (file("b"),)


@KINDS
def test_a_table_is_verified_at_a_prompt(kind: TableKind, tmp_path: Path) -> None:
    options = options_of(kind, tmp_path)
    table = open_table(options)
    for number in range(3):
        table.commit(change_of(options, batch_of(range(number * 10, number * 10 + 10)), number))
    place = tmp_path / "t"
    good = CliRunner().invoke(app, ["verify", str(place), "--kind", kind.value])
    assert good.exit_code == 0 and "6 files, 30 rows read, 0 files wrong" in good.output
    one, two, three, *_ = [place / file.path for file in live_files(table.file_log())]
    one.unlink()
    two.write_bytes(two.read_bytes()[:-1])
    damaged = bytearray(three.read_bytes())
    damaged[4:60] = bytes(56)
    three.write_bytes(bytes(damaged))
    bad = CliRunner().invoke(app, ["verify", str(place), "--kind", kind.value])
    assert bad.exit_code == 1 and bad.output.count("WRONG: ") == 3 and "15 rows read, 3 files wrong" in bad.output
    assert "is gone" in bad.output and "bytes, and" in bad.output and "cannot be read" in bad.output


@pytest.mark.parametrize("all_of_them", [False, True])
def test_a_file_that_is_not_looked_at_is_not_verified(all_of_them: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who reads the exit code of a table whose files lie elsewhere must not take them for whole."""
    found = TableVerification(2, 0 if all_of_them else 5, {}, ["s3://other/a"] + ["s3://other/b"] * all_of_them)
    monkeypatch.setattr(Lake, "verify", lambda self: found)
    monkeypatch.setattr("magnetar.lakehouse.lake.open_lake", lambda *_: Lake("t", TableKind.DELTA, None))  # type: ignore[arg-type]
    result = CliRunner().invoke(app, ["verify", "t"])
    assert result.exit_code == 1 and result.output.count("NOT LOOKED AT: ") == 1 + all_of_them
    assert f"{1 + all_of_them} not looked at" in result.output


def test_a_table_without_files_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lake, "verify", lambda self: TableVerification(0, 0, {}, []))
    monkeypatch.setattr("magnetar.lakehouse.lake.open_lake", lambda *_: Lake("t", TableKind.DELTA, None))  # type: ignore[arg-type]
    result = CliRunner().invoke(app, ["verify", "t"])
    assert result.exit_code == 0 and "0 files, 0 rows read, 0 files wrong" in result.output
