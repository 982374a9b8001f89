"""A table that is named by another path than it was made by: through a link, moved, copied."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from magnetar.lakehouse import Lake, open_lake
from magnetar.lakehouse.files.file_store import same_place
from magnetar.lakehouse.formats.kinds import open_table
from magnetar.lakehouse.model.options import TableKind
from magnetar.model.errors import InvalidValueError
from tests.unit.lakehouse.writing import batch_of, change_of, ids_of, options_of


def _table(kind: TableKind, directory: Path) -> None:
    options = options_of(kind, directory)
    for number in range(3):
        open_table(options).commit(change_of(options, batch_of([number, number + 10]), number))


@pytest.mark.parametrize("kind", TableKind)
def test_upkeep_through_a_link_keeps_every_row(kind: TableKind, tmp_path: Path) -> None:
    made, link = tmp_path / "made", tmp_path / "link"
    made.mkdir()
    link.symlink_to(made)
    _table(kind, made)
    through = open_lake(str(link / "t"), kind.value)
    assert through.vacuum(0) == []
    through.compact()
    through.vacuum(0)
    verified = open_lake(str(made / "t")).verify()
    assert (verified.rows, verified.wrong, verified.elsewhere) == (6, {}, [])


def test_rows_that_are_written_through_a_link_stay_in_an_iceberg_table(tmp_path: Path) -> None:
    made, link = tmp_path / "made", tmp_path / "link"
    made.mkdir()
    link.symlink_to(made)
    _table(TableKind.ICEBERG, made)
    options = options_of(TableKind.ICEBERG, link)
    open_table(options).commit(change_of(options, batch_of([3]), 3))
    lake = open_lake(str(made / "t"))
    assert lake.vacuum(0) == []
    assert ids_of(lake.read()) == [0, 1, 2, 3, 10, 11, 12] and lake.verify().elsewhere == []


@pytest.mark.parametrize("act", [Lake.history, Lake.verify, Lake.compact, lambda lake: lake.vacuum(0)])
def test_an_iceberg_table_that_was_moved_is_refused_and_keeps_its_files(act: object, tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    _table(TableKind.ICEBERG, tmp_path / "made")
    shutil.copytree(tmp_path / "made", tmp_path / "copy")
    before = set(tmp_path.rglob("*"))
    assert callable(act)
    with pytest.raises(InvalidValueError, match=f"lies at file://{tmp_path}/made/t.*moved or copied"):
        act(open_lake(str(tmp_path / "copy" / "t")))
    assert set(tmp_path.rglob("*")) == before


def test_places_are_compared_by_where_they_lead(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert same_place(f"file://{tmp_path}/t/", str(tmp_path / "link" / "t"))
    assert same_place("s3a://bucket/t/", "s3://bucket/t")
    assert not same_place("s3://bucket/t", "s3://bucket/other")
    assert not same_place("s3://bucket/t", "/bucket/t")
